"""The sandbox of a chat, in which commands run and which has its files; Sandboxes has those of all chats,
each in a folder of the state directory."""

import asyncio
import hashlib
import logging
import os
import re
import time
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Self

from agent.errors import ToolError
from agent.sandbox import bubblewrap, bwrap_process, cgroup, rootfs
from agent.sandbox.bubblewrap import LISTING, SOCKETS, WriteAccess
from agent.sandbox.bwrap_process import BwrapProcess, CommandAnswers, run_bwrap, serve_commands
from agent.sandbox.files import TAINTS, Files, WorkspaceTaints
from agent.sandbox.history import WorkspaceHistory
from agent.sandbox.hosts import HostRequest, Hosts, Permit
from agent.sandbox.limits import DiskQuota, HostRepo, SandboxLimits, over_memory, program_at
from agent.sandbox.observer import Observe, Observer
from agent.sandbox.output_buffer import decode_fields
from agent.sandbox.privileges import CurrentUser, open_tool_user
from agent.sandbox.proxy import EgressProxy, Outflow
from agent.sandbox.sandbox_config import SandboxConfig

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 1.0
LONGEST_COMMAND = 120_000  # bytes; the kernel takes 128 KiB in one argument
BASH = ("/bin/bash", "--noprofile", "--norc", "-c")
KILLED = 137  # the exit code of a command that the sandbox ended
LEADS_TO_REPOS = re.compile(
    r"repos"
    r"|(?:^|[\s'\"=(])/(?:$|[\s'\")*?;|&]|\w*[*?\[])"  # /, /*, /r*
    r"|\.\./?(?:$|[\s'\")*?;|&])"  # .. and ../*, but not ../name
)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended.

    `output` is what it printed (both streams, in order), without terminal escapes; only its head and
    tail where it was long, and `saved_path` then names the file in the sandbox with all of it.
    `reason` says in a sentence or two why the sandbox ended it or removed what it made, else empty.
    `hosts` ("name:port") are those that it was connected to.
    """

    exit_code: int
    output: str
    saved_path: str = ""
    reason: str = ""
    hosts: frozenset[str] = frozenset()


class Sandbox:
    """The sandbox of one chat; `workspace` is the host's path of /workspace."""

    def __init__(self, config: SandboxConfig, chat: str, workspace: Path) -> None:
        self.chat = chat
        self.workspace = workspace
        self.config = config
        self.quota = DiskQuota(workspace, config.limits)
        self.observer = config.observe(chat)
        self.files = Files(config, workspace, self.quota, self.observer)
        taints = WorkspaceTaints(workspace.with_name(TAINTS))
        self.history = WorkspaceHistory(workspace, config.limits.undo_mib, taints)

    async def run(
        self,
        command: str | Sequence[str],
        *,
        seconds: float | None = None,
        permit: Permit | None = None,
        output_bytes: int | None = None,
        progress: Callable[[str], None] | None = None,
        strangers: Sequence[str] = (),
        write_repos: bool = True,
        repos: Collection[str] | None = None,
        outflow: Outflow | None = None,
        commands: CommandAnswers | None = None,
        whole: bool = False,
    ) -> CommandResult:
        """Run a bash script, or an argument list, in /workspace; ToolError when nothing can run.

        `seconds` are at most five times the owner's `command_seconds`, `output_bytes` at most the owner's
        `output_kib`; the output is not cut where it is wanted `whole`. There is network where the owner allows it and `permit` is given, which is awaited before
        each new request. `progress` gets new lines while the command runs. `strangers` names whose text it
        sees: these and the hosts that it reaches are recorded for the workspace if it changes a file there.
        Without `write_repos` all repositories are read-only; it sees those named in `repos` (None: all).
        `outflow` checks what leaves. `commands` answers the programs of /commands.
        """
        limit = self.config.limits.command_seconds
        hosts = self.config.hosts
        await self.files.settle()
        began = time.time()
        marks = await self.files.mark_for_now(*strangers) if strangers else []

        async def mark(source: str) -> None:
            marks.extend(await self.files.mark_for_now(source))

        async def permit_and_mark(request: HostRequest) -> None:
            if permit:
                await permit(request)
            if proxy and request.place not in proxy.reached:
                await mark(request.place)

        if commands:
            commands.mark = mark
        proxy = None
        if hosts and permit:
            proxy = EgressProxy(
                hosts, permit_and_mark, observer=self.observer, outflow=outflow or Outflow()
            )
        process, reason, notice = await self._execute(
            command,
            min(seconds or limit, 5 * limit),
            proxy=proxy,
            progress=progress,
            write_repos=write_repos,
            repos=repos,
            commands=commands,
        )
        most = self.config.limits.output_kib << 10
        if whole:
            most = process.output.limit
        text, truncated = process.output.excerpt(min(output_bytes or most, most))
        saved = await self.files.save_output(bytes(process.output.raw)) if truncated else ""
        await self.files.unmark(marks, began)
        return CommandResult(
            exit_code=exit_code(process, reason),
            output=text,
            saved_path=saved,
            reason=" ".join(filter(None, (reason, notice))),
            hosts=frozenset(proxy.reached if proxy else ()),
        )

    def repos_seen(self, command: str) -> list[HostRepo]:
        """The repositories of others that a command names: all of them where its text has /repos, or may reach
        it through /. What a script that it runs names does not count."""
        repos = [repo for repo in self.config.repos.values() if not repo.mine]
        return repos if repos and LEADS_TO_REPOS.search(command) else []

    async def run_internal(
        self,
        command: Sequence[str],
        *,
        seconds: float,
        access: WriteAccess = "none",
        repos: Collection[str] | None = None,
        folders: Mapping[str, str] = MappingProxyType({}),
        exact: bool = False,
    ) -> CommandResult:
        """Run a command of this program's own; ToolError when it takes too long. `folders`: see `read_internal`.

        The output is complete, and no name or text in it can forge lines or fields (decode_fields), unless
        it is to be `exact`.
        """
        process, reason, notice = await self._execute(
            command, seconds, access=access, repos=repos, folders=folders
        )
        if reason:
            raise ToolError(reason)
        raw = bytes(process.output.raw)
        output = raw.decode("utf-8", "replace") if exact else decode_fields(raw)
        return CommandResult(exit_code(process, reason), output, reason=notice)

    async def read_internal(
        self,
        command: Sequence[str],
        *,
        seconds: float,
        inputs: Mapping[str, bytes] = MappingProxyType({}),
        folders: Mapping[str, str] = MappingProxyType({}),
        inner: bool = False,
        proxy: EgressProxy | None = None,
    ) -> bytes:
        """The exact output of a command of this program's own that changes nothing; ToolError when it takes
        too long.

        `inputs` are files in its /tmp by name, `folders` folders of the host that it sees, read-only, by
        their paths inside. `inner`: another call of the sandbox waits for it.
        """
        process, reason, _ = await self._execute(
            command,
            seconds,
            access="none",
            inputs=inputs,
            folders=folders,
            inner=inner,
            proxy=proxy,
        )
        if reason:
            raise ToolError(reason)
        return bytes(process.output.raw)

    async def _execute(
        self,
        command: str | Sequence[str],
        seconds: float,
        *,
        access: WriteAccess = "files",
        proxy: EgressProxy | None = None,
        progress: Callable[[str], None] | None = None,
        write_repos: bool = True,
        repos: Collection[str] | None = None,
        commands: CommandAnswers | None = None,
        inputs: Mapping[str, bytes] = MappingProxyType({}),
        folders: Mapping[str, str] = MappingProxyType({}),
        inner: bool = False,
    ) -> tuple[BwrapProcess, str, str]:
        """The ended process, the reason if the sandbox ended it, and GuardedRepos.notice."""
        argv = argument_list(command)
        config = self.config
        texts = {LISTING: commands.listing().encode("utf-8", "replace")} if commands else {}
        async with (
            config.inner_slots if inner else config.slots,
            config.call_group() as group,
            config.guarded_repos(access if write_repos else "none") as guarded,
            serve_commands(config.sockets, commands) as sockets,
        ):
            await self.quota.refresh()
            invocation = config.invocation(
                self.workspace,
                argv,
                access=access,
                guards=guarded.guards,
                repos=repos,
                network=proxy is not None,
                group=group,
                texts=texts,
                inputs=inputs,
                folders={**folders, SOCKETS: sockets} if sockets else folders,
            )
            async with run_bwrap(config.user, invocation) as process:
                with TimeLimit(seconds, process) as time_limit:
                    if commands:
                        commands.waiting = time_limit.paused
                    if proxy:
                        proxy.waiting = time_limit.paused
                        proxy.program_at = lambda port: program_at(process.init_pid or 0, port)
                    async with config.released(
                        process, invocation, self.quota, memory=group is None, proxy=proxy
                    ) as beside:
                        if progress:
                            beside.start(report_progress(process, progress), "progress")
                        reason = await asyncio.shield(process.ended)
            if group and group.out_of_memory():
                reason = over_memory(config.limits)
        if process.exit_code is None and not reason:
            raise config.broken(process.output.excerpt(2000)[0])
        return process, reason, guarded.notice


