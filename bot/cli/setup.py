"""voltaire setup: from an account of a messaging app to an answered message.

Each step is asked or given, checked, and saved before the next begins. After an interruption the
wizard is run again: what is configured already is the default answer.
"""

import asyncio
import grp
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from secrets import token_hex
from typing import Any

import aiohttp
import click

from agent.errors import ToolError
from agent.store.errors import StoreError
from backend.build.build import Sources
from backend.build.recipe import CannotBuild, Recipe, recipe
from backend.build.release import CannotGet
from backend.client import default_socket
from backend.config import BackendConfig
from backend.models.outlook import Machine, outlook, propose
from backend.models.profile import Profile, ProfileError, locate
from backend.models.pull import PullError
from backend.server.launch import EMBEDDED, find_binary
from bot import config_file
from bot.agent_config import account_config
from bot.cli.backend_config import profile_here, profile_of
from bot.cli.bot import serve_until
from bot.cli.command import Failed, Misused, Options, act_as_owner, confirmed, interruptible, runs
from bot.cli.connect import require_sandbox, running_backend
from bot.cli.doctor_machine import mail as mail_findings
from bot.cli.doctor_machine import search as search_finding
from bot.cli.holder_client import change, record_act
from bot.cli.matrix import verify_in_terminal
from bot.cli.progress import pull_files, sign_of_life
from bot.cli.server import compile_server, fetch_server, machine
from bot.secret_values import text_of
from bot.settings import (
    AgentSection,
    ConfigurationError,
    Settings,
    StateSection,
    TelegramSection,
    config_folder,
    default_state_dir,
    exists,
    find_file,
    load,
    machine_timezone,
)
from bot.setup import SetupError, matrix, telegram, units
from bot.state import DATABASE, make_private

TOKEN = re.compile(r"\d+:\S+")
TOKEN_FILE = "telegram-token"  # noqa: S105 - the name of a file
TELEGRAM, MATRIX, BOTH, SEARCH, MAIL = "telegram", "matrix", "both", "search", "mail"
BOTFATHER = """A token is a number, a colon and a secret, such as 123456:ABC-DEF. To get one, write /newbot to
@BotFather in Telegram. `later` goes on without: terminal and page work, and `voltaire setup telegram` adds it."""
WITHOUT_SETUP = "It works without, too: voltaire chat"
WITHOUT_APP = """Talk in the terminal: voltaire chat. The owner's page: voltaire page.
A messaging app later: voltaire setup telegram, or voltaire setup matrix."""
GET, BUILD, LATER = "get", "build", "later"
ANSWER_SECONDS = 10
ASKING_HOMESERVER = "asking the homeserver"
VERIFY = "Verify the bot's device by emoji now?"
READY = "Voltaire is set up and listens. Write to me."
READY_TO_RUN = "Voltaire is set up. It answers while it runs: voltaire run"
SEARCHES = "Web search: brave, kagi or tavily (each wants a key of yours), searxng, or later"
SEARCH_LATER = "Web search: voltaire setup search"
YES, NO = ("y", "yes"), ("n", "no", LATER)


class PutOff(Exception):
    """A question that stands for what can be set up later, answered by one of NO."""


