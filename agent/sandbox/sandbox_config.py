"""What all sandboxes of a program share: the user, the prepared rootfs, limits, repositories. From these it
puts a call together, and watches it."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from agent.aio import BackgroundTasks, complete
from agent.errors import NoSandbox, ToolError
from agent.sandbox import gitdirs, rootfs, seccomp
from agent.sandbox.bubblewrap import (
    HOME,
    PROGRAMS,
    REPORT,
    REPOS,
    USER,
    WORKSPACE,
    Bubblewrap,
    Layout,
    MountedRepo,
    WriteAccess,
    mounts_of,
    nested_mount_points,
    remedy,
    verify_mounts,
)
from agent.sandbox.bwrap_process import BwrapProcess, Invocation
from agent.sandbox.cgroup import CallGroup, Cgroups
from agent.sandbox.gitdirs import Guard, UnguardedError
from agent.sandbox.hosts import Hosts
from agent.sandbox.limits import INTERVAL, MIB, DiskQuota, HostRepo, SandboxLimits, watch_usage
from agent.sandbox.observer import Observe
from agent.sandbox.privileges import ToolUser
from agent.sandbox.proxy import EgressProxy, serve_proxy
from agent.sandbox.rootfs import Rootfs
from agent.sandbox.unprivileged_server import PROXY_PORT

log = logging.getLogger(__name__)

AT_ONCE = 4  # concurrent calls of all chats
INNER_AT_ONCE = 2  # concurrent calls that another one waits for


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """What the sandboxes of all chats share. `report` makes the text of /host.txt, fresh at each call; `sockets` is
    the folder of the calls' sockets."""

    user: ToolUser
    rootfs: Rootfs
    sockets: Path
    limits: SandboxLimits
    repos: Mapping[str, HostRepo]
    zone: str
    report: Callable[[], str]
    bwrap: Bubblewrap
    observe: Observe
    hosts: Hosts | None = None  # None: no network
    cgroups: Cgroups | None = None  # None: memory is watched
    guards: dict[str, Guard] = field(default_factory=dict)  # of the newest call
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    inner_slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(INNER_AT_ONCE))

    @asynccontextmanager
    async def call_group(self) -> AsyncIterator[CallGroup | None]:
        """The cgroup of a call; None where there is none, so that memory has to be watched."""
        group = None
        try:
            group = self.cgroups.make(self.limits) if self.cgroups else None
        except OSError as error:
            log.warning("no cgroup for a call: %s", error)
        try:
            yield group
        finally:
            if group:
                await complete(group.remove())

    @asynccontextmanager
    async def guarded_repos(self, access: WriteAccess) -> AsyncIterator["GuardedRepos"]:
        """Guard repositories during a call; git directories that it made in them are disabled afterwards."""
        writable = [repo for repo in self.repos.values() if repo.write and repo.path.is_dir()]
        repos = GuardedRepos(writable if access != "none" else [], self.guards)
        await asyncio.to_thread(repos.find)
        try:
            yield repos
        finally:
            await complete(asyncio.to_thread(repos.disable_new, commit=access == "commit"))

    def invocation(
        self,
        workspace: Path,
        command: Sequence[str],
        *,
        access: WriteAccess = "files",
        guards: Mapping[str, Guard] = MappingProxyType({}),
        repos: Collection[str] | None = None,
        network: bool = False,
        group: CallGroup | None = None,
        texts: Mapping[str, bytes] = MappingProxyType({}),
        inputs: Mapping[str, bytes] = MappingProxyType({}),
        folders: Mapping[str, str] = MappingProxyType({}),
        variables: Mapping[str, str] = MappingProxyType({}),
        fds: Sequence[int] = (),
    ) -> Invocation:
        """Build the invocation of a command. Raises NoSandbox if it cannot be isolated.

        A repository without a guard in `guards` is mounted read-only, and one that is not in `repos` not at
        all (None: all are). `texts`, `inputs` and `fds` are those of Invocation, `folders` those of Layout;
        `variables` are added to the environment.
        """
        if self.bwrap.problem:
            raise self.broken(self.bwrap.problem)
        rootfs.refresh(self.rootfs)
        commit = access == "commit"
        shown = [r for r in self.repos.values() if repos is None or r.name in repos]
        mounts = [mounted(r, guards.get(r.name), commit=commit) for r in shown if r.path.is_dir()]
        nested = nested_mount_points(mounts)
        return Invocation(
            launcher=group.launcher(self.bwrap.path) if group else [self.bwrap.path],
            command=[*prlimit(self.limits), *command],
            layout=Layout(
                root=os.fspath(self.rootfs.root),
                etc=os.fspath(self.rootfs.etc),
                workspace=os.fspath(workspace),
                environment={**environment(self.zone, network=network), **variables},
                repos=mounts,
                system=self.rootfs.system,
                access=access,
                folders=folders,
            ),
            seccomp=seccomp.program(memory_is_counted=group is not None),
            texts={REPORT: self.report().encode(), **texts},
            inputs=inputs,
            fds=fds,
            blocked=network or bool(nested),
            nested_mounts=nested,
        )

    @asynccontextmanager
    async def released(
        self,
        process: BwrapProcess,
        invocation: Invocation,
        quota: DiskQuota,
        *,
        memory: bool,
        proxy: EgressProxy | None = None,
        interval: float = INTERVAL,
    ) -> AsyncIterator[BackgroundTasks]:
        """Let a command start once its mounts are verified and its proxy listens, and watch what it uses.
        Yields the tasks that end with the block; more can be started there."""
        async with BackgroundTasks() as beside, AsyncExitStack() as stack:
            watch = watch_usage(process, quota, memory=memory, interval=interval)
            beside.start(watch, "the watch over a command")
            if invocation.blocked and (init := await process.started()) is not None:
                if invocation.nested_mounts:
                    await verify_mounts(init, process.ended, invocation.nested_mounts)
                if proxy:
                    try:
                        listener = await self.user.listen(init)
                    except OSError as error:
                        message = f"The sandbox's network does not work here: {error}."
                        raise ToolError(message) from None
                    await stack.enter_async_context(serve_proxy(listener, proxy))
                process.release()
            yield beside

    def broken(self, message: str) -> NoSandbox:
        """The error for a call that could not be isolated, so that its command was not started."""
        why = message.strip() or "bubblewrap ended without a word."
        known = missing_options(message) or remedy(message)
        advice = f" Remedy: {known}" if known else ""
        return NoSandbox(f"The sandbox does not work here, so nothing was run: {why}{advice}")


