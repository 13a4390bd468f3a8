"""One running bubblewrap: its start, its output, its status, and its end; and the socket of one call, on which
commands in its shell are answered outside of the sandbox."""

import asyncio
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agent.aio import BackgroundTasks, complete, set_within
from agent.errors import ToolError
from agent.sandbox.bubblewrap import InheritedFds, Layout, arguments
from agent.sandbox.output_buffer import OutputBuffer
from agent.sandbox.privileges import ProcessHandle, ToolUser, directory
from agent.sandbox.proxy import accept

START_SECONDS = 10  # bubblewrap takes milliseconds
END_SECONDS = 10  # killed processes that take longer hang in the kernel
PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Invocation:
    """What to run. `launcher` ends with bubblewrap's path; `texts` and `inputs` hold the content for
    InheritedFds; `fds` are descriptors that the command inherits under the same numbers.

    `blocked`: the command waits for BwrapProcess.release, before which `nested_mounts` have to be verified.
    """

    launcher: Sequence[str]
    command: Sequence[str]
    layout: Layout
    seccomp: bytes
    texts: Mapping[str, bytes]
    inputs: Mapping[str, bytes] = field(default_factory=dict)
    fds: Sequence[int] = ()
    blocked: bool = False
    nested_mounts: Sequence[str] = ()


class BwrapProcess:
    """A running call.

    `ended` is resolved with "" when the command ends, or with the reason by whatever ends it before.
    `init_pid` is the host's pid of the sandbox's first process. `exit_code` stays None where the command
    could not be started.
    """

    def __init__(self) -> None:
        self.output = OutputBuffer()
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.init_pid: int | None = None
        self.exit_code: int | None = None
        self._bwrap: ProcessHandle | None = None
        self._init: ProcessHandle | None = None
        self._started = asyncio.Event()
        self.block_fd: int | None = None
        self._status = b""

    def end(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)

    def release(self) -> None:
        """Let a blocked command start."""
        if self.block_fd is not None:
            os.write(self.block_fd, b"x")

    async def started(self) -> int | None:
        """The init's pid once it is known; None where bubblewrap or the init has ended, or after START_SECONDS."""
        await set_within(self._started, START_SECONDS)
        return self.init_pid

    @property
    def was_started(self) -> bool:
        """Whether the init is known, or has ended."""
        return self._started.is_set()

    def feed_status(self, piece: bytes) -> None:
        """Take lines of bubblewrap's status: {"child-pid": N}, and {"exit-code": N} if the command was started."""
        *lines, self._status = (self._status + piece).split(b"\n")
        for line in filter(None, lines):
            fact = json.loads(line)
            self.exit_code = fact.get("exit-code", self.exit_code)
            if "child-pid" in fact:
                with suppress(ProcessLookupError):  # it has ended already
                    self._init = ProcessHandle(os.pidfd_open(fact["child-pid"]))
                    self.init_pid = fact["child-pid"]
                self._started.set()

    def feed_output(self, piece: bytes) -> None:
        if not self.output.feed(piece):
            self.end(f"Stopped: it printed more than {self.output.limit >> 20} MiB.")

    async def start(
        self, user: ToolUser, invocation: Invocation, out: int, status: int, block: int | None
    ) -> None:
        with ExitStack() as stack:
            seccomp = memfd("seccomp", invocation.seccomp, stack)
            texts = {path: memfd("text", raw, stack) for path, raw in invocation.texts.items()}
            inputs = {name: memfd("input", raw, stack) for name, raw in invocation.inputs.items()}
            sources = invocation.layout.sources
            layout = invocation.layout.at(user.reachable(sources))
            inherited = InheritedFds(seccomp, status, texts, inputs, block)
            # In a memfd, because the sandbox can read /proc/1/cmdline.
            text = b"".join(os.fsencode(a) + b"\0" for a in arguments(layout, inherited))
            args = memfd("args", text, stack)
            argv = [*invocation.launcher, "--args", str(args), "--", *invocation.command]
            fds = [seccomp, status, args, *texts.values(), *inputs.values(), *invocation.fds]
            fds += [] if block is None else [block]
            self._bwrap = await user.start(argv, fds=fds, out=out, sources=sources)
        self._waiter = asyncio.create_task(self.wait(self._bwrap))

    async def wait(self, bwrap: ProcessHandle) -> None:
        await bwrap.wait()
        self._started.set()
        self.end("")

    async def stop(self, status: int) -> None:
        """Return once every process of the sandbox is gone."""
        if self._bwrap is None:
            return
        # If bubblewrap is killed after it made the init and before it woke it, the init sleeps for ever.
        await self.started()
        drain(status, self.feed_status)
        (self._init or self._bwrap).kill()
        async with asyncio.timeout(END_SECONDS):
            if self._init is not None:
                await self._init.wait()
                self._init.close()
            await self._waiter
        self._bwrap.close()


@asynccontextmanager
async def run_bwrap(user: ToolUser, invocation: Invocation) -> AsyncIterator[BwrapProcess]:
    """Start a call; on leaving, every process of it is gone, whatever happened.

    Raises ToolError when the user's server does not start it.
    """
    process = BwrapProcess()
    with ExitStack() as ours, ExitStack() as theirs:
        out, out_end = pipe(ours, theirs)
        status, status_end = pipe(ours, theirs)
        block = None
        if invocation.blocked:
            block, process.block_fd = pipe(theirs, ours)
        follow(out, process.feed_output, ours)
        follow(status, process.feed_status, ours)
        try:
            try:
                await complete(process.start(user, invocation, out_end, status_end, block))
            except OSError as error:
                raise ToolError(f"The command could not be started: {error}.") from error
            theirs.close()
            yield process
        finally:
            # Before the block pipe is closed, which would make bubblewrap start the command.
            await complete(process.stop(status))
            drain(status, process.feed_status)
            drain(out, process.feed_output)


def pipe(reading: ExitStack, writing: ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    reading.callback(os.close, reader)
    writing.callback(os.close, writer)
    return reader, writer


def memfd(name: str, content: bytes, stack: ExitStack) -> int:
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    stack.callback(os.close, fd)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def follow(fd: int, feed: Callable[[bytes], None], stack: ExitStack) -> None:
    """Feed what arrives in a pipe, one piece per event: a flood must not hold up the event loop."""
    loop = asyncio.get_running_loop()
    os.set_blocking(fd, False)

    def ready() -> None:
        with suppress(BlockingIOError):
            if not read_piece(fd, feed):
                loop.remove_reader(fd)

    loop.add_reader(fd, ready)
    stack.callback(loop.remove_reader, fd)


def drain(fd: int, feed: Callable[[bytes], None]) -> None:
    """Feed what is in the pipe now, without waiting for its end: another process may still hold it."""
    with suppress(BlockingIOError):
        while read_piece(fd, feed):
            pass


def read_piece(fd: int, feed: Callable[[bytes], None]) -> bool:
    """Feed one piece; False at the end of the pipe. BlockingIOError where it is empty."""
    piece = os.read(fd, PIECE)
    if piece:
        feed(piece)
    return bool(piece)


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
    """Serve the commands of one call for the block; yield the new folder to mount, "" without `answers`.
    Commands that still run at the end of the block are cancelled."""
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


def prepare_sockets(folder: Path) -> Path:
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
