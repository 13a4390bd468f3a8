"""Whose turn it is on the GPU: shared by the bot and every command-line process.

More urgent goes first; among equals the chat that was served longest ago, so
that nobody starves. Scheduled work that has waited two minutes counts as a
person's. Idle work is told to drop when somebody else waits. The lane is held
for one request at a time; a turn is open from its message to its answer, and
what must not cut into turns waits for `between_turns`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

from backend.protocol import IDLE, PERSON, QueueState

AGED_SECONDS = 120.0
REMEMBERED = 1000  # chats
TURN_PATIENCE = 600.0  # seconds: a turn may wait for a person's word longer than anybody else can
HOT = "hot"  # closed for heat: holders wait too, between two requests


@dataclass(eq=False, slots=True)
class Ticket:
    """One waiter or holder; `tell` hears of each change of its place."""

    chat: str
    priority: int
    since: float
    tell: Callable[[QueueState], None]
    granted: asyncio.Event = field(default_factory=asyncio.Event)
    wanted: bool = False
    told: QueueState | None = None

    def say(self, state: QueueState) -> None:
        if state != self.told:
            self.told = state
            self.tell(state)


class GpuQueue:
    """`capacity` turns run at once (llama-server's slots)."""

    def __init__(self, capacity: int = 1, now: Callable[[], float] = time.monotonic) -> None:
        self.capacity = capacity
        self.holders: list[Ticket] = []
        self.waiters: list[Ticket] = []
        self.demand = asyncio.Event()  # somebody waits
        self.turns: list[Ticket] = []  # open ones
        self._arriving: list[Ticket] = []  # turns that wait to be opened
        self._ending: dict[str, str] = {}  # open turns go on to their end, no new one begins
        self._turned = asyncio.Event()
        self._served: dict[str, float] = {}
        self._closed: dict[str, str] = {}
        self._emptied = asyncio.Event()
        self._now = now

    @property
    def reason(self) -> str | None:
        """Why nobody is let in now, as a sentence."""
        return next(iter([*self._closed.values(), *self._ending.values()]), None)

    @property
    def person_waits(self) -> bool:
        return any(ticket.priority < IDLE for ticket in self.waiters)

    @asynccontextmanager
    async def hold(
        self, chat: str, priority: int, tell: Callable[[QueueState], None] = lambda state: None
    ) -> AsyncIterator[Ticket]:
        """Wait for the lane, and have it for the block."""
        with self.joined(chat, priority, tell) as ticket:
            await ticket.granted.wait()
            yield ticket

    @contextmanager
    def joined(
        self, chat: str, priority: int, tell: Callable[[QueueState], None]
    ) -> Iterator[Ticket]:
        """Stand in line, then hold, for the block; `tell` says which."""
        ticket = Ticket(chat, priority, self._now(), tell)
        self.waiters.append(ticket)
        self._arrange()
        try:
            yield ticket
        finally:
            self._leave(ticket)

    def close(self, why: str, sentence: str) -> None:
        """Let nobody in until `open(why)`; holders go on."""
        self._closed[why] = sentence
        self._arrange()

    def open(self, why: str) -> None:
        if self._closed.pop(why, None):
            self._arrange()

    def resize(self, capacity: int) -> None:
        self.capacity = capacity
        self._arrange()

    @asynccontextmanager
    async def emptied(self, why: str, sentence: str) -> AsyncIterator[None]:
        """Wait until nobody holds the lane, and keep it empty for the block."""
        self.close(why, sentence)
        try:
            while self.holders:
                self._emptied.clear()
                await self._emptied.wait()
            yield
        finally:
            self.open(why)

    @contextmanager
    def turn(self, chat: str, tell: Callable[[QueueState], None]) -> Iterator[Ticket]:
        """An open turn for the block, once `tell` has said "held"."""
        ticket = Ticket(chat, PERSON, self._now(), tell)
        self._arriving.append(ticket)
        self._admit()
        try:
            yield ticket
        finally:
            (self.turns if ticket in self.turns else self._arriving).remove(ticket)
            self._turned.set()

    @asynccontextmanager
    async def between_turns(
        self, why: str, sentence: str, patience: float = TURN_PATIENCE
    ) -> AsyncIterator[None]:
        """Let open turns end, for `patience` seconds at most, and keep the lane empty for the block."""
        self._ending[why] = sentence
        self._arrange()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    while self.turns:
                        self._turned.clear()
                        await self._turned.wait()
            async with self.emptied(why, sentence):
                yield
        finally:
            del self._ending[why]
            self._admit()
            self._arrange()

    def _admit(self) -> None:
        for ticket in self._arriving:
            if self._ending:
                ticket.say(QueueState(state="waiting", reason=self.reason))
            else:
                self.turns.append(ticket)
                ticket.say(QueueState(state="held"))
        if not self._ending:
            self._arriving.clear()

    def _leave(self, ticket: Ticket) -> None:
        if ticket in self.holders:
            self.holders.remove(ticket)
            self._remember(ticket.chat)
        else:
            self.waiters.remove(ticket)
        if not self.holders:
            self._emptied.set()
        self._arrange()

    def _remember(self, chat: str) -> None:
        self._served.pop(chat, None)
        self._served[chat] = self._now()
        if len(self._served) > REMEMBERED:
            del self._served[next(iter(self._served))]

    def _arrange(self) -> None:
        """Let in whom there is state for, and tell everybody where they stand."""
        while (allowed := self._allowed()) and len(self.holders) < self.capacity:
            ticket = min(allowed, key=self._rank)
            self.waiters.remove(ticket)
            self.holders.append(ticket)
            ticket.granted.set()
            ticket.say(QueueState(state="held"))
        if self.waiters:
            self.demand.set()
        else:
            self.demand.clear()
        self._tell()

    def _allowed(self) -> list[Ticket]:
        """The waiters that may be let in now."""
        if self._closed:
            return []
        if not self._ending:
            return self.waiters
        open_turns = {turn.chat for turn in self.turns}
        return [ticket for ticket in self.waiters if ticket.chat in open_turns]

    def _rank(self, ticket: Ticket) -> tuple[int, float, float]:
        aged = ticket.priority < IDLE and self._now() - ticket.since >= AGED_SECONDS
        priority = PERSON if aged else ticket.priority
        return priority, self._served.get(ticket.chat, float("-inf")), ticket.since

    def _tell(self) -> None:
        queue = sorted(self.waiters, key=self._rank)
        for place, ticket in enumerate(queue):
            ahead = place + len(self.holders)
            ticket.say(QueueState(state="waiting", ahead=ahead, reason=self.reason))
        for ticket in self.holders:
            self._tell_holder(ticket)

    def _tell_holder(self, ticket: Ticket) -> None:
        if ticket.priority == IDLE and (self.person_waits or self._closed):
            ticket.wanted = True
            ticket.say(QueueState(state="wanted"))
        elif HOT in self._closed:
            ticket.say(QueueState(state="paused", reason=self._closed[HOT]))
        elif not ticket.wanted:
            ticket.say(QueueState(state="held"))
