"""What is done while nobody waits: recent chats are read in, old rows pruned, a good copy kept.

The requests that read chats in are those of real turns (how a template takes
calls and pictures is in them), so that the next turn finds all of it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

from agent.chats.chats import Chats
from agent.context.window import ModelWindow
from agent.errors import AgentError, BackendAway
from agent.memory.embeddings import EmbeddingsUnavailable, SemanticSearch
from agent.model import ModelRefused
from agent.store import Store, backup
from agent.store.retention import DAY, Retention, prune, used, vacuum

log = logging.getLogger(__name__)

LOOK_SECONDS = 20.0
HOUR = 3_600.0
WARM_CHATS = 3
VACUUM, PRUNE = "vacuum_at", "prune_at"


@dataclass
class Maintenance:
    """Runs beside the chats until cancelled.

    `life` tells the model server's lives apart: what an earlier one has read is
    lost to the next. None: none serves, or it sleeps and is not to be woken.
    """

    store: Store
    window: ModelWindow
    chats: Chats
    life: Callable[[], Awaitable[Hashable | None]]
    retention: Retention = field(default_factory=Retention)
    meaning: SemanticSearch | None = None
    look_seconds: float = LOOK_SECONDS
    warm: Hashable | None = None  # the life that has read the recent chats

    async def run(self) -> None:
        while True:
            if not self.chats.running():
                await self._once()
            await asyncio.sleep(self.look_seconds)

    async def _once(self) -> None:
        try:
            await self._warm(await self.life())
            await self._learn()
            await self._every(HOUR, PRUNE, self._prune)
            await self._every(DAY, backup.SNAPSHOT, self._snapshot)
            await self._every(DAY, VACUUM, self._vacuum)
        except BackendAway:
            return  # nothing to warm yet
        except (AgentError, ModelRefused, OSError) as error:
            log.warning("idle work failed: %s", error)

    async def _warm(self, life: Hashable | None) -> None:
        """The chats used last, the newest at the end, where the server keeps it best."""
        if life is not None and life != self.warm:
            since = self.store.clock() - DAY
            recent = await self.store.chats.recent(WARM_CHATS)
            for chat in reversed([chat.key for chat in recent if chat.active_at > since]):
                await self._read_in(chat)
                if self.chats.running():
                    return  # dropped for somebody; the rest when nobody waits again
        self.warm = life

    async def _read_in(self, chat: str) -> None:
        """A prompt that is too long for this model is shortened first; one that it refuses waits for its turn."""
        try:
            await self.window.rest(chat)
            await self.window.warm(chat)
        except BackendAway:
            raise
        except (AgentError, ModelRefused) as error:
            log.warning("%s could not be read in: %s", chat, error)

    async def _learn(self) -> None:
        """What recent chats said gets its vectors, a few texts at a time."""
        if self.meaning is None:
            return
        for chat in await self.store.chats.recent(WARM_CHATS):
            try:
                while not self.chats.running() and await self.meaning.learn(chat.key):
                    pass
            except EmbeddingsUnavailable as error:
                log.warning("no vectors for recall by meaning: %s", error)
                return

    async def _every(
        self, seconds: float, name: str, work: Callable[[], Awaitable[object]]
    ) -> None:
        if self.store.clock() - float(await self.store.key_values.get(name, 0)) >= seconds:
            await self.store.key_values.put(
                name, self.store.clock()
            )  # also when it fails: not every look
            await work()

    async def _prune(self) -> None:
        removed = await prune(self.store, self.retention)
        if removed:
            log.info("%d old rows removed", removed)
        most = self.retention.most_bytes
        if most and (held := await used(self.store)) > most:
            log.warning("%d MiB of the database are in use, more than its bound", held >> 20)

    async def _snapshot(self) -> None:
        await backup.snapshot(self.store)

    async def _vacuum(self) -> None:
        await vacuum(self.store)
