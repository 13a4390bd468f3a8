"""The sandboxes of all chats of a program, one below the state directory for each chat."""

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from agent.errors import ToolError
from agent.sandbox import bubblewrap, cgroup, rootfs
from agent.sandbox.hosts import Hosts
from agent.sandbox.limits import HostRepo, SandboxLimits
from agent.sandbox.privileges import CurrentUser, open_tool_user
from agent.sandbox.sandbox import Sandbox
from agent.sandbox.sandbox_config import SandboxConfig

PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Sandboxes:
    def __init__(self, config: SandboxConfig, chats: Path) -> None:
        self._config = config
        self._chats = chats
        self._known: dict[str, Sandbox] = {}

    async def of(self, chat: str) -> Sandbox:
        """The chat's sandbox; its workspace is made on first use."""
        if chat not in self._known:
            workspace = self._chats / folder_name(chat) / "work"
            await asyncio.to_thread(make_workspace, workspace, self._config.user.uid)
            self._known[chat] = Sandbox(self._config, chat, workspace)
        return self._known[chat]


def make_workspace(workspace: Path, uid: int) -> None:
    """Owned by the user that tools act as, also after root and an ordinary user took turns."""
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
    """A directory name for a chat: its own name where that is plain, else with a hash."""
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
) -> AsyncIterator[Sandboxes]:
    """Prepare what sandboxes need below the state directory; on leaving, what was started is ended.

    `hosts` may be reached through a proxy; None: there is no network at all.
    """
    prepared = await asyncio.to_thread(rootfs.prepare, state / "sandbox", zone)
    async with open_tool_user() as user:
        config = SandboxConfig(
            user=user,
            rootfs=prepared,
            limits=limits,
            repos={repo.name: repo for repo in repos},
            zone=zone,
            report=report,
            hosts=hosts,
            # Another user may not join a group that root's service was given.
            cgroups=cgroup.delegated() if isinstance(user, CurrentUser) else None,
            bwrap=await bubblewrap.find(),
        )
        yield Sandboxes(config, state / "chats")
