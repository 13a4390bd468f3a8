"""Rate limits of a messaging app: a token bucket with a queue, final messages before progress."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import IntEnum
from heapq import heappop, heappush
from itertools import count


class Urgency(IntEnum):
    FINAL = 0  # final answers, approvals, alerts, answers to commands
    PROGRESS = 1  # the live view of a turn


@dataclass(frozen=True, slots=True)
class Rate:
    """A token bucket's size and pace.

    `burst` calls at once, then one every `seconds`; progress leaves `spare` of the burst to final messages.
    """

    burst: int
    seconds: float
    spare: int


class RateLimiter:
    """A token bucket with a queue, the most urgent first; at most `calls` calls run at a time."""

    def __init__(self, rate: Rate, calls: int) -> None:
        self._rate = rate
        self._free = calls
        self._queue: list[tuple[Urgency, int, asyncio.Future[None]]] = []
        self._tickets = count()
        self._tokens = float(rate.burst)
        self._refilled_at = 0.0
        self._closed_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def paused(self) -> bool:
        return self._closed_until > loop_time()

    def pause(self, seconds: float) -> None:
        self._closed_until = max(self._closed_until, loop_time() + seconds)

    def ticket(self) -> int:
        """Take a place in the queue; a repeated call keeps it."""
        return next(self._tickets)

    @asynccontextmanager
    async def permit(self, urgency: Urgency, ticket: int) -> AsyncIterator[None]:
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._queue, (urgency, ticket, admitted))
        self._admit()
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                self._free += 1  # admitted and cancelled at the same moment
            admitted.cancel()
            self._admit()
            raise
        try:
            yield
        finally:
            self._free += 1
            self._admit()

    def _admit(self) -> None:
        while self._queue and self._free:
            urgency, _, admitted = self._queue[0]
            if not admitted.done() and (delay := self._delay(urgency)) > 0:
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = asyncio.get_running_loop().call_later(delay, self._admit)
                return
            heappop(self._queue)
            if not admitted.done():
                self._tokens -= 1
                self._free -= 1
                admitted.set_result(None)

    def _delay(self, urgency: Urgency) -> float:
        """Seconds until a call of that urgency may be made."""
        earned = (loop_time() - self._refilled_at) / self._rate.seconds
        self._tokens = min(float(self._rate.burst), self._tokens + earned)
        self._refilled_at = loop_time()
        missing = 1 + (self._rate.spare if urgency else 0) - self._tokens
        refill = missing * self._rate.seconds if missing > 1e-9 else 0.0
        return max(self._closed_until - loop_time(), refill)


def loop_time() -> float:
    return asyncio.get_running_loop().time()
