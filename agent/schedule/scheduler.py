"""Wakes the job runner when something falls due or was delivered, and twice a minute besides.

The triggers live in APScheduler's memory alone and are made anew from the rows
at every start. A timer is not enough by itself: after a suspend or a jump of
the clock it would fire late, so the rows are read regularly.
"""

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any, Self

from agent.schedule.job_runner import JobRunner
from agent.store.errors import StoreError

log = logging.getLogger(__name__)

PASS_SECONDS = 30


class Scheduler:
    """An async context manager around the runner; `wake` after a job was made or changed."""

    def __init__(self, runner: JobRunner, pass_seconds: float = PASS_SECONDS) -> None:
        self.runner = runner
        self._pass_seconds = pass_seconds
        self._wanted = asyncio.Event()
        self._triggers: Any = None
        self._loop: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        from apscheduler.schedulers.asyncio import AsyncIOScheduler

        self._triggers = AsyncIOScheduler(timezone=UTC)  # type: ignore[no-untyped-call]
        self._triggers.add_job(self._fired, "interval", seconds=self._pass_seconds, coalesce=True)
        self._triggers.start()
        self.runner.store.outbox.on_end.append(self._delivered)
        self._wanted.set()
        self._loop = asyncio.create_task(self._run(), name="scheduler")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._loop
        self.runner.store.outbox.on_end.remove(self._delivered)
        self._triggers.shutdown(wait=False)
        self._loop.cancel()
        await asyncio.wait([self._loop])

    def wake(self) -> None:
        """Read the rows now."""
        self._wanted.set()

    async def _fired(self) -> None:
        self._wanted.set()  # a coroutine, because APScheduler would call a function in a thread

    def _delivered(self) -> None:
        """What waited for the end of this one may run now."""
        if self.runner.open:
            self._wanted.set()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                try:
                    next_at = await self.runner.run_pass(tasks)
                except StoreError as error:
                    log.warning("the schedule could not be read, trying again: %s", error)
                    continue
                if next_at is not None:
                    at = datetime.fromtimestamp(next_at, UTC)
                    options = {"id": "next", "replace_existing": True, "misfire_grace_time": None}
                    self._triggers.add_job(self._fired, "date", run_date=at, **options)
