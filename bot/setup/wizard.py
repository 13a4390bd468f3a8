"""The steps of `voltaire setup`: each asked or given, checked, and saved before the next begins.

A wizard that is interrupted is taken up by running it again: what is configured
already is the answer that Return gives.
"""

import asyncio
import grp
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.settings import machine_timezone
from bot.setup import SetupError, config_file
from bot.setup.models import ModelSetup
from bot.setup.telegram import get_me
from bot.setup.units import (
    Installation,
    SystemdScope,
    enable_linger,
    install,
    renew,
    systemd_runs,
    unit_states,
)

TOKEN_FILE = "telegram-token"  # noqa: S105 - the name of a file
BUILD, LATER = "build", "later"


@dataclass(frozen=True, slots=True)
class Given:
    """Answers that came as options; None: ask."""

    token: str | None = None
    base_url: str | None = None
    owner: int | None = None
    timezone: str | None = None
    profile: str | None = None
    pull: bool | None = None
    server: str | None = None  # auto, build, or a path
    units: bool | None = None


@dataclass
class Wizard:
    """`say` prints, `ask` puts a question with a default (never called with `yes`)."""

    config: Path
    state: Path
    given: Given
    yes: bool
    say: Callable[[str], None]
    ask: Callable[[str, str], str]
    models: ModelSetup
    scope: SystemdScope = field(default_factory=SystemdScope.here)
    values: config_file.Values = field(default_factory=dict)
    username: str = ""

    async def run(self, greet: "Greet", serve: "Greet") -> None:
        """All steps. `greet` pairs the owner and sends the first message through the running bot;
        `serve` does so where there is no systemd, with bot and backend here meanwhile."""
        self.values = config_file.read(self.config)
        await self.telegram()
        zone = self.answer("agent.timezone", "Time zone", machine_timezone(), self.given.timezone)
        self.keep("agent.timezone", zone)
        if self.managed:
            profile = await self.model()
            await self.server(profile)
        # Units and command line find the same state and socket.
        self.keep("state.dir", str(self.state))
        self.keep("backend.socket", str(self.state / "run" / "backend.sock"))
        await (greet if await self.start() else serve)(self)

    # -- answers --------------------------------------------------------------

    def answer(self, key: str, question: str, default: str, given: str | None) -> str:
        """The option, else what is asked for; a configured value is the default."""
        if given is not None:
            return given
        known = config_file.get(self.values, key)
        default = default if known is None else str(known)
        return default if self.yes else self.ask(question, default).strip()

    def keep(self, key: str, value: object) -> None:
        """Save an answer: from here on it survives an interruption."""
        config_file.put(self.values, key, value)
        config_file.write(self.config, self.values, group=self._group())

    def _group(self) -> int:
        """The services' group, once it exists: they read the configuration."""
        try:
            return grp.getgrnam("voltaire").gr_gid if self.scope.root else -1
        except KeyError:
            return -1

    # -- steps ----------------------------------------------------------------

    async def telegram(self) -> None:
        """The token, checked with Telegram before it is kept, in a file of its own."""
        base = self.answer(
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
        self.keep("telegram.base_url", base)
        self.say(f"Bot: https://t.me/{self.username}")
        if self.given.owner is not None:
            owners = config_file.get(self.values, "telegram.owners") or []
            self.keep("telegram.owners", sorted({*owners, self.given.owner}))

    @property
    def token_file(self) -> Path:
        return self.config.parent / TOKEN_FILE

    def _known_token(self) -> str:
        if known := config_file.get(self.values, "telegram.token"):
            return str(known)
        return self.token_file.read_text("utf-8").strip() if self.token_file.exists() else ""

    def _keep_token(self, token: str) -> None:
        self.config.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        config_file.replace_file(self.token_file, token + "\n")
        self.values.get("telegram", {}).pop("token", None)
        self.keep("telegram.token_file", str(self.token_file))

    async def model(self) -> str:
        """The profile, its files pulled unless the person wants that later."""
        key, default = "backend.profile", ""
        if self.given.profile is None and config_file.get(self.values, key) is None:
            default, line = await self.models.propose()
            self.say(line)
        question = "Model profile (`voltaire model list`)"
        name = self.answer(key, question, default, self.given.profile)
        self.models.check(name)
        if name != default:
            self.say(await self.models.outlook(name))
        if missing := self.models.missing(name):
            wanted = self.given.pull
            if wanted is None:
                question = f"Download {', '.join(missing)} now? yes or no"
                wanted = self.yes or self.ask(question, "yes").strip().lower() in ("y", "yes")
            if wanted:
                await self.models.pull(name)
            else:
                self.say(f"Bring it with: voltaire model pull {name}")
        self.keep(key, name)
        return name

    async def server(self, profile: str) -> None:
        """A server that exists: named, found, or built now."""
        wanted = self.given.server or config_file.get(self.values, "backend.server") or "auto"
        if wanted == BUILD:
            await self.models.build()
            wanted = "auto"
        found = await self.models.server(wanted)
        if not found and wanted == "auto" and self.models.needs_card(profile):
            wanted = await self._missing_server()
            found = await self.models.server(wanted)
        self.say(f"Model server: {found or 'the embedded one, without a card'}")
        self.keep("backend.server", wanted)

    async def _missing_server(self) -> str:
        """No server for the card is here: build one, name one, or go on without."""
        default = BUILD
        try:
            how = await self.models.recipe()
        except SetupError as error:
            self.say(f"No llama-server for the card is here, and none can be built yet: {error}")
            default = LATER
        else:
            self.say(f"No llama-server for the card is here; one can be built ({how}).")
        answer = (
            default if self.yes else self.ask(f"{BUILD}, {LATER}, or its path", default).strip()
        )
        if answer == BUILD:
            await self.models.build()
        if answer == LATER:
            self.say("Build one with: voltaire server build")
        return "auto" if answer in (BUILD, LATER) else answer

    async def start(self) -> bool:
        """Install and start the units; False where there is no systemd, or no units are wanted."""
        systemd = systemd_runs()
        if self.given.units is False or not (systemd or self.scope.systemctl != "systemctl"):
            return False
        await asyncio.to_thread(install, self.scope, self.installation())
        self._check_running()
        self.say("Units installed and started: voltaire.target")
        if systemd and not self.scope.root and not await asyncio.to_thread(enable_linger):
            self.say(
                "They end when you log out; an administrator can change that: loginctl enable-linger"
            )
        return True

    async def upgrade(self) -> list[str]:
        """The units as this version has them, restarted; the names of those that were there."""
        self.values = config_file.read(self.config)
        names = await asyncio.to_thread(renew, self.scope, self.installation())
        if names:
            self._check_running()
        return names

    @property
    def managed(self) -> bool:
        """Whether the model server is ours to run."""
        return bool(config_file.get(self.values, "backend.kind") != "external")

    def installation(self) -> Installation:
        repos: dict[str, Any] = config_file.get(self.values, "agent.repos") or {}
        paths = tuple((Path(r["path"]), bool(r.get("write"))) for r in repos.values())
        if backups := config_file.get(self.values, "state.backup_dir"):
            paths += ((Path(backups), True),)
        return Installation(self.config, self.token_file, self.state, self.managed, paths)

    def _check_running(self) -> None:
        down = [name for name, state in unit_states(self.scope).items() if state != "active"]
        if down:
            raise SetupError(f"{down[0]} does not run: journalctl -u {down[0]} says why.")


Greet = Callable[[Wizard], Awaitable[None]]
