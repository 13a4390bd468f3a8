"""Wakes the rounds when something falls due or was delivered, and twice a minute besides.

The triggers live in APScheduler's memory alone and are made anew from the rows
at every start. A timer is not enough by itself: after a suspend or a jump of
the clock it would ring late, so the rows are looked at regularly.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from agent.schedule.occurrences import Rounds

log = logging.getLogger(__name__)

LOOK_SECONDS = 30


class Scheduler:
    """An async context manager around the rounds; `wake` after a job was made or changed."""

    def __init__(self, rounds: Rounds, look_seconds: float = LOOK_SECONDS) -> None:
        self.rounds = rounds
        self._look_seconds = look_seconds
        self._wanted = asyncio.Event()
        self._triggers: Any = None
        self._loop: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        from apscheduler.schedulers.asyncio import AsyncIOScheduler

        await self.rounds.recover()
        self._triggers = AsyncIOScheduler(timezone=UTC)  # type: ignore[no-untyped-call]
        self._triggers.add_job(self.wake, "interval", seconds=self._look_seconds, coalesce=True)
        self._triggers.start()
        self.rounds.store.outbox.on_end.append(self._delivered)
        self._wanted.set()
        self._loop = asyncio.create_task(self._work(), name="scheduler")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._loop
        self.rounds.store.outbox.on_end.remove(self._delivered)
        self._triggers.shutdown(wait=False)
        self._loop.cancel()
        await asyncio.wait([self._loop])

    async def wake(self) -> None:
        """Look at the rows now."""
        self._wanted.set()

    def wake_soon(self) -> None:
        """The same, for those who do not wait."""
        self._wanted.set()

    def _delivered(self) -> None:
        """What waited for this one to end may run now."""
        if self.rounds.waits:
            self._wanted.set()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                await self._round(tasks)

    async def _round(self, tasks: asyncio.TaskGroup) -> None:
        from agent.store.errors import StoreError

        try:
            upcoming = await self.rounds.make(tasks)
        except StoreError as error:
            log.warning("the schedule could not be read, trying again: %s", error)
            return
        if upcoming is not None:
            self._ring(upcoming, self.wake)

    def _ring(self, at: float, call: Callable[[], Any]) -> None:
        when = datetime.fromtimestamp(at, UTC)
        options = {"id": "next", "replace_existing": True, "misfire_grace_time": None}
        self._triggers.add_job(call, "date", run_date=when, **options)
