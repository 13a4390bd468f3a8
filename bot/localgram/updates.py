"""The queue of updates: numbers, acknowledgement, redelivery, two pollers.

It behaves as tdlib/telegram-bot-api (`Client::do_get_updates`) does.
"""

import asyncio
import contextlib
import random
from dataclasses import dataclass

from bot.localgram.feed import Feed
from bot.localgram.wire import ApiError, Json

TWO_POLLERS = (
    "terminated by other getUpdates request; make sure that only one bot instance is running"
)


@dataclass(frozen=True, slots=True)
class Update:
    id: int
    kind: str
    body: object

    def json(self) -> Json:
        return {"update_id": self.id, self.kind: self.body}


class Updates:
    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._next = random.randrange(2_000_001, 900_000_000)
        self._queue: list[Update] = []
        self._allowed: frozenset[str] = frozenset()
        self._poll: asyncio.Future[str] | None = None
        self.polls = 0  # calls answered or waiting so far

    @property
    def waiting(self) -> bool:
        """Whether a getUpdates call is waiting."""
        return self._poll is not None

    def allow(self, kinds: list[str] | None) -> None:
        """Set allowed_updates, as getUpdates does: an empty list means the default, None changes nothing."""
        if kinds is not None:
            self._allowed = frozenset(kinds)

    def put(self, kind: str, body: Json) -> None:
        """Queue an update if its kind is one of allowed_updates."""
        if kind in self._allowed if self._allowed else kind != "message_reaction":
            self.inject(kind, body)

    def inject(self, kind: str, body: object) -> int:
        """Queue an update unchecked: `body` may be any JSON, and `kind` even "update_id"."""
        number, self._next = self._next, self._next + 1
        self._queue.append(Update(number, kind, body))
        self.wake("")
        return number

    def pending(self) -> list[Update]:
        return self._queue

    def acknowledge(self, offset: int) -> None:
        """Delete the updates below `offset`; a negative offset keeps that many of the newest."""
        if offset < 0:
            self._queue = self._queue[offset:]
        elif offset > 0:
            self._queue = [update for update in self._queue if update.id >= offset]

    def wake(self, conflict: str) -> None:
        """End the waiting getUpdates call with the queued updates, or with a conflict's text."""
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(conflict)

    async def take(
        self, offset: int, limit: int, seconds: float, allowed: list[str] | None
    ) -> list[Json]:
        """Carry out a getUpdates call. Raises ApiError 409."""
        self.allow(allowed)
        self.wake(TWO_POLLERS)
        self.polls += 1
        self.acknowledge(offset)
        if not self._queue and seconds > 0:
            await self._wait(seconds)
        return [update.json() for update in self._queue[:limit]]

    async def _wait(self, seconds: float) -> None:
        poll = self._poll = asyncio.get_running_loop().create_future()
        self._feed.wake()
        conflict = ""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    conflict = await poll
        finally:
            if self._poll is poll:
                self._poll = None
        if conflict:
            raise ApiError(409, conflict)
