"""What is done while nobody waits: recent chats are read in, old rows pruned, a good copy kept."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agent.chats import Chats
from agent.errors import AgentError, BackendAway
from agent.meaning import Meaning, NoMeaning
from agent.model import ModelRefused
from agent.store import Store, upkeep
from agent.store.upkeep import DAY, Retention
from agent.window import ModelWindow

log = logging.getLogger(__name__)

LOOK_SECONDS = 20.0
HOUR = 3_600.0
WARM_CHATS = 3
SNAPSHOT, VACUUM, PRUNE = "snapshot_at", "vacuum_at", "prune_at"


@dataclass
class Idle:
    """Runs beside the chats until cancelled. `cold` is set when the model server has to read anew."""

    store: Store
    window: ModelWindow
    chats: Chats
    retention: Retention = field(default_factory=Retention)
    meaning: Meaning | None = None
    look_seconds: float = LOOK_SECONDS
    cold: bool = True

    async def run(self) -> None:
        while True:
            if not self.chats.running():
                await self._once()
            await asyncio.sleep(self.look_seconds)

    async def _once(self) -> None:
        try:
            if self.cold:
                await self._warm()
            await self._learn()
            await self._every(HOUR, PRUNE, self._prune)
            await self._every(DAY, SNAPSHOT, self._snapshot)
            await self._every(DAY, VACUUM, self._vacuum)
        except BackendAway:
            return  # nothing to warm yet
        except (AgentError, ModelRefused) as error:
            log.warning("idle work failed: %s", error)

    async def _warm(self) -> None:
        """The chats used last, the newest at the end, where the server keeps it best."""
        recent = await self.store.chats.recent(WARM_CHATS)
        since = self.store.clock() - DAY
        for chat in reversed([chat.key for chat in recent if chat.active_at > since]):
            if not self.chats.running():
                await self.window.warm(chat)
        self.cold = False

    async def _learn(self) -> None:
        """What recent chats said gets its vectors, a few texts at a time."""
        if self.meaning is None:
            return
        for chat in await self.store.chats.recent(WARM_CHATS):
            try:
                while not self.chats.running() and await self.meaning.learn(chat.key):
                    pass
            except NoMeaning as error:
                log.warning("no vectors for recall by meaning: %s", error)
                return

    async def _every(
        self, seconds: float, name: str, work: Callable[[], Awaitable[object]]
    ) -> None:
        if self.store.clock() - float(await self.store.facts.get(name, 0)) >= seconds:
            await self.store.facts.put(
                name, self.store.clock()
            )  # also when it fails: not every look
            await work()

    async def _prune(self) -> None:
        removed = await upkeep.prune(self.store, self.retention)
        if removed:
            log.info("%d old rows removed", removed)

    async def _snapshot(self) -> None:
        await upkeep.snapshot(self.store)

    async def _vacuum(self) -> None:
        await upkeep.vacuum(self.store)
