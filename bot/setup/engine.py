"""The wizard's steps for model and server: both are there when they end, or the person said later."""

from typing import TYPE_CHECKING, Protocol

from bot.setup import file

if TYPE_CHECKING:
    from bot.setup.wizard import Wizard

BUILD, LATER = "build", "later"


class SetupError(Exception):
    """A step cannot be finished; `str` is one sentence, and what was done so far stays."""


class Engine(Protocol):
    """What the backend knows of models and servers. Each method may raise SetupError."""

    async def propose(self) -> tuple[str, str]:
        """The profile for this machine, and in one line what it will do and why it is this one."""

    async def outlook(self, profile: str) -> str:
        """The same line for any profile."""

    def check(self, profile: str) -> None:
        """Refuse a profile that there is not."""

    def missing(self, profile: str) -> list[str]:
        """Names of its files that are not here."""

    async def pull(self, profile: str) -> None: ...

    async def server(self, wish: str) -> str:
        """The path of the server that "auto" or a path stands for; "" for the embedded one."""

    def needs_card(self, profile: str) -> bool: ...

    async def recipe(self) -> str:
        """How a server for this machine would be built, in a few words."""

    async def build(self) -> None:
        """Build one; "auto" finds it from then on."""


async def choose_model(wizard: "Wizard") -> str:
    """The profile, its files pulled; kept once they are here, or once the person wants them later."""
    engine = wizard.engine
    name = await _named(wizard)
    if missing := engine.missing(name):
        if wizard.agrees(f"Download {', '.join(missing)} now?", wizard.given.pull):
            await engine.pull(name)
        else:
            wizard.say(f"Bring it with: voltaire model pull {name}")
    wizard.keep("backend.profile", name)
    return name


async def _named(wizard: "Wizard") -> str:
    """The profile that was given, or that is chosen now, and what is to be expected of it."""
    key, engine, default = "backend.profile", wizard.engine, ""
    if wizard.given.profile is None and file.get(wizard.values, key) is None:
        default, line = await engine.propose()
        wizard.say(line)
    question = "Model profile (`voltaire model list`)"
    name = wizard.answer(key, question, default, wizard.given.profile)
    engine.check(name)
    if name != default:
        wizard.say(await engine.outlook(name))
    return name


async def choose_server(wizard: "Wizard", profile: str) -> None:
    """A server that exists: the one that was named, one that was found, one that is built now."""
    wish = wizard.given.server or file.get(wizard.values, "backend.server") or "auto"
    if wish == BUILD:
        await wizard.engine.build()
        wish = "auto"
    found = await wizard.engine.server(wish)
    if not found and wish == "auto" and wizard.engine.needs_card(profile):
        wish = await _without(wizard)
        found = await wizard.engine.server(wish)
    wizard.say(f"Model server: {found or 'the embedded one, without a card'}")
    wizard.keep("backend.server", wish)


async def _without(wizard: "Wizard") -> str:
    """No server for the card is here: build one, name one, or go on without."""
    try:
        how = await wizard.engine.recipe()
    except SetupError as error:
        wizard.say(f"No llama-server for the card is here, and none can be built yet: {error}")
        default = LATER
    else:
        wizard.say(f"No llama-server for the card is here; one can be built ({how}).")
        default = BUILD
    said = default if wizard.yes else wizard.ask(f"{BUILD}, {LATER}, or its path", default).strip()
    if said == BUILD:
        await wizard.engine.build()
    if said == LATER:
        wizard.say("Build one with: voltaire server build")
    return "auto" if said in (BUILD, LATER) else said
