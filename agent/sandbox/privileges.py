"""As which user tools act: as the one that runs this program or, under root, as an unprivileged one.

CurrentUser does everything in this process. UnprivilegedUser sends requests to
unprivileged_server.py, a program with root's privileges and a single thread, because only such
a process may fork and change its user.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from agent.sandbox import openat2

# Among the ids that systemd's scheme leaves unused (60578-61183), and not one of Debian's.
UNPRIVILEGED_UID = 60579

ANSWER_SECONDS = 30
ANSWER_BYTES = 1 << 18
MOUNT_BASES = ("/mnt", "/media", "/srv", "/opt", "/run", "/var")


class ProcessHandle:
    """A process by its pidfd, so that no signal reaches a stranger that took over its id.

    `child` is the Popen of a child of ours, which has to be reaped.
    """

    def __init__(self, pidfd: int, child: "subprocess.Popen[bytes] | None" = None) -> None:
        self._pidfd = pidfd
        self._child = child

    def kill(self) -> None:
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except ProcessLookupError:
            pass

    async def wait(self) -> None:
        """Return once it has ended (and, for an init, its whole PID namespace with it)."""
        fd = os.dup(self._pidfd)  # several may wait
        try:
            await readable(fd)
        finally:
            os.close(fd)
        if self._child is not None:
            self._child.wait()

    def close(self) -> None:
        os.close(self._pidfd)


class CurrentUser:
    """The user that runs this program starts bubblewrap, opens files and owns the workspaces.

    The file operations are those of openat2.py, for a path beneath the directory `root`.
    """

    def __init__(self) -> None:
        self.uid = os.geteuid()

    def reachable(self, sources: Sequence[str]) -> list[str]:
        """The paths at which bubblewrap will find these host paths."""
        return list(sources)

    async def start(
        self, argv: Sequence[str], *, fds: Sequence[int], out: int, sources: Sequence[str]
    ) -> ProcessHandle:
        """A process with an empty environment, `fds` and nothing else; its output goes to `out`."""
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
        return ProcessHandle(os.pidfd_open(process.pid), process)

    async def listen(self, pid: int) -> int:
        """A listening socket in the network namespace of that process; see netns_listener.py."""
        mine, theirs = socket.socketpair()
        with mine, theirs:
            helper = run_isolated("netns_listener", pid, theirs.fileno(), fd=theirs.fileno())
            theirs.close()
            try:
                _, listener = await receive_answer(mine)
            finally:
                helper.kill()
                helper.wait()
        assert listener is not None
        return listener

    async def open_file(self, root: Path, path: str) -> int:
        with directory(root) as fd:
            return openat2.open_file(fd, path)

    async def list_directory(self, root: Path, path: str) -> list[str]:
        with directory(root) as fd:
            return openat2.list_directory(fd, path)

    async def replace_file(self, root: Path, path: str, source: int) -> bool:
        with directory(root) as fd:
            return await asyncio.to_thread(openat2.replace_file, fd, path, source)

    async def remove_file(self, root: Path, path: str) -> None:
        with directory(root) as fd:
            openat2.remove_file(fd, path)


class UnprivilegedUser:
    """The same as another user, for a program that root runs.

    The server is started at the first request, and again if it died.
    """

    uid = UNPRIVILEGED_UID

    def __init__(self) -> None:
        self.server: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def reachable(self, sources: Sequence[str]) -> list[str]:
        base = mount_base(sources)
        return [f"{base}/{number}" for number in range(len(sources))]

    async def start(
        self, argv: Sequence[str], *, fds: Sequence[int], out: int, sources: Sequence[str]
    ) -> ProcessHandle:
        _, pidfd = await self._request(
            "start",
            [*fds, out],
            argv=list(argv),
            numbers=list(fds),
            uid=self.uid,
            base=mount_base(sources),
            sources=list(sources),
        )
        assert pidfd is not None
        return ProcessHandle(pidfd)

    async def listen(self, pid: int) -> int:
        _, listener = await self._request("listen", [], pid=pid)
        assert listener is not None
        return listener

    async def open_file(self, root: Path, path: str) -> int:
        with directory(root) as fd:
            _, opened = await self._request("open_file", [fd], path=path)
        assert opened is not None
        return opened

    async def list_directory(self, root: Path, path: str) -> list[str]:
        with directory(root) as fd:
            return list((await self._request("list_directory", [fd], path=path))[0])

    async def replace_file(self, root: Path, path: str, source: int) -> bool:
        with directory(root) as fd:
            return bool((await self._request("replace_file", [fd, source], path=path))[0])

    async def remove_file(self, root: Path, path: str) -> None:
        with directory(root) as fd:
            await self._request("remove_file", [fd], path=path)

    async def _request(
        self, name: str, fds: Sequence[int], **arguments: Any
    ) -> tuple[Any, int | None]:
        """The answer's value and its descriptor; OSError as it happened in the server."""
        with ExitStack() as stack:
            mine, theirs = (stack.enter_context(s) for s in socket.socketpair())
            body = stack.enter_context(os.fdopen(os.memfd_create("request"), "wb", buffering=0))
            body.write(json.dumps({"name": name, **arguments}).encode())
            passed = [theirs.fileno(), body.fileno(), *fds]
            try:
                socket.send_fds(self._connected(), [b"?"], passed)
            except BrokenPipeError:  # it died
                self.close()
                socket.send_fds(self._connected(), [b"?"], passed)
            theirs.close()
            return await receive_answer(mine)

    def _connected(self) -> socket.socket:
        if self._requests is None:
            self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                fd = theirs.fileno()
                self.server = run_isolated("unprivileged_server", fd, fd=fd)
        return self._requests

    def close(self) -> None:
        """End the server, and with it whatever still runs in a sandbox."""
        if self._requests is not None and self.server is not None:
            self._requests.close()
            self._requests = None
            self.server.kill()
            self.server.wait()


