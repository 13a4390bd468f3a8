"""One installation on a booted machine: its commands, units, phone and files."""

import asyncio
import ctypes
import json
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.campaign.clock import Clock
from bench.campaign.line import Line
from bench.operate.releases import Releases
from bench.reader import Reader
from bot.localgram import Localgram, Message, is_final
from fakes.booted import SHARED, Booted, booted

TOKEN = "1000001:operate"
OWNER = 7
QUESTION = "how much disk space is free?"
# The last two are the toy's: of a command that a kill interrupted (agent.turn.texts.INTERRUPTED), and df's own table.
ANSWER = re.compile(r"\d.* free|free.* \d|Check before doing|Avail Use%")
ANSWER_SECONDS = 240.0  # a model on a busy machine, after the longest wait that a step makes
BACKEND, BOT = "voltaire-backend.service", "voltaire-bot.service"
NEW_NETWORK = 0x40000000
DISK = "4g"

_PREPARE = f"""
set -e
chmod 755 {SHARED}
rm -rf /root/.config /root/.cache /root/.pip /root/.local  # of the machine around it
mkdir -p /etc/uv /run/user /srv
printf '[global]\\nno-index = true\\nfind-links = {SHARED}/wheels\\n' > /etc/pip.conf
printf 'offline = true\\nno-index = true\\nfind-links = ["{SHARED}/wheels"]\\n' > /etc/uv/uv.toml
printf '[safe]\\n\\tdirectory = *\\n' > /etc/gitconfig
groupdel render 2>/dev/null || true  # some machines have none
systemctl start systemd-journald.socket systemd-journald-dev-log.socket systemd-journald dbus systemd-logind
systemctl log-target journal  # it was booted with the console alone
"""


class StepFailed(Exception):
    """`str` says what was expected and what was found."""


@dataclass(frozen=True)
class Kind:
    """How it is installed. `disk` is a directory that gets a small file system of its own."""

    name: str
    user: str
    program: str  # the command's path
    state: str
    config: str
    disk: str
    install: str  # commands of the user
    uninstall: str
    extras: str  # commands of the user, after those of `install`: the optional parts
    wheel: bool = False

    @property
    def root(self) -> bool:
        return self.user == "root"


_CLONE = "git clone -q {shared}/voltaire.git {at} && make -s -C {at} install"
_PARTS = "make -s -C {at} matrix voice"
_SPACES = "'/home/ada/my programs/voltaire'"
_TOOL = (
    "mkdir -p ~/.local/bin && cp {shared}/uv ~/.local/bin/ && "
    "uv tool install --quiet --python /usr/bin/python3 {shared}/{wheel}"
)
_PIPX = (
    "python3 -m venv ~/pipx && ~/pipx/bin/pip install --quiet pipx && "
    "~/pipx/bin/pipx install --quiet --python /usr/bin/python3 {shared}/{wheel}"
)
_TOOL_PARTS = (
    "uv tool install --quiet --force --python /usr/bin/python3"
    " 'voltaire-agent[matrix,voice] @ file://{shared}/{wheel}'"
)
_PIPX_PARTS = (
    "~/pipx/bin/pipx install --quiet --force --python /usr/bin/python3"
    " 'voltaire-agent[matrix,voice] @ file://{shared}/{wheel}'"
)
_HOME = "/home/ada"
KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "system", "root", "/opt/voltaire/.venv/bin/voltaire", "/var/lib/voltaire",
            "/etc/voltaire/config.toml", "/var/lib",
            _CLONE.replace("{at}", "/opt/voltaire"), "rm -rf /opt/voltaire",
            _PARTS.replace("{at}", "/opt/voltaire"),
        ),
        Kind(
            "user", "ada", f"{_SPACES}/.venv/bin/voltaire", f"{_HOME}/.local/state/voltaire",
            f"{_HOME}/.config/voltaire/config.toml", _HOME,
            _CLONE.replace("{at}", _SPACES), f"rm -rf {_SPACES}",
            _PARTS.replace("{at}", _SPACES),
        ),
        Kind(
            "tool", "ada", f"{_HOME}/.local/bin/voltaire", f"{_HOME}/.local/state/voltaire",
            f"{_HOME}/.config/voltaire/config.toml", _HOME,
            _TOOL, "uv tool uninstall --quiet --all", _TOOL_PARTS, wheel=True,
        ),
        Kind(
            "pipx", "ada", f"{_HOME}/.local/bin/voltaire", f"{_HOME}/.local/state/voltaire",
            f"{_HOME}/.config/voltaire/config.toml", _HOME,
            _PIPX, "~/pipx/bin/pipx uninstall voltaire-agent && rm -rf ~/pipx ~/.local/share/pipx",
            _PIPX_PARTS, wheel=True,
        ),
        Kind(
            "tool-as-root", "root", "/root/.local/bin/voltaire", "/var/lib/voltaire",
            "/etc/voltaire/config.toml", "/var/lib",
            _TOOL, "uv tool uninstall --quiet --all", _TOOL_PARTS, wheel=True,
        ),
    )
}  # fmt: skip


