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
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

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
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

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
    """The user that runs this program starts bubblewrap, opens files and owns the workspaces."""

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

    async def beneath(self, operation: Callable[..., T], root: Path, path: str, *sources: int) -> T:
        """What a function of openat2.py gives for a path beneath the directory `root`."""
        with directory(root) as fd:
            if sources:  # it writes what these descriptors hold
                return await asyncio.to_thread(operation, fd, path, *sources)
            return operation(fd, path)


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
        return ProcessHandle(pidfd)

    async def listen(self, pid: int) -> int:
        _, listener = await self._request("listen", [], pid=pid)
        return int(listener)

    async def beneath(self, operation: Callable[..., T], root: Path, path: str, *sources: int) -> T:
        with directory(root) as fd:
            value, opened = await self._request(operation.__name__, [fd, *sources], path=path)
        result: T = value if opened is None else opened
        return result

    async def _request(self, name: str, fds: Sequence[int], **arguments: Any) -> tuple[Any, Any]:
        """The answer's value and its descriptor (None: without); OSError as it happened in the server."""
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
    real = [os.path.realpath(source) for source in sources]
    for base in MOUNT_BASES:
        inside = f"{os.path.realpath(base)}/"
        if Path(base).is_dir() and not any(source.startswith(inside) for source in real):
            return base
    return MOUNT_BASES[0]


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
