"""What all sandboxes of a program stand on: the actor, the prepared rootfs, limits, repositories."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from agent.errors import ToolError
from agent.sandbox import gitdirs, seccomp
from agent.sandbox import rootfs as prepared
from agent.sandbox.bubblewrap import Bubblewrap, remedy
from agent.sandbox.bwrap_process import Descriptors, Order
from agent.sandbox.cgroup import CallGroup, Cgroups
from agent.sandbox.hosts import Hosts
from agent.sandbox.layout import USER, WORKSPACE, Layout, MountedRepo, WriteAccess, inner_points
from agent.sandbox.limits import MIB, HostRepo, SandboxLimits
from agent.sandbox.listen import PORT
from agent.sandbox.privileges import Actor
from agent.sandbox.rootfs import Rootfs

log = logging.getLogger(__name__)

AT_ONCE = 4  # calls of all chats that run beside each other


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """`report` gives the text of /host.txt, fresh at each call."""

    actor: Actor
    rootfs: Rootfs
    limits: SandboxLimits
    repos: Mapping[str, HostRepo]
    zone: str
    report: Callable[[], str]
    bwrap: Bubblewrap
    hosts: Hosts | None = None  # None: no network
    cgroups: Cgroups | None = None  # None: memory is watched
    place: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    @asynccontextmanager
    async def group(self) -> AsyncIterator[CallGroup | None]:
        """The cgroup of a call, where there are cgroups to be had."""
        group = self._made()
        try:
            yield group
        finally:
            if group:
                await asyncio.shield(group.remove())

    def _made(self) -> CallGroup | None:
        try:
            return self.cgroups.make(self.limits) if self.cgroups else None
        except OSError as error:  # memory is watched instead
            log.warning("no cgroup for a call: %s", error)
            return None

    async def order(
        self,
        workspace: Path,
        command: Sequence[str],
        *,
        access: WriteAccess = "work",
        network: bool = False,
        group: CallGroup | None = None,
    ) -> Order:
        if self.bwrap.problem:
            raise self.broken(self.bwrap.problem)
        prepared.refresh(self.rootfs)
        repos = [repo for repo in self.repos.values() if repo.path.is_dir()]
        sources = [self.rootfs.root, self.rootfs.etc, workspace, *(r.path for r in repos)]
        variables = environment(self.zone, network=network)
        mounted = await asyncio.to_thread(lambda: [_mounted(repo, access) for repo in repos])
        inner = inner_points(mounted)
        return Order(
            launcher=group.launcher(self.bwrap.path) if group else [self.bwrap.path],
            command=[*bounded(self.limits), *command],
            sources=[os.fspath(source) for source in sources],
            layout=partial(self._layout, mounted, variables, access),
            seccomp=seccomp.program(memory_is_counted=group is not None),
            report=self.report().encode(),
            blocked=network or bool(inner),
            inner=inner,
        )

    def _layout(
        self,
        repos: Sequence[MountedRepo],
        environment: Mapping[str, str],
        access: WriteAccess,
        fds: Descriptors,
        reached: Sequence[str],
    ) -> Layout:
        root, etc, workspace, *places = reached
        return Layout(
            root=root,
            etc=etc,
            workspace=workspace,
            environment=environment,
            seccomp_fd=fds.seccomp,
            status_fd=fds.status,
            report_fd=fds.report,
            repos=[replace(r, source=place) for r, place in zip(repos, places, strict=True)],
            system=self.rootfs.system,
            block_fd=fds.block,
            access=access,
        )

    def broken(self, said: str) -> ToolError:
        """Nothing ever runs without its walls."""
        why = said.strip() or "bubblewrap ended without a word."
        advice = f" Remedy: {remedy(said)}" if remedy(said) else ""
        return ToolError(f"The sandbox does not work here, so nothing was run: {why}{advice}")


def _mounted(repo: HostRepo, access: WriteAccess) -> MountedRepo:
    """What cannot be guarded is not written to. Its source is where bubblewrap will find it."""
    closed = MountedRepo(repo.name, os.fspath(repo.path))
    if access == "look" or not repo.write:
        return closed
    try:
        guard = gitdirs.guard(repo.path)
    except gitdirs.UnguardedError as error:
        log.warning("repository %s is read-only for this call: %s", repo.name, error)
        return closed
    kept = guard.kept if access == "work" else gitdirs.settings(repo.path, guard.kept)
    return replace(closed, write=True, pinned=guard.pinned, closed=kept)


def environment(zone: str, *, network: bool = False) -> dict[str, str]:
    """The whole of it: nothing comes from the program's own environment."""
    own = {
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
    }
    return own | _git() | (_proxies() if network else {})


def _proxies() -> dict[str, str]:
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
    return dict.fromkeys(names, f"http://127.0.0.1:{PORT}")


def _git() -> dict[str, str]:
    settings = {"safe.directory": "*", "core.hooksPath": "/dev/null", "core.fsmonitor": "false"}
    identity = {"NAME": "Voltaire", "EMAIL": "voltaire@localhost"}
    own = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "true",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for n, (key, value) in enumerate(settings.items()):
        own |= {f"GIT_CONFIG_KEY_{n}": key, f"GIT_CONFIG_VALUE_{n}": value}
    for who in ("AUTHOR", "COMMITTER"):
        own |= {f"GIT_{who}_{key}": value for key, value in identity.items()}
    return own


def bounded(limits: SandboxLimits) -> list[str]:
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
