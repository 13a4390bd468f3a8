"""Maintenance between turns: recent chats are warmed and saved, old rows deleted, a snapshot is made.

Chats are warmed with the requests of real turns, with their calls and pictures, so that the next turn finds
its whole prompt in the cache.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from agent.chats.chats import Chats
from agent.context.window import ModelWindow
from agent.errors import AgentError, BackendAway
from agent.memory.search import EmbeddingsUnavailable, SemanticSearch
from agent.model import ModelRefused
from agent.store import Store, backup
from agent.store.chats import ENDED, Chat
from agent.store.errors import StoreError
from agent.store.retention import DAY, Retention, prune, vacuum

log = logging.getLogger(__name__)

POLL_SECONDS = 20.0
HOUR = 3_600.0
WARM_CHATS = 3
SAVED_CHATS = 16
QUIET_SECONDS = 30.0
LOOK_SECONDS = 1.0  # how often it looks whether the model is to be unloaded
VACUUM, PRUNE = "vacuum_at", "prune_at"


async def nothing_saved() -> str:
    return ""


async def forgotten(chat: str) -> bool:  # noqa: ARG001 - the form of Maintenance.forget
    """Return True: no prompts are saved anywhere."""
    return True


@dataclass
class Maintenance:
    """Runs beside the chats until cancelled.

    `server_identity` is another value after each restart of the model server, whose cache is empty then; None: none runs,
    or it sleeps and must not be woken. `saves` says when prompts are saved: "silent" once their chat is silent, "now"
    before the model is unloaded, "" never. `forget` deletes a chat's saved prompts, and returns whether it could.
    """

    store: Store
    window: ModelWindow
    chats: Chats
    server_identity: Callable[[], Awaitable[Hashable | None]]
    retention: Retention = field(default_factory=Retention)
    semantic_search: SemanticSearch | None = None
    poll_seconds: float = POLL_SECONDS
    saves: Callable[[], Awaitable[str]] = nothing_saved
    forget: Callable[[str], Awaitable[bool]] = forgotten
    warmed: Hashable | None = None  # the run of the server that has prefilled the recent chats
    # Run of the server and time of use, by chat.
    saved: dict[str, Hashable] = field(default_factory=dict)

    async def run(self) -> None:
        while True:
            await self.run_once(busy=bool(self.chats.running()))
            due = monotonic() + self.poll_seconds
            while (left := due - monotonic()) > 0 and not await self._must_save():
                await asyncio.sleep(min(left, LOOK_SECONDS))

    async def _must_save(self) -> bool:
        """Whether the model is to be unloaded before some chat's prompt is saved."""
        with suppress(StoreError):
            return bool(await self._unsaved()) and await self.saves() == "now"
        return False

    async def run_once(self, *, busy: bool = False) -> None:
        """One round. While chats are `busy` only the database is maintained, half as often."""
        often = 2 if busy else 1
        try:
            await self._forget_ended()
            if not busy:
                await self._warm(await self.server_identity())
                await self._save()
                await self._embed()
            await self._every(often * HOUR, PRUNE, self._prune)
            await self._every(often * DAY, backup.SNAPSHOT, partial(backup.snapshot, self.store))
            await self._every(often * DAY, VACUUM, partial(vacuum, self.store))
        except BackendAway:
            return  # nothing to warm yet
        except (AgentError, ModelRefused, OSError) as error:
            log.warning("maintenance failed: %s", error)
        except Exception:  # one chat or row must not end the bot
            log.exception("maintenance failed")

    async def _warm(self, server: Hashable | None) -> None:
        """Prefill the chats used last; the newest comes last, so that it is evicted last.

        A prompt that is too long for this model is compacted first; one that it refuses is skipped.
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
                    return  # a message came in; the other chats are warmed later
        self.warmed = server

    async def _save(self) -> None:
        """Have the prompts of chats that have fallen silent saved, or those of all before the model is unloaded."""
        if self.warmed is None or not (when := await self.saves()):
            return
        for chat in await self._unsaved():
            if when == "silent" and self.store.clock() - chat.active_at <= QUIET_SECONDS:
                continue
            if self.chats.running() or not await self.window.warm(chat.key, save=True):
                return
            self.saved[chat.key] = self.warmed, chat.active_at

    async def _unsaved(self) -> list[Chat]:
        """The chats of the last day whose prompts are not saved as they are now."""
        since, recent = self.store.clock() - DAY, await self.store.chats.recent(SAVED_CHATS)
        known = self.saved
        return [
            c
            for c in recent
            if c.active_at > since and known.get(c.key) != (self.warmed, c.active_at)
        ]

    async def _forget_ended(self) -> None:
        """Have what is saved of conversations deleted that are forgotten or left for a new one."""
        for key in await self.store.key_values.with_prefix(ENDED, bool):
            if await self.forget(key.removeprefix(ENDED)):
                await self.store.key_values.remove(key)

    async def _embed(self) -> None:
        """Embed the texts of recent chats, in batches."""
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
        if not 0 <= now - (await self.store.key_values.get(name, float) or 0) < seconds:
            # Before the work, so that a failure is not repeated at every poll.
            await self.store.key_values.put(name, now)
            await work()

    async def _prune(self) -> None:
        removed = await prune(self.store, self.retention)
        if removed:
            log.info("%d old rows removed", removed)
