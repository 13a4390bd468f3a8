"""The desk of each chat: what its tools work with."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.memory.embeddings import Embedder, SemanticSearch
from agent.memory.notes import ChatMemory
from agent.sandbox.sandboxes import Sandboxes
from agent.schedule.job_kind import Wishes
from agent.schedule.planner import Planner
from agent.store import Store
from agent.store.chats import Chat
from agent.tools.context import FileSender, ToolContext
from agent.web import Fetcher
from bot.backend_connection import profile_names
from bot.sandboxes import hosts_of
from bot.settings import Settings
from bot.switching import keep_file


@dataclass
class ToolContexts:
    """Makes what the tools of a chat work with."""

    sandboxes: Sandboxes
    store: Store
    settings: Settings
    file_sender: Callable[[str], FileSender | None] | None = None
    planned: Callable[[], None] = lambda: None

    async def of(self, chat: str) -> ToolContext:
        return await self.at(chat, zone_of(await self.store.chats.get(chat), self.settings))

    async def at(self, chat: str, zone: str) -> ToolContext:
        """The desk of a chat whose time zone is known."""
        return ToolContext(
            sandbox=await self.sandboxes.of(chat),
            web=Fetcher(hosts) if (hosts := hosts_of(self.settings)) else None,
            notes=ChatMemory(self.store, chat, zone, meaning_of(self.store, self.settings)),
            jobs=planner_in(self.store, chat, zone, self.settings, self.planned),
            file_sender=self.file_sender(chat) if self.file_sender else None,
        )

    async def planner(self, chat: str) -> Planner:
        return await planner_of(self.store, chat, self.settings, self.planned)


async def planner_of(
    store: Store, chat: str, settings: Settings, planned: Callable[[], None] = lambda: None
) -> Planner:
    """The jobs of a chat, in its own time zone; `planned` hears of each change."""
    zone = zone_of(await store.chats.get(chat), settings)
    return planner_in(store, chat, zone, settings, planned)


def planner_in(
    store: Store, chat: str, zone: str, settings: Settings, planned: Callable[[], None]
) -> Planner:
    async def changed() -> None:
        planned()
        await keep_file(store, settings.path, settings.agent.timezone)

    return Planner(
        store, chat, zone, Wishes(list(settings.agent.repos), profile_names), changed=changed
    )


def meaning_of(store: Store, settings: Settings) -> SemanticSearch | None:
    """Recall by meaning, where an embedding server is configured."""
    url = settings.agent.embedding_url
    return SemanticSearch(store, Embedder(url)) if url else None


def zone_of(known: Chat | None, settings: Settings) -> str:
    return known.timezone if known and known.timezone else settings.agent.timezone
