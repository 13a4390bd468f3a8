"""As whom tools act: as the user that runs this program, or, for root, as somebody lesser."""

import asyncio
import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from agent.sandbox import openat2
from agent.sandbox.answer import answered
from agent.sandbox.child import Child
from agent.sandbox.isolated import run_isolated


class Actor(Protocol):
    """Starts bubblewrap and opens files. `uid` owns the workspaces."""

    uid: int

    def reach(self, sources: Sequence[str]) -> list[str]:
        """Where bubblewrap will find these host paths."""
        ...

    async def start(
        self, argv: Sequence[str], *, fds: Sequence[int], out: int, sources: Sequence[str]
    ) -> Child:
        """A process with an empty environment, `fds` and nothing else; its output goes to `out`."""
        ...

    async def listen(self, pid: int) -> int:
        """A listening socket in the network of a sandbox's init; see listen.listening."""
        ...

    async def open(self, root: Path, path: str) -> int:
        """See beneath.open_file."""
        ...

    async def names(self, root: Path, path: str) -> list[str]:
        """See beneath.names."""
        ...

    async def replace(self, root: Path, path: str, source: int) -> bool:
        """See beneath.replace."""
        ...

    async def remove(self, root: Path, path: str) -> None:
        """See beneath.remove."""
        ...


@contextmanager
def directory(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


class Own:
    """The ordinary case: the sandbox belongs to the user that runs this program."""

    def __init__(self) -> None:
        self.uid = os.geteuid()

    def reach(self, sources: Sequence[str]) -> list[str]:
        return list(sources)

    async def start(
        self, argv: Sequence[str], *, fds: Sequence[int], out: int, sources: Sequence[str]
    ) -> Child:
        # From the event loop's thread: --die-with-parent fires when the starting thread ends.
        process = subprocess.Popen(  # noqa: ASYNC220 - a vfork, about a millisecond
            argv,
            env={},  # /proc/1/environ of the sandbox shows it
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            start_new_session=True,
            umask=0o022,
        )
        return Child(os.pidfd_open(process.pid), process)

    async def listen(self, pid: int) -> int:
        mine, theirs = socket.socketpair()
        with mine, theirs:
            helper = run_isolated("listen", pid, theirs.fileno(), fd=theirs.fileno())
            theirs.close()
            try:
                _, listener = await answered(mine)
            finally:
                helper.kill()
                helper.wait()
        assert listener is not None
        return listener

    async def open(self, root: Path, path: str) -> int:
        with directory(root) as fd:
            return openat2.open_file(fd, path)

    async def names(self, root: Path, path: str) -> list[str]:
        with directory(root) as fd:
            return openat2.names(fd, path)

    async def replace(self, root: Path, path: str, source: int) -> bool:
        with directory(root) as fd:
            return await asyncio.to_thread(openat2.replace, fd, path, source)

    async def remove(self, root: Path, path: str) -> None:
        with directory(root) as fd:
            openat2.remove(fd, path)
