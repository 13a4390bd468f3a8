"""Waiting and background work in asyncio, where the standard library leaves a gap."""

import asyncio
import logging
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

log = logging.getLogger(__name__)


class BackgroundTasks:
    """Leaving its context cancels whoever still works, and waits for their end.

    Unlike a TaskGroup it outlives a member's failure: that is logged, the others go on.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def start(self, work: Coroutine[Any, Any, object], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)


async def unless(event: asyncio.Event, work: Coroutine[Any, Any, object]) -> None:
    """Do the work, or cancel it when the event is set; its errors are raised."""
    task, called = asyncio.create_task(work), asyncio.create_task(event.wait())
    try:
        await asyncio.wait({task, called}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        called.cancel()
        if not task.done():
            task.cancel()
        await asyncio.wait({task, called})
    if not task.cancelled():
        task.result()