@click.command("setup", help="Set up messaging apps, owner, model, server, systemd units.")
@click.argument("app", required=False, type=click.Choice((TELEGRAM, MATRIX, SEARCH, MAIL)))
@click.argument("account", required=False)
@click.option("--token", help="The bot's token, from @BotFather.")
@click.option("--base-url", help="The Bot API server.")
@click.option(
    "--owner", type=int, help="The owner's numeric Telegram id; without it, a pairing link."
)
@click.option("--pair", is_flag=True, help="A pairing link for another owner.")
@click.option(
    "--homeserver", help="Matrix: the address of the bot's homeserver; else as its account says."
)
@click.option("--matrix-user", help="Matrix: the bot's account, such as @voltaire:example.org.")
@click.option("--matrix-password", help="Its password; used once, and not kept.")
@click.option("--matrix-token", help="In place of the password: an access token of its own.")
@click.option("--matrix-owner", multiple=True, help="An owner's account; may be repeated.")
@click.option("--matrix-groups", help="In rooms of more than two: mention, all or off.")
@click.option("--timezone", help="IANA name, such as Europe/Paris.")
@click.option("--profile", help="Which model; one that `voltaire model list` names.")
@click.option("--pull/--no-pull", default=None, help="Download the model's files, or do not.")
@click.option(
    "--server", help="auto, get (a released one), build (one for this machine, now), or its path."
)
@click.option(
    "--url",
    multiple=True,
    help="An external model server in place of one of ours; may be repeated.",
)
@click.option("--model", help="External: the model's name there; else its first.")
@click.option("--api-key", help="External: its key.")
@click.option("--search", help=SEARCHES)
@click.option("--search-key", help="The key of that service.")
@click.option("--units/--no-units", default=None, help="Install systemd units, or do not.")
@click.option(
    "--yes", is_flag=True, help="Ask nothing: options, then what is configured, then defaults."
)
@click.option("--remove", is_flag=True, help="Remove the units; state and configuration stay.")
@click.option(
    "--purge", "everything", is_flag=True, help="With --remove: state, configuration and user, too."
)
@click.option("--upgrade", is_flag=True, help="After an update: renew and restart the units.")
@runs
async def command(
    options: Options,
    account: str | None,
    yes: bool,
    remove: bool,
    everything: bool,
    upgrade: bool,
    **answers: object,
) -> None:
    scope = units.SystemdScope.here()
    folder = Path("/etc/voltaire") if os.geteuid() == 0 else config_folder()
    config = options.config or find_file(None) or folder / "config.toml"
    state = state_folder(config)
    act_as_owner(state, keep_root=answers["app"] != MAIL)
    wizard = Wizard(config, state, Given(**answers), yes, scope)  # type: ignore[arg-type]
    try:
        if everything and not remove:
            raise Misused("--purge is for --remove.")
        if (wizard.given.app == MAIL) != bool(account):
            raise Misused("`mail` takes the name of an account: voltaire setup mail NAME.")
        if remove:
            await uninstall(scope, config, state, everything=everything, ask_first=not yes)
        elif upgrade:
            names = await wizard.upgrade()
            click.echo(f"Restarted: {', '.join(names)}." if names else "No units are installed.")
            if names:
                await record_setup(state, did="units renewed")
        elif wizard.given.app == SEARCH:
            wizard.values = config_file.read(config)
            if await wizard.search():
                click.echo(
                    "What runs needs a restart to use it; services: voltaire setup --upgrade"
                )
                await record_setup(state, did="web search")
            else:
                click.echo(f"Nothing was changed. {SEARCH_LATER}")
        elif account:
            await sign_in_to_mail(load(config), account)
            await record_setup(state, did=f"sign-in to the mail account {account}")
        else:
            await check_sandbox()
            started = await wizard.run()
            if not wizard.apps:
                click.echo(WITHOUT_APP)
            else:
                await (greet(wizard, READY) if started else serve_meanwhile(wizard))
            if not started:
                click.echo("It is not running as a service here. Start it with: voltaire run")
            click.echo(f"Configuration: {config}\nState: {state}{earlier_state(state)}")
            if not wizard.searches:
                click.echo(SEARCH_LATER)
            if not shutil.which("voltaire"):
                click.echo(f"`voltaire` is not on your PATH; it is {own_program()}")
            await record_setup(state, did="configured", file=str(config))
    except (click.Abort, asyncio.CancelledError):
        kept, then = "Nothing was changed", "starts again"
        if exists(config):
            kept, then = f"What was answered is in {config}", "goes on from there"
        again = " ".join(filter(None, ("voltaire setup", wizard.given.app)))
        click.echo(f"\nStopped. {kept}; `{again}` {then}. {WITHOUT_SETUP}", err=True)
        raise
    except ProfileError as error:  # of a configured one: options were checked before
        raise Failed(str(error)) from None