ToolUser = CurrentUser | UnprivilegedUser


@asynccontextmanager
async def open_tool_user() -> AsyncIterator[ToolUser]:
    """An unprivileged user for root; else the one that runs this program."""
    if os.geteuid():
        yield CurrentUser()
        return
    user = UnprivilegedUser()
    try:
        yield user
    finally:
        user.close()


@contextmanager
def directory(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def mount_base(sources: Sequence[str]) -> str:
    """A directory of the host that the server mounts over, in its own view, and that hides no source."""

    def hides_one(base: str) -> bool:
        inside = f"{os.path.realpath(base)}/"
        return any(os.path.realpath(source).startswith(inside) for source in sources)

    free = (base for base in MOUNT_BASES if Path(base).is_dir() and not hides_one(base))
    return next(free, MOUNT_BASES[0])


_ISOLATED = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from importlib import import_module; "
    "import_module('agent.sandbox.' + sys.argv[2]).main(*map(int, sys.argv[3:]))"
)


def run_isolated(module: str, *arguments: int, fd: int) -> "subprocess.Popen[bytes]":
    """Start `main` of a module of this package in an interpreter of its own; it inherits `fd`.

    That interpreter has no site-packages: the module may use the standard library only.
    """
    code = os.fspath(Path(__file__).parents[2])
    argv = [sys.executable, "-I", "-S", "-c", _ISOLATED, code, module, *map(str, arguments)]
    return subprocess.Popen(
        argv, env={}, pass_fds=[fd], stdin=subprocess.DEVNULL, cwd="/", start_new_session=True
    )


async def receive_answer(reply: socket.socket) -> tuple[Any, int | None]:
    """The value and the descriptor that an isolated program answers; OSError as it happened there."""
    async with asyncio.timeout(ANSWER_SECONDS):
        await readable(reply.fileno())
    text, fds, _, _ = socket.recv_fds(reply, ANSWER_BYTES, 1, socket.MSG_DONTWAIT)
    if not text:
        raise OSError("there was no answer")
    answer = json.loads(text)
    if "errno" in answer:
        raise OSError(answer["errno"], answer["strerror"])
    return answer.get("value"), fds[0] if fds else None


async def readable(fd: int) -> None:
    """Wait until a descriptor can be read (for a pidfd: until the process has ended)."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(fd)
