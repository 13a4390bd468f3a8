"""A real sandbox on a temporary state directory, and a caller of its tools."""

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from agent.budgets import CallBudget
from agent.calendar.accounts import Calendars
from agent.documents.library import Library
from agent.errors import ToolError
from agent.leaks import LeakDetector
from agent.mail.account import MailAccount
from agent.mcp.servers import ToolServers
from agent.sandbox import bubblewrap, cgroup
from agent.sandbox.bwrap_process import prepare_sockets
from agent.sandbox.hosts import Hosts
from agent.sandbox.limits import HostRepo, SandboxLimits
from agent.sandbox.observer import Observer
from agent.sandbox.privileges import CurrentUser, UnprivilegedUser
from agent.sandbox.rootfs import Rootfs, prepare
from agent.sandbox.sandbox import Sandbox, Sandboxes
from agent.sandbox.sandbox_config import SandboxConfig
from agent.shell.registry import scripts
from agent.tools.context import Approver, Read, ToolContext
from agent.tools.registry import chosen, shell_names
from agent.tools.tool import Call, Output, Tool
from agent.trust import Taint, asks
from agent.web.browser import Browser

LIMITS = SandboxLimits(memory_mib=512, pids=64, disk_mib=32, files=500)


USER = CurrentUser() if os.geteuid() else UnprivilegedUser()  # its server ends with this process
_prepared: dict[tuple[str, frozenset[tuple[str, str]]], Rootfs] = {}  # by time zone and programs


@asynccontextmanager
async def opened(
    state: Path,
    *,
    limits: SandboxLimits = LIMITS,
    repos: Sequence[HostRepo] = (),
    report: Callable[[], str] = lambda: "name: test\n",
    zone: str = "Europe/Paris",
    hosts: Hosts | None = None,
    observe: Callable[[str], Observer] = lambda chat: Observer(),
    programs: Mapping[str, str] | None = None,
) -> AsyncIterator[Sandboxes]:
    """As open_sandboxes, with the tool user and the prepared rootfs of all tests of a process."""
    programs = programs or {**scripts(), **shell_names(chosen(()))}
    key = zone, frozenset(programs.items())
    if key not in _prepared:
        folder = Path(tempfile.mkdtemp(prefix="voltaire-rootfs-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)
        _prepared[key] = prepare(folder, zone, programs)
    config = SandboxConfig(
        user=USER,
        rootfs=_prepared[key],
        sockets=prepare_sockets(state / "sandbox" / "calls"),
        limits=limits,
        repos={repo.name: repo for repo in repos},
        zone=zone,
        report=report,
        bwrap=await bubblewrap.find(),
        observe=observe,
        hosts=hosts,
        cgroups=cgroup.delegated() if isinstance(USER, CurrentUser) else None,
    )
    yield Sandboxes(config, state / "chats")


@dataclass
class Box:
    """Uses tools as a turn would; an owner allows what `allows` says and is told everything."""

    sandbox: Sandbox
    allows: bool = True
    tainted: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)
    granted: set[str] = field(default_factory=set)  # scopes that ask once
    sent: list[tuple[str, bytes, str]] = field(default_factory=list)
    upload_limit: int = 50 << 20
    albums: list[tuple[list[tuple[str, bytes]], str]] = field(default_factory=list)
    progress: list[str] = field(default_factory=list)
    output_bytes: int = 1 << 20
    approve: Approver | None = None
    calendars: Calendars | None = None
    strangers: list[str] = field(default_factory=list)  # that the last call has read
    browser: Browser | None = None
    chat: str = "cli"
    documents: Callable[[], Library] | None = None
    skills: Callable[[], Sequence[tuple[str, str]]] = tuple
    servers: ToolServers | None = None
    mail: Mapping[str, MailAccount] = field(default_factory=dict)
    read: Read | None = None
    leaks: LeakDetector = field(default_factory=LeakDetector)
    budget: CallBudget = field(default_factory=CallBudget)

    async def use(self, tool: Tool, **arguments: Any) -> Output:
        context = ToolContext(
            self.sandbox,
            file_sender=self,
            read=self.read,
            leaks=self.leaks,
            browser=self.browser,
            documents=self.documents,
            skills=self.skills,
            servers=self.servers,
            mail=self.mail,
            calendars=self.calendars,
        )
        approve = self.approve or self._approve
        call = Call(
            "1",
            "turn",
            self.chat,
            context,
            approve,
            self.progress.append,
            self.output_bytes,
            self._taints,
            budget=self.budget,
        )
        self.strangers = call.strangers
        return await tool.run(call, arguments)

    async def _taints(self) -> Sequence[Taint]:
        return [Taint("page http://example.org/", 0.0)] if self.tainted else []

    async def text(self, tool: Tool, **arguments: Any) -> str:
        return (await self.use(tool, **arguments)).text

    async def error(self, tool: Tool, **arguments: Any) -> str:
        """The advice of a call that fails."""
        try:
            output = await self.use(tool, **arguments)
        except ToolError as error:
            return str(error)
        raise AssertionError(f"it answered {output.text!r}")

    async def _approve(self, what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
        when = asks(scope, touched=self.tainted or bool(touched))
        if when == "never" or scope in self.granted:
            return
        self.asked.append((what, scope))
        if not self.allows:
            raise ToolError("The owner said no.")
        if when == "once":
            self.granted.add(scope)

    async def send_files(self, files: Sequence[tuple[BinaryIO, str]], caption: str) -> None:
        contents = [(name, file.read()) for file, name in files]
        if len(contents) == 1:
            self.sent.append((*contents[0], caption))
        else:
            self.albums.append((contents, caption))


def repository(path: Path, files: dict[str, str], *, uid: int = -1) -> Path:
    """A git repository of these files with one commit, owned by `uid` where we are root."""
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    git(path, "init", "-q", "-b", "main")
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", "first")
    if uid >= 0:
        for entry in (path, *path.rglob("*")):
            os.chown(entry, uid, uid, follow_symlinks=False)
    return path


def program_file(path: Path, text: str, *, shell: str = "/bin/sh") -> str:
    """A script that the user of the tools can start."""
    path.write_text(f"#!{shell}\n{text}\n")
    path.chmod(0o755)
    for parent in path.parents:
        if parent.owner() == path.owner() and len(parent.parts) > 2:
            parent.chmod(0o755)
    return str(path)


def processes_with(marker: str) -> list[int]:
    """Of the whole machine, those that have it in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if marker.encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


_QUIET = {"PATH": os.environ["PATH"], "GIT_OPTIONAL_LOCKS": "0"}


def git(path: Path, *arguments: str) -> str:
    own = ("-c", "user.name=o", "-c", "user.email=o@localhost", "-c", "safe.directory=*")
    done = subprocess.run(
        ["git", "-C", str(path), *own, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env=_QUIET,
    )
    return done.stdout.strip()
