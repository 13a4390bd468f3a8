"""Waiting, cancelling and background work in asyncio, where the standard library leaves a gap.

BackgroundTasks   work beside a block, cancelled and awaited at its end
move_on_when      a block that is cancelled when an event is set
complete          work that is completed even if its caller is cancelled
set_within        waits for an event, for a number of seconds
until_readable    waits for a descriptor
output_of         a program that is run to its end
no_answer         why nothing came over the network, in words
"""

import asyncio
import logging
import os
import ssl
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


class BackgroundTasks:
    """Leaving its context cancels the tasks that still run, and waits for their end.

    Unlike a TaskGroup it outlives the failure of a task: that is logged, the others go on.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self.ended()

    async def ended(self) -> None:
        """Wait until the tasks that are running now have ended."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)


@asynccontextmanager
async def move_on_when(event: asyncio.Event) -> AsyncIterator[None]:
    """Cancel the block when the event is set, and go on after it.

    Exceptions of the block and a cancellation from outside pass through.
    """
    try:
        async with asyncio.timeout(None) as scope:
            watcher = asyncio.create_task(expire(scope, event))
            try:
                yield
            finally:
                watcher.cancel()
    except TimeoutError:
        if not scope.expired():
            raise


async def expire(scope: asyncio.Timeout, event: asyncio.Event) -> None:
    await event.wait()
    scope.reschedule(0.0)  # cancelled before the scope is left, so it is still open here


async def complete(work: Coroutine[Any, Any, T], *, grace: float | None = None) -> T:
    """Await the work to its end and return its result; a cancellation meanwhile is raised only then.

    `grace` limits that wait, in seconds; then the work is cancelled as well.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=grace)
        task.cancel()
        raise


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event for at most `seconds`; return whether it is set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True


async def until_readable(fd: int) -> None:
    """Wait until a descriptor can be read (for a pidfd: until the process has ended)."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(fd)


async def output_of(
    *command: str, seconds: float, stdin: bytes = b"", env: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """Run a program to its end; return its exit code and standard output. It does not outlive this call.

    Raises TimeoutError.
    """
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=null, env=env, start_new_session=True
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate(stdin)
    finally:
        if process.returncode is None:
            process.kill()
            await complete(process.wait())
    assert process.returncode is not None
    return process.returncode, output


def no_answer(error: Exception) -> str:
    """Describe for a person why a server gave no answer, without its address, which may hold a secret."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, ssl.SSLError):
        return getattr(cause, "verify_message", "") or "it speaks no TLS"
    if isinstance(cause, OSError) and (cause.errno or 0) > 0:
        return os.strerror(cause.errno or 0)
    return getattr(cause, "strerror", None) or "its answer broke off or cannot be read"
