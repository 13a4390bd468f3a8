"""The user that tools act as: the one that runs this program or, under root, an unprivileged one.

Both have unprivileged_server.py start what runs in a sandbox. It also ends all of that when this program dies.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from agent.aio import complete, until_readable
from agent.sandbox.openat2 import closing_fd

T = TypeVar("T")

# systemd's scheme leaves 60578-61183 unused, and Debian assigns nothing there.
UNPRIVILEGED_UID = 60579

ANSWER_SECONDS = 30
CLOSE_SECONDS = 10  # killed processes that take longer hang in the kernel
ANSWER_BYTES = 1 << 18
MOUNT_BASES = ("/mnt", "/media", "/srv", "/opt", "/run", "/var")


class ProcessHandle:
    """A process by its pidfd, so that no signal reaches another process that took over its id."""

    def __init__(self, pidfd: int) -> None:
        self._pidfd = pidfd

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def wait(self) -> None:
        """Return once it has ended (and, for an init, its whole PID namespace with it)."""
        with closing_fd(os.dup(self._pidfd)) as fd:  # several may wait
            await until_readable(fd)

    def close(self) -> None:
        os.close(self._pidfd)


class ToolUser:
    """The user `uid`, and its server, which is started at the first request, and again if it has died."""

    uid: int

    def __init__(self) -> None:
        self.server: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def mount_base(self, sources: Sequence[str]) -> str:
        """The directory below which the server mounts these host paths for bubblewrap; "" where it need not."""
        return ""

    def reachable(self, sources: Sequence[str]) -> list[str]:
        """The paths at which bubblewrap will find these host paths."""
        base = self.mount_base(sources)
        return [f"{base}/{number}" if base else path for number, path in enumerate(sources)]

    async def start(
        self, argv: Sequence[str], *, fds: Sequence[int], out: int, sources: Sequence[str]
    ) -> ProcessHandle:
        """Start a process with an empty environment and only these descriptors; its output goes to `out`."""
        _, pidfd = await self._request(
            "start",
            [*fds, out],
            argv=list(argv),
            numbers=list(fds),
            uid=self.uid,
            base=self.mount_base(sources),
            sources=list(sources),
        )
        return ProcessHandle(pidfd)

    async def listen(self, pid: int) -> int:
        """A listening socket in the network namespace of that process; see unprivileged_server.listen."""
        _, listener = await self._request("listen", [], pid=pid)
        return int(listener)

    async def beneath(self, operation: Callable[..., T], root: Path, path: str, *sources: int) -> T:
        """Call a function of openat2.py for a path beneath the directory `root` and return its result."""
        raise NotImplementedError

    async def _request(self, name: str, fds: Sequence[int], **arguments: Any) -> tuple[Any, Any]:
        """The answer's value and descriptor, either may be None; raises the server's OSError."""
        with ExitStack() as stack:
            mine, theirs = (stack.enter_context(s) for s in socket.socketpair())
            body = stack.enter_context(os.fdopen(os.memfd_create("request"), "wb", buffering=0))
            body.write(json.dumps({"name": name, **arguments}).encode())
            passed = [theirs.fileno(), body.fileno(), *fds]
            try:
                socket.send_fds(self._connected(), [b"?"], passed)
            except BrokenPipeError:  # it died
                self._disconnect()
                socket.send_fds(self._connected(), [b"?"], passed)
            theirs.close()
            return await receive_answer(mine)

    def _connected(self) -> socket.socket:
        if self._requests is None:
            self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self.server = start_server(theirs.fileno())
        return self._requests

    def _disconnect(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None

    async def close(self) -> None:
        """End the server, and with it whatever still runs in a sandbox."""
        self._disconnect()  # the server then ends what runs, and itself
        if self.server is not None and self.server.poll() is None:
            handle = ProcessHandle(os.pidfd_open(self.server.pid))
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await handle.wait()
            except TimeoutError:
                handle.kill()
            handle.close()
            self.server.wait()


class CurrentUser(ToolUser):
    """The user that runs this program opens files and owns the workspaces."""

    def __init__(self) -> None:
        super().__init__()
        self.uid = os.geteuid()

    async def beneath(self, operation: Callable[..., T], root: Path, path: str, *sources: int) -> T:
        with directory(root) as fd:
            if sources:  # writing takes longer than opening
                return await asyncio.to_thread(operation, fd, path, *sources)
            return operation(fd, path)


class UnprivilegedUser(ToolUser):
    """Another user, for a program that root runs."""

    uid = UNPRIVILEGED_UID

    def mount_base(self, sources: Sequence[str]) -> str:
        """A directory of the host that contains no source: mounting over it hides none from the server."""
        real = [os.path.realpath(source) for source in sources]
        for base in MOUNT_BASES:
            inside = f"{os.path.realpath(base)}/"
            if Path(base).is_dir() and not any(source.startswith(inside) for source in real):
                return base
        return MOUNT_BASES[0]

    async def beneath(self, operation: Callable[..., T], root: Path, path: str, *sources: int) -> T:
        with directory(root) as fd:
            value, opened = await self._request(operation.__name__, [fd, *sources], path=path)
        result: T = value if opened is None else opened
        return result


@asynccontextmanager
async def open_tool_user() -> AsyncIterator[ToolUser]:
    """An unprivileged user for root; else the one that runs this program."""
    user = CurrentUser() if os.geteuid() else UnprivilegedUser()
    try:
        yield user
    finally:
        await complete(user.close())


def directory(path: Path) -> AbstractContextManager[int]:
    """A descriptor of a directory, for use in paths and by openat2.py."""
    return closing_fd(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))


_ISOLATED = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from agent.sandbox import unprivileged_server; unprivileged_server.main(int(sys.argv[2]))"
)


def start_server(requests: int) -> "subprocess.Popen[bytes]":
    """Start unprivileged_server.py, which inherits `requests`, in an isolated interpreter without site-packages."""
    code = os.fspath(Path(__file__).parents[2])
    argv = [sys.executable, "-I", "-S", "-c", _ISOLATED, code, str(requests)]
    return subprocess.Popen(
        argv, env={}, pass_fds=[requests], stdin=subprocess.DEVNULL, cwd="/", start_new_session=True
    )


async def receive_answer(reply: socket.socket) -> tuple[Any, int | None]:
    """The value and the descriptor of the server's answer; raises the server's OSError."""
    reply.setblocking(False)
    with suppress(TimeoutError):  # it may have come while this process stood still
        async with asyncio.timeout(ANSWER_SECONDS):
            await until_readable(reply.fileno())
    try:
        text, fds, _, _ = socket.recv_fds(reply, ANSWER_BYTES, 1)
    except BlockingIOError:
        raise OSError(f"there was no answer in {ANSWER_SECONDS} s") from None
    if not text:
        raise OSError("there was no answer")
    answer = json.loads(text)
    if "errno" in answer:
        raise OSError(answer["errno"], answer["strerror"])
    return answer.get("value"), fds[0] if fds else None
