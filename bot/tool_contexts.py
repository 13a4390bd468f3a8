"""What the tools of each chat work with."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from agent.memory.embeddings import Embedder, SemanticSearch
from agent.memory.notes import ChatMemory
from agent.sandbox.hosts import Hosts
from agent.sandbox.sandboxes import Sandboxes
from agent.schedule.job_kind import JobClassifier
from agent.schedule.planner import Planner
from agent.store import Store
from agent.store.chats import Chat
from agent.tools.context import FileSender, ToolContext
from agent.web import Fetcher
from backend.client import BackendClient, BackendUnavailable
from bot.profile_switch import sync_config
from bot.settings import Settings


@dataclass
class ToolContexts:
    """Makes the tool context of a chat. `jobs_changed` is called after each change of its jobs."""

    settings: Settings
    store: Store
    sandboxes: Sandboxes
    backend: BackendClient
    file_sender: Callable[[str], FileSender | None] | None = None
    jobs_changed: Callable[[], None] = lambda: None

    async def of(self, chat: str, zone: str | None = None) -> ToolContext:
        """The context of a chat; `zone` is its IANA time zone where the caller knows it."""
        zone = zone or zone_of(await self.store.chats.get(chat), self.settings)
        hosts = allowed_hosts(self.settings)
        return ToolContext(
            sandbox=await self.sandboxes.of(chat),
            web=Fetcher(hosts) if hosts else None,
            notes=ChatMemory(self.store, chat, zone, semantic_search(self.store, self.settings)),
            jobs=self._planner(chat, zone),
            file_sender=self.file_sender(chat) if self.file_sender else None,
        )

    async def planner(self, chat: str) -> Planner:
        """The jobs of a chat, in its time zone."""
        return self._planner(chat, zone_of(await self.store.chats.get(chat), self.settings))

    def _planner(self, chat: str, zone: str) -> Planner:
        names = self._profile_names
        return planner(self.settings, self.store, chat, zone, names, lambda: self.jobs_changed())

    async def _profile_names(self) -> list[str]:
        """Of the backend; none while it is away, or where the server is not ours."""
        with suppress(BackendUnavailable):
            return [profile.name for profile in await self.backend.profiles()]
        return []


def planner(
    settings: Settings,
    store: Store,
    chat: str,
    zone: str,
    profiles: Callable[[], Awaitable[Collection[str]]],
    changed: Callable[[], None] = lambda: None,
) -> Planner:
    """The jobs of a chat. `profiles` gives the names of the models that a job may switch to."""

    async def keep() -> None:
        changed()
        await sync_config(store, settings.path, settings.agent.timezone)

    classifier = JobClassifier(list(settings.agent.repos), profiles)
    return Planner(store, chat, zone, classifier, on_change=keep)


def allowed_hosts(settings: Settings) -> Hosts | None:
    """What tools may reach; None: no network."""
    box = settings.agent.sandbox
    return Hosts(tuple(box.allow_hosts)) if box.network else None


def semantic_search(store: Store, settings: Settings) -> SemanticSearch | None:
    """Recall by meaning (embeddings), where an embedding server is configured."""
    url = settings.agent.embedding_url
    return SemanticSearch(store, Embedder(url)) if url else None


def zone_of(chat: Chat | None, settings: Settings) -> str:
    """A chat's own time zone, else the agent's."""
    return chat.timezone if chat and chat.timezone else settings.agent.timezone