async def sign_in_to_mail(settings: Settings, name: str) -> None:
    """Have the owner sign in to a mail account that has no password, and try it."""
    section = settings.agent.mail.get(name)
    if section is None or not section.client_id:
        raise Misused(f"[agent.mail.{name}] has no client_id to sign in with (docs/mail.md).")
    from agent.mail.account import tokens_file
    from agent.mail.oauth import sign_in

    def show(address: str, code: str) -> None:
        click.echo(f"Open {address} on any device, and enter {code}")

    folder = settings.state_dir / "mail"
    try:
        await sign_in(account_config(name, section), tokens_file(folder, name), show)
    except ToolError as error:
        raise Failed(str(error)) from None
    for found in await mail_findings(settings):
        if found.detail.startswith(f"{name}: "):
            click.echo(f"{found.detail} {found.remedy}".strip())


async def check_sandbox() -> None:
    """Raise Failed, before anything is asked, where this machine cannot isolate tools."""
    temporary = tempfile.TemporaryDirectory(prefix="voltaire-setup-")
    with temporary as folder, sign_of_life("trying the sandbox"):
        await require_sandbox(settings_at(Path(folder)))


def settings_at(state: Path) -> Settings:
    """The default settings, with that state folder."""
    return Settings.model_construct(state=StateSection(dir=state))


async def record_setup(state: Path, **facts: str) -> None:
    """Record in the ledger what the wizard did, where there is a database that can be written."""
    with suppress(StoreError, Failed):  # the wizard has done it all the same
        await record_act(settings_at(state), act="setup", **facts)


async def uninstall(
    scope: units.SystemdScope, config: Path, state: Path, *, everything: bool, ask_first: bool
) -> None:
    """Remove the units; `everything`: also state, configuration, and the services' user."""
    if everything and ask_first and (left := units.leftovers(scope, config, state)):
        with interruptible():
            click.confirm(f"Delete {', '.join(left)}?", abort=True)
    names = await asyncio.to_thread(units.remove, scope)
    click.echo(f"Removed: {', '.join(names)}." if names else "No units are installed.")
    if everything:
        if told := await matrix.log_out(state):
            click.echo(told)
        gone = await asyncio.to_thread(units.purge, scope, config, state)
        told = f"Deleted: {', '.join(gone) or 'nothing'}. The program stays in {sys.prefix}."
        click.echo(told + earlier_state(state))
    else:
        await record_setup(state, did="units removed")
        left = await asyncio.to_thread(units.leftovers, scope, config, state)
        click.echo(f"Left: {', '.join(left)} (setup --remove --purge deletes them).")


def state_folder(config: Path) -> Path:
    """The state's folder: the configured one; else for a configuration in /etc the services', else the user's."""
    if exists(config):
        with suppress(ConfigurationError):
            known = load(config).state.dir
            if known != Path():
                return known
    return Path("/var/lib/voltaire") if config.is_relative_to("/etc") else default_state_dir()


def earlier_state(state: Path) -> str:
    """A sentence about the state that this user had before `setup` chose another; "" if there is none."""
    own = default_state_dir()
    there = own.resolve() != state.resolve() and (own / DATABASE).exists()
    return f" (what was said before setup is in {own}, and stays there)" if there else ""


def own_program() -> Path:
    """The command of this installation."""
    return Path(sys.executable).with_name("voltaire")


async def serve_meanwhile(wizard: "Wizard") -> None:
    """Where there is no systemd: run bot and backend here until the owner is paired and greeted."""
    settings = load(wizard.config)
    async with running_backend(settings) as backend:
        await serve_until(greet(wizard, READY_TO_RUN), settings, backend)


async def greet(wizard: "Wizard", text: str) -> None:
    """Pair an owner where there is none, and have the running bot deliver the text as the first message."""
    settings = load(wizard.config)
    act = partial(change, settings)
    chats: list[str] = []
    if TELEGRAM in wizard.apps:
        with sign_of_life("starting the bot"):
            owners = settings.telegram.owners or await act("owners")
        if wizard.given.pair or not owners:
            with sign_of_life("waiting for you to press Start"):
                owners = await telegram.pair(act, wizard.username, click.echo)
        chats += [f"tg:{owner}" for owner in owners]
    if MATRIX in wizard.apps:
        chats += [f"mx:{owner}" for owner in settings.matrix.owners]
        click.echo("The bot invites you to a room; accept that in your Matrix app.")
    with sign_of_life("sending the first message"):
        await telegram.first_message(act, chats, text)
    click.echo("The first message is delivered.")
    if MATRIX in wizard.apps and not wizard.yes and confirmed(VERIFY):
        await verify_in_terminal(settings)