@dataclass
class Site:
    """`patience` is how long a process that is stopped may go unnoticed, in seconds; `count` counts
    messages to Telegram; `killed` names what was; `also` are those whose answers count besides."""

    kind: Kind
    machine: Booted
    releases: Releases
    gram: Localgram
    line: Line
    clock: Clock
    patience: float
    count: int = 0
    killed: list[str] = field(default_factory=list)
    also: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        person = self.gram.user("Ada", id=OWNER, started=True)
        self.reader = Reader(person, person.chat())

    # -- commands -------------------------------------------------------------

    async def sh(
        self, script: str, *, user: str = "root", seconds: float = 600.0
    ) -> tuple[int, str]:
        """A shell script as that user: exit code and what it printed."""
        name = shlex.quote(script)
        home = "/root" if user == "root" else f"/home/{user}"
        environment = (
            f"HOME={home} USER={user} LOGNAME={user} LANG=C.UTF-8 TZ=UTC PATH={home}/.local/bin:"
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        )
        become = ""
        if user != "root":
            environment += f" XDG_RUNTIME_DIR=/run/user/$(id -u {user})"
            become = f"setpriv --reuid={user} --regid={user} --init-groups "
        command = f"cd / && exec {become}env -i {environment} sh -c {name}"
        return await self.machine.run("sh", "-c", command, seconds=seconds)

    async def done(self, script: str, *, user: str = "root", seconds: float = 600.0) -> str:
        """What a script printed; StepFailed where it fails."""
        code, said = await self.sh(script, user=user, seconds=seconds)
        if code:
            raise StepFailed(f"`{script}` ended with {code}: {said.strip()[-800:]}")
        return said.strip()

    async def voltaire(self, words: str, *, codes: tuple[int, ...] = (0,)) -> str:
        """A command of the operator's."""
        code, said = await self.sh(f"{self.kind.program} {words}", user=self.kind.user)
        if code not in codes:
            raise StepFailed(f"`voltaire {words}` ended with {code}: {said.strip()[-800:]}")
        return said.strip()

    async def status(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(await self.voltaire("status --json"))
        return facts

    # -- units ----------------------------------------------------------------

    @property
    def flags(self) -> str:
        """Of systemctl."""
        return "" if self.kind.root else "--user"

    async def systemctl(self, words: str) -> str:
        return await self.done(f"systemctl {self.flags} {words}", user=self.kind.user)

    async def shown(self, unit: str, name: str) -> str:
        return await self.systemctl(f"show --property={name} --value {unit}")

    async def active(self, seconds: float = 60.0) -> None:
        """Both services run, within that time."""
        async with _deadline(seconds, "both services are active"):
            while True:
                found = await self.sh(
                    f"systemctl {self.flags} is-active {BACKEND} {BOT}", user=self.kind.user
                )
                if found[1].split() == ["active"] * 2:
                    return
                await asyncio.sleep(0.2)

    async def pids(self) -> dict[str, int]:
        """Of the bot, the backend, and the model server, as numbered inside; 0 where there is none."""
        found = {
            "bot": int(await self.shown(BOT, "MainPID")),
            "backend": int(await self.shown(BACKEND, "MainPID")),
        }
        server = (await self.status())["backend"]["pid"]
        return {**found, "model server": int(server or 0)}

    async def pid(self, which: str) -> int:
        """One of those; StepFailed where there is none: a signal to 0 would reach this bench itself."""
        if found := (await self.pids())[which]:
            return found
        raise StepFailed(f"there is no {which}")

    async def journal(self, unit: str) -> str:
        """What systemd and the service itself wrote of it."""
        name = "UNIT" if self.kind.root else "USER_UNIT"
        return await self.done(
            f"journalctl -q --no-pager -o short-precise {name}={unit} + _SYSTEMD_{name}={unit}"
        )

    # -- the phone ------------------------------------------------------------

    async def asked(self, text: str = QUESTION) -> Message:
        self.count += 1
        return await self.reader.person.send(text)

    async def answered(self, said: Message, seconds: float = ANSWER_SECONDS) -> str:
        """The answer's text; StepFailed where none comes, or more than one."""
        if not await self.reader.answered(said, lambda m: self._answers(m) or None, seconds):
            raise StepFailed(f"no answer within {seconds:.0f} s, but {self._later(said)}")
        await asyncio.sleep(1.0)  # in which a second one would come
        texts = self._answers(said)
        if len(texts) != 1:
            raise StepFailed(f"the answers were {texts}")
        return texts[0]

    async def talk(self) -> str:
        """A message and its answer, in words."""
        began = time.monotonic()
        await self.answered(await self.asked())
        seconds = time.monotonic() - began - 1
        await self.also_answers()
        return f"answered in {seconds:.1f} s"

    async def also_answers(self) -> None:
        for answers in self.also:
            await answers()

    def _answers(self, said: Message) -> list[str]:
        return [text for text in self._later(said) if ANSWER.search(text)]

    def _later(self, said: Message) -> list[str]:
        messages = self.reader.chat.messages.values()
        return [m.text for m in messages if m.id > said.id and m.sender.is_bot and is_final(m)]

    # -- files ----------------------------------------------------------------

    def path(self, inside: str) -> Path:
        """A path of the machine, as we see it."""
        return Path(f"/proc/{self.machine.init}/root{inside}")

    async def fill(self) -> None:
        """From now on not a byte fits on the state's disk."""
        told = os.statvfs(self.path(self.kind.disk))
        used = (told.f_blocks - told.f_bfree) * told.f_frsize
        await self.done(f"mount -o remount,size={used} {self.kind.disk}")

    async def empty(self) -> None:
        await self.done(f"mount -o remount,size={DISK} {self.kind.disk}")


@asynccontextmanager
async def site(kind: Kind, folder: Path, patience: float) -> AsyncIterator[Site]:
    """A machine with nothing installed yet, and the Bot API server that it reaches."""
    releases, clock = Releases(folder), Clock(folder)
    await asyncio.to_thread(releases.make)
    shutil.copy(Path(sys.executable).with_name("uv"), folder / "uv")
    async with booted(folder, alone=True) as machine:
        code, said = await machine.run("sh", "-c", _PREPARE)
        if code:
            raise StepFailed(f"the machine cannot be prepared: {said}")
        with _network_of(machine.init):
            async with Localgram(TOKEN) as gram, Line(gram.port) as line:
                made = Site(kind, machine, releases, gram, line, clock, patience)
                await _furnish(made)
                yield made


async def _furnish(made: Site) -> None:
    """A disk for the state, the user with a manager of their own, and units that notice sooner."""
    kind, drop_in = made.kind, f"[Service]\nWatchdogSec={made.patience:.0f}\n"
    if not made.clock.missing:
        words = {"LD_PRELOAD": f"{SHARED}/clock.so", "CLOCK_OFFSET": f"{SHARED}/clock"}
        drop_in += "".join(f"Environment={key}={value}\n" for key, value in words.items())
    units = "/etc/systemd/system" if kind.root else "/etc/systemd/user"
    await made.done(f"mkdir -p {kind.disk} {units}/{BOT}.d {units}/{BACKEND}.d")
    for unit in (BOT, BACKEND):
        made.path(f"{units}/{unit}.d/bench.conf").write_text(drop_in)
    await made.done(f"mount -t tmpfs -o size={DISK},mode=755 disk {kind.disk}")
    await made.done("systemctl daemon-reload")
    if not kind.root:
        name, home = kind.user, f"/home/{kind.user}"
        await made.done(f"useradd -M -d {home} {name} && chown {name}: {home} && chmod 755 {home}")
        await made.done(f"systemctl start user@$(id -u {name})")


@contextmanager
def _network_of(pid: int) -> Iterator[None]:
    """This process is in that one's network for the block: what listens here is reached there."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(fd: int) -> None:
        if libc.setns(fd, NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "setns")

    with Path("/proc/self/ns/net").open() as ours, Path(f"/proc/{pid}/ns/net").open() as theirs:
        enter(theirs.fileno())
        try:
            yield
        finally:
            enter(ours.fileno())


@asynccontextmanager
async def _deadline(seconds: float, what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise StepFailed(f"not within {seconds:.0f} s: {what}") from None
