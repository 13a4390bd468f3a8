"""The steps of `voltaire setup`: each asked or given, checked, and written before the next begins.

A wizard that is interrupted is taken up by running it again: what is configured
already is the answer that Return gives.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.cli.checks.people import get_me
from bot.setup import file
from bot.setup.engine import Engine, SetupError, choose_model, choose_server
from bot.setup.units import (
    Installation,
    Place,
    UnitsError,
    active,
    available,
    install,
    linger,
    renew,
)

TOKEN_FILE = "telegram-token"  # noqa: S105 - the name of a file
PAIRING_SECONDS = 900.0


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
    engine: Engine
    place: Place = field(default_factory=Place.here)
    values: file.Values = field(default_factory=dict)
    username: str = ""

    async def run(self, greet: "Greet", serve: "Greet") -> None:
        """All steps. `greet` pairs the owner and sends the first message through the running bot;
        `serve` does so where there is no systemd, with bot and backend here meanwhile."""
        self.values = file.read(self.config)
        await self.telegram()
        self.timezone()
        if self.managed:
            await choose_server(self, await choose_model(self))
        self.place_state()
        await (greet if await self.start() else serve)(self)

    # -- answers --------------------------------------------------------------

    def answer(self, key: str, question: str, default: str, given: str | None) -> str:
        known = file.get(self.values, key)
        if given is not None:
            return given
        default = str(known) if known is not None else default
        return default if self.yes else self.ask(question, default).strip()

    def agrees(self, question: str, given: bool | None) -> bool:
        """Yes unless it was refused, by option or by answer."""
        if given is not None:
            return given
        return self.yes or self.ask(f"{question} yes or no", "yes").strip().lower() in ("y", "yes")

    def keep(self, key: str, value: object) -> None:
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
            self.keep(
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
        self.keep("telegram.token_file", str(self.token_file))

    def timezone(self) -> None:
        from bot.cli.demo import zone_here

        zone = self.answer("agent.timezone", "Time zone", zone_here(), self.given.timezone)
        self.keep("agent.timezone", zone)

    def place_state(self) -> None:
        """Units and command line find the same state and socket."""
        self.keep("state.dir", str(self.state))
        self.keep("backend.socket", str(self.state / "run" / "backend.sock"))

    async def start(self) -> bool:
        """Install the units and pair through the running bot; False where there is no systemd."""
        if self.given.units is False or not (available() or self.place.systemctl != "systemctl"):
            return False
        try:
            await asyncio.to_thread(install, self.place, self.installation())
        except UnitsError as error:
            raise SetupError(str(error)) from None
        self._check_running()
        self.say("Units installed and started: voltaire.target")
        if available() and not self.place.root and not await asyncio.to_thread(linger):
            self.say(
                "They end when you log out; an administrator can change that: loginctl enable-linger"
            )
        return True

    @property
    def managed(self) -> bool:
        """Whether the model server is ours to run."""
        return bool(file.get(self.values, "backend.kind") != "external")

    def installation(self) -> Installation:
        return Installation(self.config, self.token_file, self.state, self.managed, self._repos())

    async def upgrade(self) -> list[str]:
        """The units as this version has them, restarted; the names of those that were there."""
        self.values = file.read(self.config)
        try:
            names = await asyncio.to_thread(renew, self.place, self.installation())
        except UnitsError as error:
            raise SetupError(str(error)) from None
        if names:
            self._check_running()
        return names

    def _check_running(self) -> None:
        down = [name for name, state in active(self.place).items() if state != "active"]
        if down:
            raise SetupError(f"{down[0]} does not run: journalctl -u {down[0]} says why.")

    def _repos(self) -> tuple[tuple[Path, bool], ...]:
        repos: dict[str, Any] = file.get(self.values, "agent.repos") or {}
        return tuple((Path(r["path"]), bool(r.get("write"))) for r in repos.values())


Greet = Callable[[Wizard], Awaitable[None]]