class TimeLimit:
    """Ends a call after `seconds`, not counting those that are spent in `paused`."""

    def __init__(self, seconds: float, process: BwrapProcess) -> None:
        self._loop = asyncio.get_running_loop()
        self._reason = f"Stopped: the time limit of {seconds:g} s was reached."
        self._left = seconds
        self._process = process
        self._pauses = 0

    def __enter__(self) -> Self:
        self._resume()
        return self

    def __exit__(self, *_: object) -> None:
        self._pauses += 1  # no end of a pause starts the timer again
        self._timer.cancel()

    @contextmanager
    def paused(self) -> Iterator[None]:
        if not self._pauses:
            self._timer.cancel()
            self._left -= self._loop.time() - self._since
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._resume()

    def _resume(self) -> None:
        self._since = self._loop.time()
        self._timer = self._loop.call_later(max(self._left, 0), self._process.end, self._reason)


@cache
def bash_script(name: str) -> list[str]:
    """The command that runs a script of the agent's, such as "tools/git.sh"; append its arguments."""
    return [*BASH, files("agent").joinpath(name).read_text("utf-8"), name]


def argument_list(command: str | Sequence[str]) -> list[str]:
    if isinstance(command, str):
        command = [*BASH, command]
    if any("\0" in part for part in command):
        raise ToolError("A command cannot hold a NUL character.")
    if any(len(part.encode("utf-8", "replace")) > LONGEST_COMMAND for part in command):
        raise ToolError("The command is too long. Put it into a file with write_file and run that.")
    return list(command)