@dataclass(frozen=True, slots=True)
class Given:
    """Answers that came as options; None: ask."""

    app: str | None = None
    token: str | None = None
    base_url: str | None = None
    owner: int | None = None
    pair: bool = False
    homeserver: str | None = None
    matrix_user: str | None = None
    matrix_password: str | None = None
    matrix_token: str | None = None
    matrix_owner: tuple[str, ...] = ()
    matrix_groups: str | None = None
    timezone: str | None = None
    profile: str | None = None
    pull: bool | None = None
    server: str | None = None  # auto, get, build, or a path
    url: tuple[str, ...] = ()  # of external servers
    model: str | None = None  # its name there
    api_key: str | None = None
    search: str | None = None
    search_key: str | None = None
    units: bool | None = None


@dataclass
class Wizard:
    """Asks the questions of the setup, and saves each answer.

    `yes`: nothing is asked. The steps raise SetupError, and the errors of the backend's tooling.
    """

    config: Path
    state: Path
    given: Given
    yes: bool
    scope: units.SystemdScope = field(default_factory=units.SystemdScope.here)
    values: config_file.Values = field(default_factory=dict)
    apps: set[str] = field(default_factory=set)  # the messaging apps to set up
    username: str = ""
    compile_later: bool = False  # a released server is in use until a compiled one is ready

    async def run(self) -> bool:
        """Take all steps; return whether units run bot and backend from now on."""
        self.values = config_file.read(self.config)
        checks: list[tuple[Callable[[str], object], str | None]] = [
            (valid_zone, self.given.timezone),
            (profile_of, self.given.profile),
            (matrix.valid_user, self.given.matrix_user),
            (matrix.valid_groups, self.given.matrix_groups),
            *((matrix.valid_user, owner) for owner in self.given.matrix_owner),
        ]
        for check, given in checks:
            try:
                if given is not None:
                    check(given)
            except (SetupError, ProfileError) as error:
                raise Misused(str(error)) from None
        self.apps = self.chosen_apps()
        for app, step in ((TELEGRAM, self.telegram), (MATRIX, self.matrix)):
            if app in self.apps:
                try:
                    await step()
                except PutOff:
                    self.apps.discard(app)
        zone = self.answer(
            "agent.timezone", "Time zone", machine_timezone(), self.given.timezone, valid_zone
        )
        self.keep("agent.timezone", zone)
        if self.given.url:
            await self.external()
        elif self.given.profile and not self.managed:
            self.keep("backend.kind", "managed")
        if self.managed:
            profile = await self.model()
            await self.server(profile)
        # So that units and command line use the same state and socket.
        self.keep("state.dir", str(self.state))
        self.keep("backend.socket", str(default_socket(self.state)))
        if not self.searches and sys.stdin.isatty():  # piped answers know no such question
            await self.search()
        started = await self.start()
        if self.compile_later:
            self.compile_in_background()
        return started

    # -- answers --------------------------------------------------------------

    def answer(
        self,
        key: str,
        question: str,
        default: str,
        given: str | None,
        check: Callable[[str], object],
    ) -> str:
        """Return the option, else ask until `check` accepts the answer; a configured value is the default.

        With `yes` nothing is asked: the default is taken, or what `check` raises. One of NO that `check` does not know
        leaves the default, and raises PutOff where there is none.
        """
        if given is not None:
            return given
        known = self.known(key)
        default = default if known is None else str(known)
        while True:
            answer = default if self.yes else ask(question, default)
            try:
                check(answer)
            except (SetupError, ProfileError) as error:
                if self.yes:
                    raise
                if answer.lower() in NO:
                    if not default:
                        raise PutOff from None
                    return default
                click.echo(str(error))
            else:
                return answer

    def known(self, key: str) -> Any:
        """The configured value of a key, or None."""
        return config_file.get(self.values, key)

    @property
    def group(self) -> int:
        """The id of the group of the services, which read configuration and secrets; -1 for none."""
        with suppress(KeyError):  # until their group exists
            return grp.getgrnam(units.USER).gr_gid if self.scope.root else -1
        return -1

    def keep(self, key: str, value: object) -> None:
        """Save an answer, so that it survives an interruption."""
        config_file.put(self.values, key, value)
        config_file.write(self.config, self.values, group=self.group)

    # -- steps ----------------------------------------------------------------

    def chosen_apps(self) -> set[str]:
        """The messaging apps that the options name; else what the person chooses, or is configured."""
        given = self.given
        named = {given.app} if given.app else set()
        if given.token or given.base_url or given.owner or given.pair:
            named.add(TELEGRAM)
        if given.homeserver or given.matrix_user:
            named.add(MATRIX)
        if named:
            return named
        known = {app for app in (TELEGRAM, MATRIX) if self.values.get(app)}
        if self.yes:
            return known
        default = BOTH if len(known) > 1 else min(known, default=TELEGRAM)
        while True:
            question = f"Messaging app: {TELEGRAM}, {MATRIX}, {BOTH}, or {LATER}"
            answer = ask(question, default).lower()
            if answer in NO:
                return set()
            if answer in (TELEGRAM, MATRIX, BOTH):
                return {TELEGRAM, MATRIX} if answer == BOTH else {answer}
            click.echo(
                f"{answer!r} is none of them. {LATER}: talk in the terminal, without an app."
            )

    async def telegram(self) -> None:
        """The token, checked with Telegram and then kept in a file of its own."""
        base = self.given.base_url or self.known("telegram.base_url") or TelegramSection().base_url
        token = self.given.token or str(self.known("telegram.token") or "")
        if not token and self.token_file.exists():
            token = self.token_file.read_text("utf-8").strip()
        while True:
            if not token and self.yes:
                raise SetupError("A bot token is needed: --token, from @BotFather.")
            while not token:
                given = ask_needed("Bot token, from @BotFather (/newbot)", hidden=True)
                token = given if TOKEN.fullmatch(given) else ""
                if not token:
                    click.echo(BOTFATHER)
            with sign_of_life("asking Telegram"):
                found = await telegram.get_me(base, token)
            if not isinstance(found, telegram.NoAccount):
                break
            if self.yes:
                raise SetupError(f"{found.why} Nothing was changed.")
            click.echo(found.why)
            if found.refused:
                token = ""
            else:
                answer = ask_needed(f"again, {LATER}, or the address of your own server", "again")
                if answer.lower() not in ("again", *YES):
                    base = answer if "://" in answer else f"http://{answer}"
        self.username = str(found["username"])
        self.config.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        config_file.replace_file(self.token_file, f"{token}\n".encode())
        self.values.get("telegram", {}).pop("token", None)
        self.keep("telegram.token_file", str(self.token_file))
        self.keep("telegram.base_url", base)
        click.echo(f"Bot: https://t.me/{self.username}")
        if self.given.owner is not None:
            owners = self.known("telegram.owners") or []
            self.keep("telegram.owners", sorted({*owners, self.given.owner}))

    async def matrix(self) -> None:
        """The account, logged in before it is configured. The session is kept, the password is not."""
        matrix.require_packages()
        user = self.answer(
            "matrix.user",
            "The bot's Matrix account, such as @voltaire:example.org",
            "",
            self.given.matrix_user,
            matrix.valid_user,
        )
        same = self.known("matrix.user") == user
        default = str((same and self.known("matrix.homeserver")) or "")
        with sign_of_life(ASKING_HOMESERVER):
            default = default or await matrix.homeserver_of(user)
        url = self.given.homeserver or (
            default if self.yes else ask_needed("Its homeserver", default)
        )
        while True:
            with sign_of_life(ASKING_HOMESERVER):
                why = await matrix.no_homeserver(url)
            if not why:
                break
            if self.yes:
                raise SetupError(f"{why} Nothing was changed.")
            click.echo(why)
            url = ask_needed("Its homeserver", url)
        make_private(self.state)
        with sign_of_life(ASKING_HOMESERVER):
            here = await matrix.logged_in(self.state, url, user)
        if not here:
            await self.log_in(url, user)
        owners: list[str] = self.known("matrix.owners") or []
        if self.given.matrix_owner or not owners:
            given = " ".join(self.given.matrix_owner) or None
            if given is None and self.yes:
                raise SetupError("An owner is needed: --matrix-owner, such as @me:example.org.")
            owner = self.answer("", "Your own account there", "", given, matrix.valid_user)
            owners = sorted({*owners, *owner.split()})
        for owner in owners:
            with sign_of_life(ASKING_HOMESERVER):
                unknown = await matrix.unknown_owner(self.state, url, user, owner)
            if unknown:
                click.echo(f"The homeserver knows no account {owner}: is it spelled correctly?")
        groups = self.answer(
            "matrix.groups",
            "In rooms of more than two answer: mention, all, or off",
            "mention",
            self.given.matrix_groups,
            matrix.valid_groups,
        )
        for key, value in (("user", user), ("owners", owners), ("groups", groups)):
            config_file.put(self.values, f"matrix.{key}", value)
        self.keep("matrix.homeserver", url)
        click.echo(f"Bot: {user}")

    async def log_in(self, url: str, user: str) -> None:
        """Log in with the options, else the configured secret files, else a password that is asked for."""
        password, token = self.given.matrix_password or "", self.given.matrix_token or ""
        if not (password or token):
            password = text_of(self.known("matrix.password_file") or "")
            token = text_of(self.known("matrix.token_file") or "")
        while True:
            if not (password or token):
                if self.yes:
                    how = "--matrix-password, or --matrix-token"
                    raise SetupError(f"The password of {user} is needed: {how}.")
                password = ask_needed(f"Password of {user}", hidden=True)
            try:
                with sign_of_life(ASKING_HOMESERVER):
                    await matrix.make_session(self.state, url, user, password, token)
                return
            except SetupError as error:
                if self.yes:
                    raise
                click.echo(str(error))
                password = token = ""

    @property
    def token_file(self) -> Path:
        return self.config.parent / TOKEN_FILE

    @property
    def searches(self) -> bool:
        """Whether a search service is configured."""
        return bool(self.known("agent.web.search") or self.known("agent.web.search_url"))

    async def search(self) -> bool:
        """The service of web searches, saved and tried by one search; the files of a SearXNG are printed. False: later."""
        name = self.answer("agent.web.search", SEARCHES, LATER, self.given.search, valid_service)
        valid_service(name)  # of an option, too
        if name in NO:
            return False
        web = {**(self.known("agent.web") or {}), "search": name}
        web.pop("search_key_file", None)
        if name == "searxng":
            text = files("bot.setup").joinpath("searxng.txt").read_text("utf-8")
            click.echo(text.replace("change this to a long random text", token_hex(32)))
            web.setdefault("search_url", "http://127.0.0.1:8888")
        else:
            try:
                key = self.given.search_key or ask_needed("Its key", hidden=True)
            except PutOff:
                return False
            file = self.config.parent / "search-key"
            web["search_key_file"] = str(file)
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
            config_file.replace_file(file, f"{key}\n".encode(), group=self.group)
        self.keep("agent.web", web)
        (found,) = await search_finding(load(self.config))
        click.echo(f"{found.detail} {found.remedy}".strip())
        return True

    async def external(self) -> None:
        """External model servers. The first is asked once, so that a wrong key is noticed now."""
        key = self.given.api_key or str(self.known("backend.api_key") or "")
        first, *_ = self.given.url
        with sign_of_life(f"asking {first}"):
            told = await models_there(first, key)
        click.echo(told)
        self.keep("backend.kind", "external")
        self.keep("backend.url", list(self.given.url))
        if self.given.model is not None:
            self.keep("backend.model", self.given.model)
        if self.given.api_key is not None:
            self.keep("backend.api_key", self.given.api_key)

    async def model(self) -> Profile:
        """The profile, as this machine runs it; its files are downloaded unless the person wants that later."""
        key, default = "backend.profile", ""
        here = await asyncio.to_thread(Machine.here, self.backend.models_folder)
        if self.given.profile is None and self.known(key) is None:
            with sign_of_life("looking for the model that fits"):
                proposal = await asyncio.to_thread(propose, here, profile_of)
            default = proposal.name
            click.echo(proposal.line)
        question = "Model profile (`voltaire model list`)"
        name = self.answer(key, question, default, self.given.profile, profile_here)
        download = "yes"
        while True:
            profile = profile_of(name)
            if name != default:
                default = name
                with sign_of_life("reading what it needs"):
                    found = await asyncio.to_thread(outlook, profile, here)
                click.echo(found.line)
            paths = [locate(source, self.backend.models_folder) for source in profile.sources]
            missing = [path.name for path in paths if not path.is_file()]
            answer = self.download_or_other(missing, download) if missing else ""
            if answer.lower() in NO:
                click.echo(f"Bring it with: voltaire model pull {name}")
            elif answer.lower() in YES:
                try:
                    await pull_files(profile.sources, self.backend)
                except PullError as error:
                    if self.yes or self.given.pull:
                        raise
                    click.echo(str(error))
                    download = "no"
                    continue
            elif answer:
                name = answer
                continue
            self.keep(key, name)
            return profile.for_machine(gpu=bool(here.cards))

    def download_or_other(self, files: list[str], default: str) -> str:
        """Ask for one of YES, one of NO, or the name of another model."""
        if self.given.pull is not None or self.yes:
            return "no" if self.given.pull is False else "yes"
        question = f"Download {', '.join(files)} now? yes, no, or another model, such as pocket"

        def check(answer: str) -> None:
            if answer.lower() not in (*YES, *NO):
                profile_here(answer)

        return self.answer("", question, default, None, check)

    async def server(self, profile: Profile) -> None:
        """The model server: named, found, or fetched or built now."""
        wanted = self.given.server or self.known("backend.server") or "auto"
        if wanted in (GET, BUILD):
            await (self.get() if wanted == GET else self.build())
            wanted = "auto"
        found = await self.server_path(wanted)
        if not found and wanted == "auto" and profile.gpu:
            wanted = await self.missing_server()
            found = await self.server_path(wanted)
        click.echo(f"Model server: {found or 'the embedded one, without a card'}")
        self.keep("backend.server", wanted)

    async def server_path(self, wanted: str) -> str:
        """The path of the server that "auto" or a path stands for; "" for the embedded one."""
        command = (await find_binary(replace(self.backend, server=wanted))).command
        return "" if command == EMBEDDED else command[0]

    async def missing_server(self) -> str:
        """Where no server for the GPU is here: fetch a released one, build or name one, or go on without."""
        click.echo(
            "No llama-server for the card is here; a released one can be fetched in minutes."
        )
        try:
            how = await build_recipe()
        except CannotBuild as error:
            click.echo(f"None can be built yet: {error}")
            default, for_card = LATER, False
        else:
            for_card = how.kind == "cuda"
            default = BUILD if for_card else LATER  # compiling takes half an hour
            after = f", after {GET} in the background; the faster one stays" if for_card else ""
            click.echo(f"One can be built ({how.title}, {how.estimate}){after}.")
        answer = GET if self.yes else ask(f"{GET}, {BUILD}, {LATER}, or its path", GET)
        if answer == GET:
            try:
                await self.get()
            except CannotGet as error:
                click.echo(str(error))
                answer = default if self.yes else ask(f"{BUILD}, {LATER}, or its path", default)
            else:
                self.compile_later = for_card
        if answer == BUILD:
            await self.build()
        if answer.lower() in NO:
            answer = LATER
            click.echo("Get one with: voltaire server get, or voltaire server build")
        return "auto" if answer in (GET, BUILD, LATER) else answer

    async def get(self) -> None:
        """Fetch a released server; "auto" finds it from then on. Raises CannotGet."""
        nvidia = (await machine()).cards
        got = await fetch_server(None if nvidia else "vulkan", self.state)
        click.echo(f"Release {got.release}, after {got.seconds:.0f} s. {got.devices}")

    def compile_in_background(self) -> None:
        """Start compiling a server for the GPU, at the lowest priority; the faster of both is used."""
        build = ("server", "build", "--keep-faster")
        words = (str(own_program()), "--config", str(self.config), *build)
        where = units.start_in_background(self.scope, words, self.state / "servers" / "compile.log")
        click.echo(f"A server for this card is compiled in the background. {where}")

    async def build(self) -> None:
        """Build a server; "auto" finds it from then on."""
        await compile_server(await build_recipe(), Sources(), self.state)

    async def start(self) -> bool:
        """Install and start the units; False where there is no systemd, or no units are wanted."""
        systemd = units.systemd_runs() or self.scope.systemctl != "systemctl"
        if self.given.units is False or not systemd:
            return False
        with sign_of_life("starting the services"):
            lingers = await asyncio.to_thread(units.install, self.scope, self.installation())
        self.check_running()
        click.echo("Units installed and started: voltaire.target")
        if not lingers:
            click.echo(
                "They end when you log out; an administrator can change that: loginctl enable-linger"
            )
        return True

    async def upgrade(self) -> list[str]:
        """Renew and restart the units; return the names of those that were installed."""
        self.values = config_file.read(self.config)
        with sign_of_life("restarting the services"):
            names = await asyncio.to_thread(units.renew, self.scope, self.installation())
        if names:
            self.check_running()
        return names

    @property
    def managed(self) -> bool:
        """Whether Voltaire runs the model server."""
        return bool(self.known("backend.kind") != "external")

    @property
    def backend(self) -> BackendConfig:
        return BackendConfig(state_dir=self.state)

    def installation(self) -> units.Installation:
        repos = (self.known("agent.repos") or {}).values()
        paths = [(Path(repo["path"]), bool(repo.get("write"))) for repo in repos]
        documents = (self.known("agent.documents") or {}).values()
        paths += [
            (Path(folder), False) for folder in (*documents, *(self.known("agent.skills") or ()))
        ]
        for server in (self.known("agent.mcp") or {}).values():
            for folder in server.get("folders", ()):
                path = Path(folder.removesuffix(":rw")).expanduser()
                paths.append((path, folder.endswith(":rw")))
        if backups := self.known("state.backup_dir"):
            paths.append((Path(backups), True))
        token = self.token_file if self.values.get(TELEGRAM) else None
        return units.Installation(self.config, token, self.state, self.managed, tuple(paths))

    def check_running(self) -> None:
        for name, state in units.unit_states(self.scope).items():
            if state != "active":
                where = units.journal(self.scope, name)
                raise SetupError(f"{name} does not run: {where} says why.")


