"""The socket of one call, on which commands in its shell are answered outside of the sandbox.

A folder with nothing but the socket is mounted read-only into the sandbox, where the programs of
/commands connect to it; it belongs to one call and goes with it. No network is opened, and
nothing of the host can be reached but what answers.
"""

import asyncio
import os
import shutil
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from agent.aio import BackgroundTasks
from agent.sandbox.privileges import directory
from agent.sandbox.proxy import accept

NAME = "socket"
AT_ONCE = 16  # connections of one call that are answered at once, a descriptor each
BACKLOG = 1024
YOUNG_SECONDS = 60


class CommandAnswers(Protocol):
    """Answers the commands of one call (agent.shell.broker)."""

    def mark_with(self, mark: Callable[[str], Awaitable[None]]) -> None:
        """Takes what is awaited with where a stranger's text comes from, before the call gets it."""
        ...

    def pause_with(self, paused: Callable[[], AbstractContextManager[None]]) -> None:
        """Takes a context in which the call's time stands still."""
        ...

    def listing(self) -> str:
        """The text of /commands.txt."""
        ...

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        ...


@asynccontextmanager
async def serve_commands(folder: Path, answers: CommandAnswers | None) -> AsyncIterator[str]:
    """The folder to mount, a new one in `folder`; "" without `answers`. On leaving, what is being
    answered is cancelled."""
    if answers is None:
        yield ""
        return
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            listen(sock, place)
            async with BackgroundTasks() as tasks:
                work = accept(sock, answers.serve, AT_ONCE, tasks)
                tasks.start(work, "the commands of a sandbox")
                yield os.fspath(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def listen(sock: socket.socket, place: Path) -> None:
    """Whoever sees the folder may connect: it lies below the state directory, which is closed to others."""
    place.chmod(0o755)
    with directory(place) as fd:  # the whole path may be too long for an address
        sock.bind(f"/proc/self/fd/{fd}/{NAME}")
    (place / NAME).chmod(0o666)
    sock.setblocking(False)
    sock.listen(BACKLOG)


def prepare(folder: Path) -> Path:
    """Make the folder; what a killed program left there, a socket that nobody answers, is removed (but
    not one that another program is just making)."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    old = time.time() - YOUNG_SECONDS
    for place in (place for place in folder.iterdir() if place.stat().st_mtime < old):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock, suppress(OSError):
            sock.setblocking(False)
            with directory(place) as fd:
                try:
                    sock.connect(f"/proc/self/fd/{fd}/{NAME}")
                except (ConnectionRefusedError, FileNotFoundError):
                    shutil.rmtree(place, ignore_errors=True)
    return folder
