"""When something may be sent: one rate limit per chat, one over all chats.

Telegram's rates are flexible and undocumented beyond its FAQ
(https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this):
about one message a second in a chat with short bursts, 20 a minute in a group,
about 30 a second over all. A 429 is obeyed in the chat that it was sent for.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from heapq import heappop, heappush
from itertools import count
from typing import TypeVar

from telegram.error import RetryAfter

T = TypeVar("T")


class Urgency(IntEnum):
    FINAL = 0  # final answers, approvals, alerts, answers to commands
    PROGRESS = 1  # the live view of a turn


@dataclass(frozen=True, slots=True)
class Rate:
    """`burst` calls at once, then one every `seconds`; progress leaves `spare` of the burst to finals."""

    burst: int
    seconds: float
    spare: int


PRIVATE = Rate(burst=5, seconds=1.0, spare=2)
GROUP = Rate(burst=8, seconds=5.0, spare=4)  # at most 8 + 12 in any minute
OVERALL = Rate(burst=20, seconds=1 / 28, spare=5)
OVERALL_CALLS = 100  # in flight at a time


class RateLimiter:
    """A token bucket with a queue before it, the most urgent first; at most `calls` run at a time."""

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
        return self._closed_until > now()

    def pause(self, seconds: float) -> None:
        self._closed_until = max(self._closed_until, now() + seconds)

    def ticket(self) -> int:
        """A place in the queue, kept by a call that is made again."""
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
        earned = (now() - self._refilled_at) / self._rate.seconds
        self._tokens = min(float(self._rate.burst), self._tokens + earned)
        self._refilled_at = now()
        missing = 1 + (self._rate.spare if urgency else 0) - self._tokens
        refill = missing * self._rate.seconds if missing > 1e-9 else 0.0
        return max(self._closed_until - now(), refill)


class Pacer:
    """All that is sent to one chat, one call at a time."""

    def __init__(self, rate: Rate, overall: RateLimiter) -> None:
        self._chat = RateLimiter(rate, calls=1)
        self._overall = overall
        self._left_out_until: dict[str, float] = {}  # by kind of call

    @asynccontextmanager
    async def permit(
        self, urgency: Urgency = Urgency.FINAL, tickets: tuple[int, int] | None = None
    ) -> AsyncIterator[None]:
        """Holds the chat for one call, in its place in both queues."""
        chat, overall = tickets or (self._chat.ticket(), self._overall.ticket())
        async with self._chat.permit(urgency, chat), self._overall.permit(urgency, overall):
            yield

    async def run(self, call: Callable[[], Awaitable[T]], urgency: Urgency = Urgency.FINAL) -> T:
        """The call's result. It is made again after a 429, which Telegram did not carry out."""
        tickets = self._chat.ticket(), self._overall.ticket()
        while True:
            async with self.permit(urgency, tickets):
                try:
                    return await call()
                except RetryAfter as refusal:
                    self.pause(refusal)

    async def run_unless_paused(self, kind: str, call: Callable[[], Awaitable[object]]) -> None:
        """A call that may be left out: it never waits, and is not made while the chat is paused. A 429
        keeps back calls of its own kind, and nothing else."""
        if self._chat.paused or self._left_out_until.get(kind, 0.0) > now():
            return
        try:
            await call()
        except RetryAfter as refusal:
            self._left_out_until[kind] = now() + seconds_of(refusal)

    def pause(self, refusal: RetryAfter) -> None:
        self._chat.pause(seconds_of(refusal))


class Pacers:
    """The pacer of each chat. Telegram's ids of groups are negative."""

    def __init__(self) -> None:
        self._overall = RateLimiter(OVERALL, OVERALL_CALLS)
        self._pacers: dict[int, Pacer] = {}

    def of(self, chat_id: int) -> Pacer:
        if chat_id not in self._pacers:
            self._pacers[chat_id] = Pacer(GROUP if chat_id < 0 else PRIVATE, self._overall)
        return self._pacers[chat_id]


def seconds_of(refusal: RetryAfter) -> float:
    """How long Telegram wants to be left alone."""
    assert isinstance(refusal.retry_after, timedelta)  # PTB_TIMEDELTA
    return refusal.retry_after.total_seconds() + 0.1


def now() -> float:
    return asyncio.get_running_loop().time()