class GuardedRepos:
    """Repositories that a call may write to. `notice` tells the model what was removed after the call."""

    def __init__(self, repos: Sequence[HostRepo], earlier: dict[str, Guard]) -> None:
        self.repos = repos
        self.earlier = earlier
        self.guards: dict[str, Guard] = {}
        self.notice = ""

    def find(self) -> None:
        for repo in self.repos:
            try:
                guard = gitdirs.find_guard(repo.path, self.earlier.get(repo.name))
                self.guards[repo.name] = self.earlier[repo.name] = guard
            except UnguardedError as error:
                log.warning("repository %s is read-only for this call: %s", repo.name, error)

    def disable_new(self, *, commit: bool) -> None:
        paths = []
        for repo in self.repos:
            if guard := self.guards.get(repo.name):
                try:
                    found = gitdirs.disable_new(repo.path, guard, commit=commit)
                except OSError as error:
                    log.error("repository %s was not checked after a call: %s", repo.name, error)  # noqa: TRY400
                else:
                    paths += [f"{REPOS}/{repo.name}/{path}" for path in found]
        if paths:
            log.warning("removed what a command made: %s", ", ".join(paths))
            named = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if paths[3:] else "")
            self.notice = (
                f"Removed, since the owner's git would run its settings or hooks: {named}. "
                "Make repositories in /workspace."
            )


def mounted(repo: HostRepo, guard: Guard | None, *, commit: bool) -> MountedRepo:
    source = os.fspath(repo.path)
    if guard is None:
        return MountedRepo(repo.name, source)
    pinned, closed = guard.mounts(commit=commit)
    return MountedRepo(repo.name, source, not guard.bare or commit, pinned, closed)


def environment(zone: str, *, network: bool = False) -> dict[str, str]:
    """The whole environment of a call: nothing is taken from the program's own."""
    variables = {
        "PATH": f"{PROGRAMS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": HOME,
        "TMPDIR": HOME,
        "USER": USER,
        "LOGNAME": USER,
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PWD": WORKSPACE,
        "TZ": zone,
        "NO_COLOR": "1",
        "PAGER": "cat",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
    }
    git_config = {"safe.directory": "*", "core.hooksPath": "/dev/null", "core.fsmonitor": "false"}
    variables["GIT_CONFIG_COUNT"] = str(len(git_config))
    for n, (key, value) in enumerate(git_config.items()):
        variables |= {f"GIT_CONFIG_KEY_{n}": key, f"GIT_CONFIG_VALUE_{n}": value}
    for role in ("AUTHOR", "COMMITTER"):
        variables[f"GIT_{role}_NAME"] = "Voltaire"
        variables[f"GIT_{role}_EMAIL"] = "voltaire@localhost"
    if network:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            variables[name] = f"http://127.0.0.1:{PROXY_PORT}"
    return variables


def prlimit(limits: SandboxLimits) -> list[str]:
    """The kernel's limits on each process; `data` is a backstop to watch_usage, which sees all of them."""
    return [
        "/usr/bin/prlimit",
        f"--nproc={limits.pids}",
        f"--data={limits.memory_mib * MIB}",
        f"--fsize={limits.disk_mib * MIB}",
        "--nofile=1024",
        "--core=0",
        "--memlock=65536",
        "--",
    ]


# -- what a container lacks ---------------------------------------------------


ENGINES = {"run/.containerenv": "podman", ".dockerenv": "docker"}  # by the file that it leaves in /
BINFMT = "/proc/sys/fs/binfmt_misc"  # many hosts mount it too, and it masks nothing


def missing_options(message: str, root: Path = Path("/"), status: Path = Path("/proc/self")) -> str:
    """A sentence with the options to add; empty outside of a container, and where none is missing.

    `message` is bubblewrap's: a system call filter that lets it make namespaces, as podman's does, may stay.
    """
    engine = next((name for file, name in ENGINES.items() if (root / file).exists()), "")
    if not engine:
        return ""
    missing = []
    if "namespace" in message and "\nSeccomp:\t2" in text_of(status / "status"):
        missing.append("seccomp=unconfined")
    if any(point.startswith("/proc/") and point != BINFMT for point in mounts_of("self")):
        missing.append("unmask=ALL" if engine == "podman" else "systempaths=unconfined")
    label = text_of(status / "attr/current").strip("\0\n")
    if label.endswith("(enforce)"):
        missing.append("apparmor=unconfined")
    if ":container_t:" in label:
        missing.append("label=disable")
    if not missing:
        return ""
    options = " ".join(f"--security-opt {option}" for option in missing)
    return (
        f"This container was started without {options} (docs/container.md says what each is for)."
    )


def text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
