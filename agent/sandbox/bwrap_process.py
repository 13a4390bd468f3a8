"""One bubblewrap: a command inside it, watched until it ends or is ended."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from agent.sandbox.child import Child
from agent.sandbox.layout import Layout, arguments
from agent.sandbox.output_buffer import OutputBuffer
from agent.sandbox.privileges import Actor

_T = TypeVar("_T")

_END_SECONDS = 10  # killed processes that are still there after this hang in the kernel


@dataclass(frozen=True, slots=True)
class Descriptors:
    """What bubblewrap inherits; see Layout."""

    seccomp: int
    status: int
    report: int
    block: int | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What to run; `launcher` ends with bubblewrap's path. `layout` places the descriptors and the reachable paths of `sources`.

    `inner`: mount points to be verified before the command starts.
    """

    launcher: Sequence[str]
    command: Sequence[str]
    sources: Sequence[str]
    layout: Callable[[Descriptors, Sequence[str]], Layout]
    seccomp: bytes
    report: bytes
    blocked: bool = False  # the command waits for Bubble.release
    inner: Sequence[str] = ()


@dataclass
class BwrapProcess:
    """A running call. `verdict` is set by whatever ends it: "" when the command ended."""

    child: Child
    printed: OutputBuffer
    verdict: "asyncio.Future[str]"
    init: Child | None = None
    init_pid: int | None = None
    exit_code: int | None = None
    met: asyncio.Event = field(default_factory=asyncio.Event)
    block_fd: int | None = None
    _status: bytes = field(default=b"")

    def end(self, reason: str) -> None:
        if not self.verdict.done():
            self.verdict.set_result(reason)

    def release(self) -> None:
        """Let a blocked command start."""
        if self.block_fd is not None:
            os.write(self.block_fd, b"x")

    async def introduced(self, other: "asyncio.Future[Any]") -> None:
        """Return once the init is known, or the other is done."""
        met = asyncio.ensure_future(self.met.wait())
        await asyncio.wait({met, other}, timeout=_END_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        met.cancel()

    def take_status(self, piece: bytes) -> None:
        """A line {"child-pid": N} once it exists, {"exit-code": N} if the command could be started."""
        *lines, self._status = (self._status + piece).split(b"\n")
        for line in filter(None, lines):
            fact = json.loads(line)
            self.exit_code = fact.get("exit-code", self.exit_code)
            if "child-pid" in fact:
                self._meet(int(fact["child-pid"]))

    def take_output(self, piece: bytes) -> None:
        if not self.printed.take(piece):
            self.end(f"Stopped: it printed more than {self.printed.limit >> 20} MiB.")

    def _meet(self, pid: int) -> None:
        try:
            self.init, self.init_pid = Child(os.pidfd_open(pid)), pid
        except ProcessLookupError:  # it has ended already
            pass
        self.met.set()


@asynccontextmanager
async def blown(actor: Actor, order: Order) -> AsyncIterator[BwrapProcess]:
    """Start the order; on leaving, every process of it is gone, whatever happened."""
    loop = asyncio.get_running_loop()
    with ExitStack() as ours:
        (out, status, block, child), interrupted = await _whole(_start(actor, order, ours))
        ours.callback(child.close)
        bubble = BwrapProcess(child, OutputBuffer(), loop.create_future(), block_fd=block)
        ended = loop.create_task(_ended(bubble))
        _follow(loop, out, bubble.take_output, ours)
        _follow(loop, status, bubble.take_status, ours)
        try:
            if interrupted:
                raise asyncio.CancelledError
            yield bubble
        finally:
            await asyncio.shield(_burst(bubble, ended, status))
            _drain(status, bubble.take_status)
            _drain(out, bubble.take_output)


async def _whole(work: Coroutine[Any, Any, _T]) -> tuple[_T, bool]:
    """The result, and whether cancellation came meanwhile: what was started must be known to us."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task), False
    except asyncio.CancelledError:
        return await task, True


async def _start(actor: Actor, order: Order, ours: ExitStack) -> tuple[int, int, int | None, Child]:
    with ExitStack() as theirs:
        out, out_end = _pipe(ours, theirs)
        status, status_end = _pipe(ours, theirs)
        seccomp = _memfd("seccomp", order.seccomp, theirs)
        report = _memfd("report", order.report, theirs)
        block_end, block = _pipe(theirs, ours) if order.blocked else (None, None)
        layout = order.layout(
            Descriptors(seccomp, status_end, report, block_end), actor.reach(order.sources)
        )
        text = b"".join(os.fsencode(a) + b"\0" for a in arguments(layout))
        args = _memfd("args", text, theirs)
        argv = [*order.launcher, "--args", str(args), "--", *order.command]
        fds = [seccomp, status_end, report, args, *filter(None, [block_end])]
        child = await actor.start(argv, fds=fds, out=out_end, sources=order.sources)
    return out, status, block, child


def _pipe(reading: ExitStack, writing: ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    reading.callback(os.close, reader)
    writing.callback(os.close, writer)
    return reader, writer


def _memfd(name: str, content: bytes, theirs: ExitStack) -> int:
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    theirs.callback(os.close, fd)
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _follow(
    loop: asyncio.AbstractEventLoop, fd: int, take: Callable[[bytes], None], ours: ExitStack
) -> None:
    os.set_blocking(fd, False)

    def ready() -> None:
        if not _read(fd, take):
            loop.remove_reader(fd)

    loop.add_reader(fd, ready)
    ours.callback(loop.remove_reader, fd)


def _read(fd: int, take: Callable[[bytes], None]) -> bool:
    """Whether more may come."""
    try:
        piece = os.read(fd, 1 << 16)
    except BlockingIOError:
        return True
    if piece:
        take(piece)
    return bool(piece)


def _drain(fd: int, take: Callable[[bytes], None]) -> None:
    """What is in the pipe now; its end may never come while a descriptor of it lives on."""
    while True:
        try:
            piece = os.read(fd, 1 << 16)
        except BlockingIOError:
            return
        if not piece:
            return
        take(piece)


async def _ended(bubble: BwrapProcess) -> None:
    await bubble.child.wait()
    bubble.end("")


async def _burst(bubble: BwrapProcess, ended: "asyncio.Task[None]", status: int) -> None:
    # Killed between making the init and waking it, bubblewrap would leave it asleep for ever.
    await bubble.introduced(ended)
    _drain(status, bubble.take_status)
    async with asyncio.timeout(_END_SECONDS):
        if bubble.init is not None:
            bubble.init.kill()
            await bubble.init.wait()
            bubble.init.close()
        else:
            bubble.child.kill()
        await ended
    _reap(bubble.init_pid)


def _reap(pid: int | None) -> None:
    """An init that outlived bubblewrap is ours to reap where we are a container's process 1."""
    if pid is not None and os.getpid() == 1:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
