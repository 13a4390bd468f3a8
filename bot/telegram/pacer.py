"""Rate limits: one for each chat, and one for all of them.

Telegram's rates are flexible and undocumented beyond its FAQ
(https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this):
about one message a second in a chat with short bursts, 20 a minute in a group,
about 30 a second over all. A 429 is obeyed in the chat that it was sent for.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TypeVar

from telegram.error import RetryAfter

from bot.rate_limiter import Rate, RateLimiter, Urgency, now

T = TypeVar("T")


PRIVATE = Rate(burst=5, seconds=1.0, spare=2)
GROUP = Rate(burst=8, seconds=5.0, spare=4)  # at most 8 + 12 in any minute
OVERALL = Rate(burst=20, seconds=1 / 28, spare=5)
OVERALL_CALLS = 100  # in flight at a time


class Pacer:
    """The calls to one chat, one at a time."""

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
        """Make a call that may be left out: it never waits, and is not made while the chat is paused. A 429
        holds back calls of its kind only."""
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
