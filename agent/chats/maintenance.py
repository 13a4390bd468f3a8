"""Maintenance between turns: recent chats are warmed, old rows pruned, a snapshot kept.

Chats are warmed with the requests of real turns (how a template takes calls and
pictures is in them), so that the next turn finds all of it in the cache.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from functools import partial

from agent.chats.chats import Chats
from agent.context.window import ModelWindow
from agent.errors import AgentError, BackendAway
from agent.memory.search import EmbeddingsUnavailable, SemanticSearch
from agent.model import ModelRefused
from agent.store import Store, backup
from agent.store.retention import DAY, Retention, prune, used, vacuum

log = logging.getLogger(__name__)

POLL_SECONDS = 20.0
HOUR = 3_600.0
WARM_CHATS = 3
VACUUM, PRUNE = "vacuum_at", "prune_at"


@dataclass
class Maintenance:
    """Runs beside the chats until cancelled.

    `server_identity` tells one run of the model server from the next: what an
    earlier one has read is lost. None: none serves, or it sleeps and is not to be woken.
    """

    store: Store
    window: ModelWindow
    chats: Chats
    server_identity: Callable[[], Awaitable[Hashable | None]]
    retention: Retention = field(default_factory=Retention)
    semantic_search: SemanticSearch | None = None
    poll_seconds: float = POLL_SECONDS
    warmed: Hashable | None = None  # the server that has read the recent chats

    async def run(self) -> None:
        while True:
            await self.run_once(busy=bool(self.chats.running()))
            await asyncio.sleep(self.poll_seconds)

    async def run_once(self, *, busy: bool = False) -> None:
        """Where chats are `busy` all the time, the database is kept all the same, half as often."""
        often = 2 if busy else 1
        try:
            if not busy:
                await self._warm(await self.server_identity())
                await self._embed()
            await self._every(often * HOUR, PRUNE, self._prune)
            await self._every(often * DAY, backup.SNAPSHOT, partial(backup.snapshot, self.store))
            await self._every(often * DAY, VACUUM, partial(vacuum, self.store))
        except BackendAway:
            return  # nothing to warm yet
        except (AgentError, ModelRefused, OSError) as error:
            log.warning("maintenance failed: %s", error)
        except Exception:  # of one chat, or one row: no reason to end the bot
            log.exception("maintenance failed")

    async def _warm(self, server: Hashable | None) -> None:
        """Read in the chats used last, the newest at the end, where the server keeps it best.

        A prompt that is too long for this model is compacted first; one that it refuses
        waits for its turn.
        """
        if server is not None and server != self.warmed:
            since = self.store.clock() - DAY
            recent = await self.store.chats.recent(WARM_CHATS)
            for chat in reversed([chat.key for chat in recent if chat.active_at > since]):
                try:
                    await self.window.rest(chat)
                    await self.window.warm(chat)
                except BackendAway:
                    raise
                except (AgentError, ModelRefused) as error:
                    log.warning("%s could not be warmed: %s", chat, error)
                if self.chats.running():
                    return  # interrupted by a message; the rest between later turns
        self.warmed = server

    async def _embed(self) -> None:
        """Compute vectors for the texts of recent chats, a few at a time."""
        if self.semantic_search is None:
            return
        for chat in await self.store.chats.recent(WARM_CHATS):
            try:
                while not self.chats.running() and await self.semantic_search.embed(chat.key):
                    pass
            except EmbeddingsUnavailable as error:
                log.warning("no vectors for recall by meaning: %s", error)
                return

    async def _every(
        self, seconds: float, name: str, work: Callable[[], Awaitable[object]]
    ) -> None:
        now = self.store.clock()
        if now - (await self.store.key_values.get(name, float) or 0) >= seconds:
            await self.store.key_values.put(name, now)  # also when it fails: not at every poll
            await work()

    async def _prune(self) -> None:
        removed = await prune(self.store, self.retention)
        if removed:
            log.info("%d old rows removed", removed)
        most = self.retention.most_bytes
        if most and (held := await used(self.store)) > most:
            log.warning("%d MiB of the database are in use, more than its bound", held >> 20)
