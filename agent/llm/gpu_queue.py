"""Whose turn it is on the GPU. Held for one model call at a time, so that a tool
that runs long, or a question to the owner, keeps nobody waiting.

`LocalLane` serves one process; the backend's lane, which all processes share,
has the same form (`shared_lane`).
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from agent.errors import BackendAway
from agent.model import Completion, Model, Piece, Reading, Request
from backend.client import BackendClient, BackendUnavailable, GpuLease
from backend.protocol import Priority, QueueState

__all__ = [
    "IDLE",
    "PERSON",
    "SCHEDULED",
    "Hold",
    "LocalGpuQueue",
    "Priority",
    "QueuedModel",
    "shared_lane",
]

PERSON: Priority = 0
SCHEDULED: Priority = 1
IDLE: Priority = 2
SIGN_SECONDS = 1.0
OnWait = Callable[[str], None]  # hears why nobody is let in now (heat), as a sentence


class Hold(Protocol):
    """The lane while it is held. `wanted` is set when somebody more urgent waits."""

    wanted: asyncio.Event

    async def sign(self, tokens: int) -> None:
        """A sign of life of the open request: tokens read and written so far."""
        ...


GpuQueue = Callable[[str, Priority, OnWait | None], AbstractAsyncContextManager[Hold]]


@dataclass
class LocalHold:
    wanted: asyncio.Event = field(default_factory=asyncio.Event)

    async def sign(self, tokens: int) -> None:
        """Nobody watches within one process."""


@dataclass(order=True)
class _Place:
    priority: Priority
    number: int
    chat: str = field(compare=False)
    called: asyncio.Event = field(compare=False, default_factory=asyncio.Event)


class LocalGpuQueue:
    """One process's lane: by priority, then first come first served. It is never closed to all."""

    def __init__(self) -> None:
        self._queue: list[_Place] = []
        self._numbers = itertools.count()
        self._hold: LocalHold | None = None
        self._held_by: Priority = PERSON

    @asynccontextmanager
    async def __call__(
        self, chat: str, priority: Priority, on_wait: OnWait | None = None
    ) -> AsyncIterator[Hold]:
        await self._enter(_Place(priority, next(self._numbers), chat))
        self._hold = LocalHold()
        self._held_by = priority
        self._tell()
        try:
            yield self._hold
        finally:
            self._hold = None
            self._call()

    async def _enter(self, place: _Place) -> None:
        heapq.heappush(self._queue, place)
        self._tell()
        self._call()
        try:
            await place.called.wait()
        except asyncio.CancelledError:
            if place in self._queue:
                self._queue.remove(place)
                heapq.heapify(self._queue)
            else:  # called and cancelled at once: the next one's turn
                self._hold = None
                self._call()
            raise

    def _call(self) -> None:
        if self._hold is None and self._queue:
            self._hold = LocalHold()  # taken from this moment on
            heapq.heappop(self._queue).called.set()

    def _tell(self) -> None:
        if self._hold and self._queue and self._queue[0].priority < self._held_by:
            self._hold.wanted.set()


def shared_lane(backend: BackendClient) -> GpuQueue:
    """The lane of the backend, shared by all processes."""

    @asynccontextmanager
    async def lane(
        chat: str, priority: Priority, on_wait: OnWait | None = None
    ) -> AsyncIterator[Hold]:
        told = ""

        def waiting(state: QueueState) -> None:
            nonlocal told
            if on_wait and state.reason and state.reason != told:
                told = state.reason
                on_wait(told)

        try:
            async with backend.acquire_gpu(chat, priority, waiting) as hold:
                yield _Shared(hold)
        except BackendUnavailable as error:
            raise BackendAway(str(error)) from None

    return lane


class _Shared:
    def __init__(self, lane: GpuLease) -> None:
        self.wanted = lane.wanted
        self._lane = lane

    async def sign(self, tokens: int) -> None:
        await self._lane.heartbeat(tokens)


@dataclass(frozen=True)
class QueuedModel:
    """A model whose every call waits for its place in the lane."""

    model: Model
    lane: GpuQueue
    chat: str
    priority: Priority = PERSON
    on_wait: OnWait | None = None

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        async with (
            self.lane(self.chat, self.priority, self.on_wait) as hold,
            aclosing(self.model.stream(request)) as pieces,
        ):
            signs = _Signs(hold)
            async for piece in pieces:
                await signs.seen(piece)
                yield piece

    async def window(self) -> int:
        return await self.model.window()

    async def count(self, request: Request) -> int:
        return await self.model.count(request)


@dataclass
class _Signs:
    """Tells the lane's keeper that the request moves, at most once a second."""

    hold: Hold
    read: int = 0
    written: int = 0
    told: float = 0.0

    async def seen(self, piece: Piece) -> None:
        if isinstance(piece, Reading):
            self.read = piece.processed
        elif not isinstance(piece, Completion):
            self.written += 1
        if time.monotonic() - self.told >= SIGN_SECONDS:
            self.told = time.monotonic()
            await self.hold.sign(self.read + self.written)
