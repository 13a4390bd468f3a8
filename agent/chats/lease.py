"""One process at a time per chat: its lease, held with a heartbeat, given up when another takes it."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent.store.errors import StoreError
from agent.store.leases import LeaseTable
from agent.turn import texts

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25  # another process's turn in the same chat ends unheard
STOP_POLL_SECONDS = 0.5  # how soon another process's wish to stop is seen
BEATS = 10  # of those polls per heartbeat


@dataclass(frozen=True)
class Lease:
    """`stop` is called at another process's wish, and when the lease is lost: it ends the turn
    that runs, and is False where none does. `waits` tells why it takes long.
    """

    leases: LeaseTable
    chat: str
    owner: str
    stop: Callable[[], bool]
    waits: Callable[[str], Awaitable[None]]

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Wait for the lease, and keep it for the block."""
        await self._take()
        beating = asyncio.create_task(self._beat())
        try:
            yield
        finally:
            beating.cancel()
            await asyncio.wait([beating])
            # An error here would take the place of a cancellation, and nobody could end us.
            with contextlib.suppress(StoreError):
                await self.leases.release(self.chat, self.owner)

    async def _take(self) -> None:
        told = False
        while not await self.leases.acquire(self.chat, self.owner):
            if not told:
                await self.waits(texts.CHAT_BUSY)
                told = True
            await asyncio.sleep(POLL_SECONDS)

    async def _beat(self) -> None:
        while True:
            for _ in range(BEATS):
                await asyncio.sleep(STOP_POLL_SECONDS)
                if await self.leases.stop_requested(self.chat):
                    self.stop()
            with contextlib.suppress(StoreError):
                if not await self.leases.heartbeat(self.chat, self.owner) and self.stop():
                    log.error("the lease of %s went to another process", self.chat)
