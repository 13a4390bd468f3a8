"""When something may be sent: one line per chat, one over all chats.

Telegram's rates are flexible and undocumented beyond its FAQ
(https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this):
about one message a second in a chat with short bursts, 20 a minute in a group,
about 30 a second over all. A 429 tells the truth and is obeyed, in the chat
that it was said for.
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
class Pace:
    """`burst` calls at once, then one every `seconds`; progress leaves `spare` of the burst to finals."""

    burst: int
    seconds: float
    spare: int


PRIVATE = Pace(burst=5, seconds=1.0, spare=2)
GROUP = Pace(burst=8, seconds=5.0, spare=4)  # at most 8 + 12 in any minute
OVERALL = Pace(burst=20, seconds=1 / 28, spare=5)

_SLOWEST = 8


class Line:
    """Waiters before one bucket, the most urgent first; `width` of them may be inside at a time."""

    def __init__(self, pace: Pace, width: int) -> None:
        self._pace = pace
        self._free = width
        self._waiting: list[tuple[Urgency, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self._tokens = float(pace.burst)
        self._counted = 0.0
        self._closed_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def resting(self) -> float:
        """Seconds for which the line is closed."""
        return max(0.0, self._closed_until - _now())

    def rest(self, seconds: float) -> None:
        self._closed_until = max(self._closed_until, _now() + seconds)

    def ticket(self) -> int:
        """A place in the line, for a call that may have to come again."""
        return next(self._numbers)

    @asynccontextmanager
    async def turn(self, urgency: Urgency, ticket: int) -> AsyncIterator[None]:
        await self._wait(urgency, ticket)
        try:
            yield
        finally:
            self._free += 1
            self._admit()

    async def _wait(self, urgency: Urgency, ticket: int) -> None:
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (urgency, ticket, admitted))
        self._admit()
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                self._free += 1  # admitted and cancelled at the same moment
            admitted.cancel()
            self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self._free:
            urgency, _, admitted = self._waiting[0]
            if not admitted.done() and (delay := self._delay(urgency)) > 0:
                self._try_again(delay)
                return
            heappop(self._waiting)
            if not admitted.done():
                self._tokens -= 1
                self._free -= 1
                admitted.set_result(None)

    def _delay(self, urgency: Urgency) -> float:
        self._refill()
        spare = self._pace.spare if urgency else 0
        missing = 1 + spare - self._tokens
        return max(self.resting, missing * self._pace.seconds if missing > 1e-9 else 0.0)

    def _refill(self) -> None:
        now = _now()
        earned = (now - self._counted) / self._pace.seconds
        self._tokens = min(float(self._pace.burst), self._tokens + earned)
        self._counted = now

    def _try_again(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(delay, self._admit)


class Pacer:
    """All that is sent to one chat, one call at a time."""

    def __init__(self, pace: Pace, overall: Line) -> None:
        self._line = Line(pace, width=1)
        self._overall = overall
        self._slowness = 1.0

    @asynccontextmanager
    async def turn(self, urgency: Urgency = Urgency.FINAL) -> AsyncIterator[None]:
        """Holds the chat for one call."""
        tickets = self._line.ticket(), self._overall.ticket()
        async with self._line.turn(urgency, tickets[0]), self._overall.turn(urgency, tickets[1]):
            yield

    async def run(self, call: Callable[[], Awaitable[T]], urgency: Urgency = Urgency.FINAL) -> T:
        """The call's result. It is made again after a 429, which Telegram did not carry out."""
        ticket, overall = self._line.ticket(), self._overall.ticket()
        while True:
            async with self._line.turn(urgency, ticket), self._overall.turn(urgency, overall):
                try:
                    return await call()
                except RetryAfter as refusal:
                    self.rest(refusal)

    async def hint(self, call: Callable[[], Awaitable[object]]) -> None:
        """A call that may be left out: it never waits, and is not made while the chat rests."""
        if self._line.resting:
            return
        try:
            await call()
        except RetryAfter as refusal:
            self.rest(refusal)

    def rest(self, refusal: RetryAfter) -> None:
        assert isinstance(refusal.retry_after, timedelta)  # PTB_TIMEDELTA
        self._line.rest(refusal.retry_after.total_seconds() + 0.1)
        self._slowness = min(_SLOWEST, 2 * self._slowness)

    def interval(self, seconds: float) -> float:
        """A progress interval, longer in a chat that has been refused."""
        return seconds * self._slowness


class Pacers:
    """The pacer of each chat. Telegram's ids of groups are negative."""

    def __init__(self) -> None:
        self._overall = Line(OVERALL, width=100)
        self._pacers: dict[int, Pacer] = {}

    def of(self, chat_id: int) -> Pacer:
        if chat_id not in self._pacers:
            self._pacers[chat_id] = Pacer(GROUP if chat_id < 0 else PRIVATE, self._overall)
        return self._pacers[chat_id]


def _now() -> float:
    return asyncio.get_running_loop().time()