def exit_code(process: BwrapProcess, reason: str) -> int:
    return KILLED if process.exit_code is None or reason else process.exit_code


async def report_progress(process: BwrapProcess, progress: Callable[[str], None]) -> None:
    while True:
        await asyncio.sleep(PROGRESS_SECONDS)
        if lines := process.output.new_lines():
            progress(lines)


PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Sandboxes:
    def __init__(self, config: SandboxConfig, chats: Path) -> None:
        self.config = config
        self._chats = chats
        self._known: dict[str, Sandbox] = {}

    async def of(self, chat: str) -> Sandbox:
        """The chat's sandbox; its workspace is made on first use."""
        if chat not in self._known:
            workspace = self._chats / folder_name(chat) / "work"
            await asyncio.to_thread(make_workspace, workspace, self.config.user.uid)
            sandbox = self._known[chat] = Sandbox(self.config, chat, workspace)
            try:
                await asyncio.to_thread(sandbox.history.recover)
            except (OSError, ValueError) as error:  # it is tried again before the next turn
                log.warning("an undo in %s was not finished: %s", workspace, error)
        return self._known[chat]


def make_workspace(workspace: Path, uid: int) -> None:
    """Make a folder that belongs to the user that tools act as, also where another user ran this program before."""
    workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
    if workspace.stat().st_uid == uid:
        return
    try:
        for directory, _, names, fd in os.fwalk(workspace, topdown=False):
            for name in names:
                os.chown(name, uid, uid, dir_fd=fd, follow_symlinks=False)
            os.chown(directory, uid, uid, follow_symlinks=False)
    except OSError as error:
        raise ToolError(f"{workspace} cannot be given to user {uid}: {error.strerror}.") from None


