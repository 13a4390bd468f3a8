"""The socket of one call, on which commands in its shell are answered outside of the sandbox.

A folder that holds only the socket is mounted read-only into the sandbox, where the programs of
/commands connect to it; it is removed at the call's end. No network is opened, and nothing of the
host can be reached but what answers here.
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
AT_ONCE = 16  # concurrent connections of one call, with a descriptor each
BACKLOG = 1024
YOUNG_SECONDS = 60


class CommandAnswers(Protocol):
    """Answers the commands of one call (agent.shell.broker).

    The sandbox sets `mark`, to be awaited with the source of a stranger's text before the call gets it, and
    `waiting`, a context in which the call's time limit stands still.
    """

    mark: Callable[[str], Awaitable[None]]
    waiting: Callable[[], AbstractContextManager[None]]

    def listing(self) -> str:
        """The text of /commands.txt."""
        ...

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        ...


@asynccontextmanager
async def serve_commands(folder: Path, answers: CommandAnswers | None) -> AsyncIterator[str]:
    """The folder to mount, a new one in `folder`; "" without `answers`. Commands that still run are
    cancelled on leaving."""
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
    """Listen in a folder. Everybody who can see it may connect: the state directory above is closed to others."""
    place.chmod(0o755)
    with directory(place) as fd:  # the path itself may be too long for an address
        sock.bind(f"/proc/self/fd/{fd}/{NAME}")
    (place / NAME).chmod(0o666)
    sock.setblocking(False)
    sock.listen(BACKLOG)


def prepare(folder: Path) -> Path:
    """Make the folder of all calls, and remove sockets without a listener, which a killed program has left.
    Young ones stay: another program may be about to listen."""
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
