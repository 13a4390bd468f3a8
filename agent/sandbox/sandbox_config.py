"""What all sandboxes of a program share: the user, the prepared rootfs, limits, repositories."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.aio import complete
from agent.errors import ToolError
from agent.sandbox import gitdirs, rootfs, seccomp
from agent.sandbox.bubblewrap import Bubblewrap, remedy
from agent.sandbox.bwrap_process import Invocation
from agent.sandbox.cgroup import CallGroup, Cgroups
from agent.sandbox.hosts import Hosts
from agent.sandbox.layout import (
    USER,
    WORKSPACE,
    Layout,
    MountedRepo,
    WriteAccess,
    nested_mount_points,
)
from agent.sandbox.limits import MIB, HostRepo, SandboxLimits
from agent.sandbox.netns_listener import PROXY_PORT
from agent.sandbox.privileges import ToolUser
from agent.sandbox.rootfs import Rootfs

log = logging.getLogger(__name__)

AT_ONCE = 4  # calls of all chats that run beside each other


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """`report` gives the text of /host.txt, fresh at each call."""

    user: ToolUser
    rootfs: Rootfs
    limits: SandboxLimits
    repos: Mapping[str, HostRepo]
    zone: str
    report: Callable[[], str]
    bwrap: Bubblewrap
    hosts: Hosts | None = None  # None: no network
    cgroups: Cgroups | None = None  # None: memory is watched
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    @asynccontextmanager
    async def call_group(self) -> AsyncIterator[CallGroup | None]:
        """The cgroup of a call; None where there is none, and memory is watched instead."""
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

    async def invocation(
        self,
        workspace: Path,
        command: Sequence[str],
        *,
        access: WriteAccess = "files",
        network: bool = False,
        group: CallGroup | None = None,
    ) -> Invocation:
        """How a command is started; ToolError where it cannot be isolated."""
        if self.bwrap.problem:
            raise self.broken(self.bwrap.problem)
        rootfs.refresh(self.rootfs)
        repos = await asyncio.to_thread(self._mounted_repos, access)
        nested = nested_mount_points(repos)
        return Invocation(
            launcher=group.launcher(self.bwrap.path) if group else [self.bwrap.path],
            command=[*prlimit(self.limits), *command],
            layout=Layout(
                root=os.fspath(self.rootfs.root),
                etc=os.fspath(self.rootfs.etc),
                workspace=os.fspath(workspace),
                environment=environment(self.zone, network=network),
                repos=repos,
                system=self.rootfs.system,
                access=access,
            ),
            seccomp=seccomp.program(memory_is_counted=group is not None),
            report=self.report().encode(),
            blocked=network or bool(nested),
            nested_mounts=nested,
        )

    def _mounted_repos(self, access: WriteAccess) -> list[MountedRepo]:
        return [mounted(repo, access) for repo in self.repos.values() if repo.path.is_dir()]

    def broken(self, message: str) -> ToolError:
        """For a call that could not be isolated, so that its command was not started."""
        why = message.strip() or "bubblewrap ended without a word."
        advice = f" Remedy: {remedy(message)}" if remedy(message) else ""
        return ToolError(f"The sandbox does not work here, so nothing was run: {why}{advice}")


def mounted(repo: HostRepo, access: WriteAccess) -> MountedRepo:
    """Read-only where its git directories cannot be kept unchanged."""
    read_only = MountedRepo(repo.name, os.fspath(repo.path))
    if access == "none" or not repo.write:
        return read_only
    try:
        guard = gitdirs.guard(repo.path)
    except gitdirs.UnguardedError as error:
        log.warning("repository %s is read-only for this call: %s", repo.name, error)
        return read_only
    closed = guard.kept if access == "files" else gitdirs.settings(repo.path, guard.kept)
    return replace(read_only, write=True, pinned=guard.pinned, closed=closed)


def environment(zone: str, *, network: bool = False) -> dict[str, str]:
    """The whole of it: nothing comes from the program's own environment."""
    variables = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/tmp",  # noqa: S108 - in the sandbox
        "TMPDIR": "/tmp",  # noqa: S108 - in the sandbox
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
    """The kernel's limits on each process; `data` is a backstop to the watch over all of them."""
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