def folder_name(chat: str) -> str:
    """A folder name for a chat: its own name where that is plain, else with a hash."""
    if PLAIN_NAME.fullmatch(chat):
        return chat
    plain = re.sub(r"[^a-z0-9._-]+", "-", chat.lower()).strip("-.")[:40]
    return f"{plain}-{hashlib.sha256(chat.encode()).hexdigest()[:12]}".lstrip("-")


@asynccontextmanager
async def open_sandboxes(
    state: Path,
    *,
    limits: SandboxLimits,
    repos: Iterable[HostRepo],
    zone: str,
    report: Callable[[], str],
    hosts: Hosts | None = None,
    observe: Observe = lambda chat: Observer(),
    programs: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Sandboxes]:
    """Prepare what sandboxes need below the state directory; on leaving, what was started is ended.

    `hosts` may be reached through a proxy; None: there is no network. `report` gives the text of /host.txt.
    `programs` are the scripts of /commands by name.
    """
    prepared = await asyncio.to_thread(rootfs.prepare, state / "sandbox", zone, programs)
    sockets = await asyncio.to_thread(bwrap_process.prepare_sockets, state / "sandbox" / "calls")
    async with open_tool_user() as user:
        config = SandboxConfig(
            user=user,
            rootfs=prepared,
            sockets=sockets,
            limits=limits,
            repos={repo.name: repo for repo in repos},
            zone=zone,
            report=report,
            hosts=hosts,
            observe=observe,
            # Another user may not join a group that root's service was given.
            cgroups=cgroup.delegated() if isinstance(user, CurrentUser) else None,
            bwrap=await bubblewrap.find(),
        )
        yield Sandboxes(config, state / "chats")


EXPECTED = {
    "uid": ("1000", "the user inside is not 1000"),
    "interfaces": ("lo", "there are network interfaces besides lo"),
    "privileges": ("1", "privileges can be gained (NoNewPrivs is not set)"),
    "filter": ("2", "the system call filter is not in force"),
    "environment": ("0", "the environment of the program can be read"),
    "capabilities": ("", "capabilities are left"),
    "namespaces": ("closed", "user namespaces can be made inside"),
    "root": ("closed", "/ is writable"),
    "workspace": ("writable", "/workspace is not writable"),
}


@dataclass(frozen=True, slots=True)
class ProbeResult:
    status: Literal["pass", "fail"]
    detail: str
    remedy: str = ""


async def probe(sandbox: Sandbox) -> ProbeResult:
    """Run a script inside and compare what it sees with EXPECTED; an error is a "fail"."""
    try:
        ran = await sandbox.run(bash_script("sandbox/isolation.sh"), seconds=10)
        await sandbox.files.names("")
    except ToolError as error:
        detail, _, advice = str(error).partition(" Remedy: ")
        return ProbeResult("fail", detail, advice)
    seen = dict(line.split("=", 1) for line in ran.output.splitlines() if "=" in line)
    wrong = [why for key, (value, why) in EXPECTED.items() if seen.get(key, "?") != value]
    if seen.get("visible"):
        wrong.append(f"{seen['visible'].strip()} can be seen")
    if wrong:
        return ProbeResult("fail", f"The sandbox has holes: {'; '.join(wrong)}.", "Report this.")
    return ProbeResult("pass", f"bubblewrap works; tools run as uid {sandbox.config.user.uid}.")
