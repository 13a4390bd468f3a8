"""Whose request runs on the GPU next, across all chats and processes of this machine.

More urgent requests go first; among equals the chat that was served longest
ago. Scheduled work that has waited two minutes gets a person's priority. Idle work is
admitted only while no turn is open, because it would evict that turn's cache. A lease
covers a single request. A turn is open from its message to its answer; a change of the
model waits for the open turns (`between_turns`).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

from backend.protocol import EVAL, IDLE, PERSON, PREFIX, Phrase, QueueState

AGED_SECONDS = 120.0
REMEMBERED = 1000  # chats
LONGEST_TURN_SECONDS = 600.0  # a turn may wait longer than this for a person's approval
HEAT = "heat"  # the key under which the thermal guard closes the queue
OnChange = Callable[[QueueState], None]
OnIdle = Callable[[float, float], None]  # start and end of the time that idle work held the GPU


@dataclass(eq=False, slots=True)
class Ticket:
    """One waiter or holder; `on_change` is called once with each new state."""

    chat: str
    priority: int
    since: float
    on_change: OnChange
    granted: asyncio.Event = field(default_factory=asyncio.Event)
    held_since: float = 0.0
    last: QueueState | None = None

    def show(self, state: QueueState) -> None:
        if state != self.last:
            self.last = state
            self.on_change(state)


class GpuRequestQueue:
    """The queue of requests for the GPU. `capacity` of them run at once, one in each slot of llama-server."""

    def __init__(
        self,
        capacity: int = 1,
        now: Callable[[], float] = time.monotonic,
        on_idle: OnIdle = lambda began, ended: None,
    ) -> None:
        self.capacity = capacity
        self.on_idle = on_idle
        self.holders: list[Ticket] = []
        self.waiters: list[Ticket] = []
        self.open_turns: list[Ticket] = []
        self.demand = asyncio.Event()  # set while somebody waits
        self._new_turns: list[Ticket] = []  # wait to be opened
        self._ending_turns: dict[str, Phrase] = {}  # reasons why no new turn begins, by key
        self._closed: dict[str, Phrase] = {}  # reasons why no request is admitted, by key
        self._left = asyncio.Event()  # a holder or an open turn has ended
        self._served_at: dict[str, float] = {}  # by chat, oldest first
        self._now = now

    @property
    def reason(self) -> Phrase | None:
        """Why no new request is admitted now, as a sentence."""
        return next(iter([*self._closed.values(), *self._ending_turns.values()]), None)

    @property
    def last_chat(self) -> str:
        """The chat whose request ended last."""
        return next(reversed(self._served_at), "")

    @asynccontextmanager
    async def acquire(
        self, chat: str, priority: int, on_change: OnChange = lambda state: None
    ) -> AsyncIterator[Ticket]:
        """Wait for the GPU, and hold it for the block."""
        with self.enqueue(chat, priority, on_change) as ticket:
            await ticket.granted.wait()
            yield ticket

    @contextmanager
    def enqueue(self, chat: str, priority: int, on_change: OnChange) -> Iterator[Ticket]:
        """Be in the queue for the block; `on_change` is told when the GPU is held."""
        ticket = Ticket(chat, priority, self._now(), on_change)
        self.waiters.append(ticket)
        self._update()
        try:
            yield ticket
        finally:
            if ticket in self.waiters:
                self.waiters.remove(ticket)
            else:
                self.holders.remove(ticket)
                self._served_at.pop(chat, None)
                self._served_at[chat] = self._now()
                if len(self._served_at) > REMEMBERED:
                    del self._served_at[next(iter(self._served_at))]
                if ticket.priority == IDLE and chat != EVAL:
                    self.on_idle(ticket.held_since, self._now())
            self._left.set()
            self._update()

    @contextmanager
    def turn(self, chat: str, on_change: OnChange) -> Iterator[Ticket]:
        """Queue a turn for the block; the turn is open once `on_change` is told "held"."""
        ticket = Ticket(chat, PERSON, self._now(), on_change)
        self._new_turns.append(ticket)
        self._update()
        try:
            yield ticket
        finally:
            (self.open_turns if ticket in self.open_turns else self._new_turns).remove(ticket)
            self._left.set()
            self._update()

    def close(self, key: str, reason: Phrase) -> None:
        """Admit no request until `open(key)`; holders continue. Called again, it changes the reason."""
        self._closed[key] = reason
        if key in self._ending_turns:
            self._ending_turns[key] = reason
        self._update()

    def open(self, key: str) -> None:
        if self._closed.pop(key, None):
            self._update()

    def resize(self, capacity: int) -> None:
        self.capacity = capacity
        self._update()

    @asynccontextmanager
    async def drained(
        self, key: str, reason: Phrase, patience: float | None = None
    ) -> AsyncIterator[None]:
        """Wait until nobody holds the GPU, at most `patience` seconds, and admit no request for the block."""
        self.close(key, reason)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._until_none(self.holders)
            yield
        finally:
            self.open(key)

    @asynccontextmanager
    async def between_turns(
        self,
        key: str,
        reason: Phrase,
        patience: float = LONGEST_TURN_SECONDS,
        last_step: float | None = None,
    ) -> AsyncIterator[None]:
        """Wait for open turns to end, at most `patience` seconds, then for running requests, at most `last_step`
        seconds, and admit no request during the block."""
        self._ending_turns[key] = reason
        self._update()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._until_none(self.open_turns)
            async with self.drained(key, reason, last_step):
                yield
        finally:
            del self._ending_turns[key]
            self._update()

    async def _until_none(self, tickets: list[Ticket]) -> None:
        while tickets:
            self._left.clear()
            await self._left.wait()

    def _update(self) -> None:
        """Open turns, admit waiters up to the capacity, and tell each ticket its new state."""
        for turn in self._new_turns:
            if self._ending_turns:
                turn.show(QueueState(state="waiting", reason=self.reason))
            else:
                self.open_turns.append(turn)
                turn.show(QueueState(state="held"))
        if not self._ending_turns:
            self._new_turns.clear()
        while (allowed := self._allowed()) and len(self.holders) < self.capacity:
            ticket = min(allowed, key=self._rank)
            self.waiters.remove(ticket)
            self.holders.append(ticket)
            ticket.held_since = self._now()
            ticket.granted.set()
            ticket.show(QueueState(state="held"))
        # Idle work gives way, and reading the prefix in is no other person's call.
        served = sum(each.priority < IDLE and each.chat != PREFIX for each in self.holders)
        for ahead, ticket in enumerate(sorted(self.waiters, key=self._rank), served):
            ticket.show(QueueState(state="waiting", ahead=ahead, reason=self.reason))
        urgent = any(waiter.priority < IDLE for waiter in self.waiters)
        if urgent or self._closed or self.open_turns:
            for holder in self.holders:
                if holder.priority == IDLE:
                    holder.show(QueueState(state="wanted"))
        if self.waiters:
            self.demand.set()
        else:
            self.demand.clear()

    def _allowed(self) -> list[Ticket]:
        """The waiters that may be admitted now."""
        if self._closed:
            return []
        if not self._ending_turns:
            idle = not self.open_turns
            return [ticket for ticket in self.waiters if idle or ticket.priority < IDLE]
        chats = {turn.chat for turn in self.open_turns}
        return [ticket for ticket in self.waiters if ticket.chat in chats]

    def _rank(self, ticket: Ticket) -> tuple[int, float, float]:
        aged = ticket.priority < IDLE and self._now() - ticket.since >= AGED_SECONDS
        served_at = self._served_at.get(ticket.chat, float("-inf"))
        return PERSON if aged else ticket.priority, served_at, ticket.since
