"""The steps of `voltaire setup`: each asked or given, checked, and written before the next begins.

A wizard that is interrupted is taken up by running it again: what is configured
already is the answer that Return gives.
"""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.cli.checks.people import get_me
from bot.setup import file
from bot.setup.units import Installation, Place, UnitsError, available, install

TOKEN_FILE = "telegram-token"  # noqa: S105 - the name of a file
PAIRING_SECONDS = 900.0


class SetupError(Exception):
    """A step cannot be finished; `str` is one sentence, and what was done so far stays."""


@dataclass(frozen=True, slots=True)
class Given:
    """Answers that came as options; None: ask."""

    token: str | None = None
    base_url: str | None = None
    owner: int | None = None
    timezone: str | None = None
    profile: str | None = None
    server: str | None = None
    units: bool | None = None


@dataclass
class Wizard:
    """`say` prints, `ask` puts a question with a default (never called with `yes`).

    `check` raises SetupError for a profile that there is not.
    """

    config: Path
    state: Path
    given: Given
    yes: bool
    say: Callable[[str], None]
    ask: Callable[[str, str], str]
    check: Callable[[str], None]
    place: Place = field(default_factory=Place.here)
    values: file.Values = field(default_factory=dict)
    username: str = ""

    async def run(self, greet: "Greet", serve: "Greet") -> None:
        """All steps. `greet` pairs the owner and sends the first message through the running bot;
        `serve` does so where there is no systemd, with bot and backend here meanwhile."""
        self.values = file.read(self.config)
        await self.telegram()
        self.timezone()
        self.model()
        self.place_state()
        await (greet if await self.start() else serve)(self)

    # -- answers --------------------------------------------------------------

    def _answer(self, key: str, question: str, default: str, given: str | None) -> str:
        known = file.get(self.values, key)
        if given is not None:
            return given
        default = str(known) if known is not None else default
        return default if self.yes else self.ask(question, default).strip()

    def _keep(self, key: str, value: object) -> None:
        """Write the answer down: from here on it survives an interruption."""
        file.put(self.values, key, value)
        file.write(self.config, self.values, group=self._group())

    def _group(self) -> int:
        """The services' group, once it is there: they read the configuration."""
        import grp

        if not self.place.root:
            return -1
        try:
            return grp.getgrnam("voltaire").gr_gid
        except KeyError:
            return -1

    # -- steps ----------------------------------------------------------------

    async def telegram(self) -> None:
        """The token, checked with Telegram before it is kept, in a file of its own."""
        base = self._answer(
            "telegram.base_url", "Bot API server", "https://api.telegram.org", self.given.base_url
        )
        token = self.given.token or self._known_token()
        while True:
            if not token and self.yes:
                raise SetupError("A bot token is needed: --token, from @BotFather.")
            token = token or self.ask("Bot token, from @BotFather (/newbot)", "").strip()
            found = await get_me(base, token)
            if isinstance(found, dict):
                break
            self.say(found)
            if self.yes:
                raise SetupError("The token was not accepted; nothing was changed.")
            token = ""
        self.username = str(found["username"])
        self._keep_token(token)
        self._keep("telegram.base_url", base)
        self.say(f"Bot: https://t.me/{self.username}")
        if self.given.owner is not None:
            self._keep(
                "telegram.owners",
                sorted({*(file.get(self.values, "telegram.owners") or []), self.given.owner}),
            )

    @property
    def token_file(self) -> Path:
        return self.config.parent / TOKEN_FILE

    def _known_token(self) -> str:
        if file.get(self.values, "telegram.token"):
            return str(file.get(self.values, "telegram.token"))
        return self.token_file.read_text("utf-8").strip() if self.token_file.exists() else ""

    def _keep_token(self, token: str) -> None:
        self.config.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        new = self.token_file.with_name(f".{TOKEN_FILE}.new")
        with os.fdopen(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as kept:
            kept.write(token + "\n")
        new.replace(self.token_file)
        self.values.get("telegram", {}).pop("token", None)
        self._keep("telegram.token_file", str(self.token_file))

    def timezone(self) -> None:
        from bot.cli.demo import zone_here

        zone = self._answer("agent.timezone", "Time zone", zone_here(), self.given.timezone)
        self._keep("agent.timezone", zone)

    def model(self) -> None:
        """The profile: what fits the card that was found; the pocket model where there is none."""
        default = propose()
        name = self._answer(
            "backend.profile",
            f"Model profile (`voltaire model list`; proposed: {default})",
            default,
            self.given.profile,
        )
        self.check(name)
        self._keep("backend.profile", name)
        server = self.given.server or file.get(self.values, "backend.server") or "auto"
        self._keep("backend.server", server)
        if server == "auto" and name != "pocket" and not shutil.which("llama-server"):
            self.say(
                "No llama-server is on PATH: `voltaire server build --cuda` makes one for this card."
            )

    def place_state(self) -> None:
        """Units and command line find the same state and socket."""
        self._keep("state.dir", str(self.state))
        self._keep("backend.socket", str(self.state / "run" / "backend.sock"))

    async def start(self) -> bool:
        """Install the units and pair through the running bot; False where there is no systemd."""
        if self.given.units is False or not (available() or self.place.systemctl != "systemctl"):
            return False
        managed = file.get(self.values, "backend.kind") != "external"
        installation = Installation(self.config, self.token_file, managed, self._repos())
        try:
            await asyncio.to_thread(install, self.place, installation)
        except UnitsError as error:
            raise SetupError(str(error)) from None
        self._keep("state.dir", str(self.state))  # once more: now the services' group may read it
        self.say("Units installed and started: voltaire.target")
        return True

    def _repos(self) -> tuple[tuple[Path, bool], ...]:
        repos: dict[str, Any] = file.get(self.values, "agent.repos") or {}
        return tuple((Path(r["path"]), bool(r.get("write"))) for r in repos.values())

    def has_owner(self) -> bool:
        return bool(file.get(self.values, "telegram.owners"))


Greet = Callable[[Wizard], Awaitable[None]]


def propose() -> str:
    """The profile for this machine's cards: (count, GiB of the smallest) decide."""
    from bot.cli.checks.server import memory_of_cards

    cards = memory_of_cards()
    if len(cards) >= 2 and min(cards) >= 15:
        return "qwen3.6-35b-a3b-q6-2x"
    if cards and max(cards) >= 15:
        return "gemma4-26b-a4b"
    if cards and max(cards) >= 3.5:
        return "qwen2.5-3b"
    return "pocket"
