"""A GPU queue within one process, in place of the backend's: by priority, then first come first served."""

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agent.llm.queued_model import GpuHold
from backend.protocol import Priority


@dataclass(order=True)
class _Place:
    priority: Priority
    number: int
    entered: asyncio.Event = field(compare=False, default_factory=asyncio.Event)
    hold: GpuHold = field(compare=False, default_factory=GpuHold)


class LocalGpuQueue:
    """agent.llm.queued_model.GpuQueue. Nobody is ever kept waiting by heat."""

    def __init__(self) -> None:
        self._waiting: list[_Place] = []
        self._numbers = itertools.count()
        self._holder: _Place | None = None

    @asynccontextmanager
    async def __call__(
        self, chat: str, priority: Priority, on_wait: object = None
    ) -> AsyncIterator[GpuHold]:
        place = _Place(priority, next(self._numbers))
        heapq.heappush(self._waiting, place)
        self._advance()
        try:
            await place.entered.wait()
            yield place.hold
        finally:
            if self._holder is place:
                self._holder = None
            else:  # cancelled while it waited
                self._waiting.remove(place)
                heapq.heapify(self._waiting)
            self._advance()

    def _advance(self) -> None:
        if self._holder is None and self._waiting:
            self._holder = heapq.heappop(self._waiting)
            self._holder.entered.set()
        if self._holder and self._waiting and self._waiting[0].priority < self._holder.priority:
            self._holder.hold.wanted.set()
