"""The queue behind getUpdates: numbers, acknowledgement, redelivery, two pollers.

Behaviour of tdlib/telegram-bot-api (`Client::do_get_updates`), except where a name here says
otherwise. Waiting is measured in real time, ages by the server's clock.
"""

import asyncio
import random
import time
from dataclasses import dataclass

from bot.localgram.clock import Clock
from bot.localgram.feed import Feed
from bot.localgram.wire import ApiError, Json

BY_DEFAULT_LEFT_OUT = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
KEPT_SECONDS = {"callback_query": 150.0, "inline_query": 30.0}
MESSAGE_SECONDS = 86_400.0
IDLE_JUMP_SECONDS = 7 * 86_400.0
CONFLICT_SECONDS = 3.0
SPIN_SECONDS = 0.5
WEBHOOK_ACTIVE = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
TWO_POLLERS = (
    "terminated by other getUpdates request; make sure that only one bot instance is running"
)


@dataclass(frozen=True, slots=True)
class Update:
    id: int
    kind: str
    body: object
    expires: float

    def json(self) -> Json:
        return {"update_id": self.id, self.kind: self.body}


class Updates:
    """`repeat_seconds`: a call that repeats its offset within that time waits that long
    (Telegram: 3); 0 answers at once, so that a bot under test stops without waiting."""

    def __init__(self, clock: Clock, feed: Feed, repeat_seconds: float = 0.0) -> None:
        self._clock = clock
        self._feed = feed
        self._repeat = repeat_seconds
        self._next = random.randrange(2_000_001, 900_000_000)
        self._newest = clock()
        self._queue: list[Update] = []
        self._again: list[Update] = []  # duplicates, by fault
        self._allowed: frozenset[str] | None = None
        self._poll: asyncio.Future[str] | None = None
        self._came: asyncio.Future[None] | None = None
        self._conflict_free = 0.0
        self._called: tuple[int, float] = (0, -self._repeat)
        self.webhook = False
        self.polls = 0  # calls answered or waiting so far

    @property
    def waiting(self) -> bool:
        """Whether a poll waits for updates now."""
        return self._poll is not None

    @property
    def allowed(self) -> list[str] | None:
        return None if self._allowed is None else sorted(self._allowed)

    def allow(self, kinds: list[str] | None) -> None:
        """Sticky; an empty list means the default, None leaves it as it is."""
        if kinds is not None:
            self._allowed = frozenset(kinds) or None

    def wants(self, kind: str) -> bool:
        if self._allowed is None:
            return kind not in BY_DEFAULT_LEFT_OUT
        return kind in self._allowed

    def put(self, kind: str, body: Json) -> int | None:
        """The number of the new update; None when nobody asked for its kind."""
        return self.inject(kind, body) if self.wants(kind) else None

    def inject(self, kind: str, body: object) -> int:
        """Put an update in as it is: `body` may be any JSON, and "update_id" a kind, too."""
        now = self._clock()
        if now - self._newest > IDLE_JUMP_SECONDS:
            self._next = random.randrange(2_000_001, 900_000_000)
        number, self._next, self._newest = self._next, self._next + 1, now
        self._queue.append(
            Update(number, kind, body, now + KEPT_SECONDS.get(kind, MESSAGE_SECONDS))
        )
        self.wake("")
        return number

    def repeat(self, number: int) -> None:
        """Deliver an update once more, acknowledged or not (a fault)."""
        self._again += [update for update in self._queue if update.id == number]

    def pending(self) -> list[Update]:
        now = self._clock()
        self._queue = [update for update in self._queue if update.expires > now]
        return self._queue

    def acknowledge(self, offset: int) -> None:
        """Forget everything below `offset`; a negative one keeps the last ones."""
        queue = self.pending()
        if offset < 0:
            self._queue = queue[offset:]
        elif offset > 0:
            self._queue = [update for update in queue if update.id >= offset]

    def drop(self) -> None:
        self._queue = []

    async def first(self) -> Update:
        """The oldest waiting update, as soon as there is one (for a webhook)."""
        while not self.pending():
            self._came = asyncio.get_running_loop().create_future()
            await self._came
        return self._queue[0]

    def wake(self, conflict: str) -> None:
        """End the waiting poll: with what there is, or with a conflict's text."""
        if self._came is not None and not self._came.done():
            self._came.set_result(None)
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(conflict)

    async def take(
        self, offset: int, limit: int, seconds: float, allowed: list[str] | None
    ) -> list[Json]:
        """One getUpdates call.

        Raises: ApiError 409.
        """
        if self.webhook:
            raise ApiError(409, WEBHOOK_ACTIVE)
        self.allow(allowed)
        self.wake(TWO_POLLERS)
        self.polls += 1
        limit, seconds = self._paced(offset, limit, seconds)
        self.acknowledge(offset)
        if not self.pending() and not self._again and seconds > 0:
            await self._wait(seconds)
        return self._batch(limit)

    def _paced(self, offset: int, limit: int, seconds: float) -> tuple[int, float]:
        """A call that repeats its offset soon is made to wait; very soon, it gets one update."""
        (before, called), now = self._called, time.monotonic()
        self._called = (offset, now)
        if offset != before or now >= called + self._repeat:
            return limit, seconds
        return 1 if now < called + SPIN_SECONDS else limit, max(seconds, self._repeat)

    async def _wait(self, seconds: float) -> None:
        poll = self._poll = asyncio.get_running_loop().create_future()
        self._feed.wake()
        try:
            async with asyncio.timeout(seconds):
                conflict = await poll
        except TimeoutError:
            return
        finally:
            if self._poll is poll:
                self._poll = None
        if conflict:
            await self._conflict_pause()
            raise ApiError(409, conflict)

    async def _conflict_pause(self) -> None:
        """Conflicts in a row are answered late, so that two bots do not spin."""
        now = time.monotonic()
        pause, self._conflict_free = (
            self._conflict_free - now,
            max(now, self._conflict_free) + CONFLICT_SECONDS,
        )
        if pause > 0:
            await asyncio.sleep(pause)

    def _batch(self, limit: int) -> list[Json]:
        again, self._again = self._again, []
        ready = sorted([*again, *self.pending()], key=lambda update: update.id)
        return [update.json() for update in ready[:limit]]