def ask(question: str, default: str = "", *, hidden: bool = False) -> str:
    """Ask for an answer, which is empty for Return alone where there is no default; on a terminal what is `hidden` is
    not shown while it is typed."""
    shown, hide = bool(default), hidden and sys.stdin.isatty()
    question += " (it is not shown)" * hide
    with interruptible():
        return str(click.prompt(question, default, hide, show_default=shown)).strip()


def ask_needed(question: str, default: str = "", *, hidden: bool = False) -> str:
    """Ask, and raise PutOff for one of NO."""
    if (answer := ask(question, default, hidden=hidden)).lower() in NO:
        raise PutOff
    return answer


def valid_service(name: str) -> None:
    if name not in ("brave", "kagi", "tavily", "searxng", *NO):
        raise SetupError(f"{name!r} is none of them.")


def valid_zone(name: str) -> None:
    try:
        AgentSection(timezone=name)
    except ValueError:
        raise SetupError(
            f"{name!r} is not a time zone of this machine, such as Europe/Paris."
        ) from None


async def models_there(url: str, key: str) -> str:
    """Describe the models of an OpenAI-compatible server in a sentence. Raises SetupError if it refuses the key.

    A server that does not answer is no error: it may start later.
    """
    root = url.rstrip("/").removesuffix("/v1")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with (
            asyncio.timeout(ANSWER_SECONDS),
            aiohttp.ClientSession() as session,
            session.get(f"{root}/v1/models", headers=headers) as answer,
        ):
            if answer.status in (401, 403):
                raise SetupError(f"{url} refuses the key (--api-key).")
            names = [str(model["id"]) for model in (await answer.json(content_type=None))["data"]]
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, LookupError, TypeError):
        return f"{url} does not answer now; it is used as soon as it does."
    return f"{url} serves {', '.join(names) or 'no model'}."


async def build_recipe() -> Recipe:
    """The build recipe for this machine. Raises CannotBuild."""
    here = await machine()
    return await asyncio.to_thread(recipe, "cuda" if here.cards else "cpu", here)
