"""The process that holds the state: the bot, or a command where no bot runs. The others are its clients."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.store import Store
from backend.client import BackendClient, BackendUnavailable
from bot.settings import Settings

if TYPE_CHECKING:  # a command that makes a single change needs none of it
    from agent.chats.chats import Chats
    from agent.schedule.planner import Planner
    from bot.composition import Agent
    from bot.sessions import Sessions


@dataclass(frozen=True)
class Holder:
    """What clients' requests are carried out with. `agent`, `chats` and `sessions` are None in a command that
    makes a single change."""

    settings: Settings
    backend: BackendClient
    store: Store
    agent: "Agent | None" = None
    chats: "Chats | None" = None
    sessions: "Sessions | None" = None
    runs_jobs: bool = False


async def planner_of(holder: Holder, chat: str) -> "Planner":
    """The planner of a chat's jobs."""
    from bot.composition import planner, zone_of

    if holder.agent:
        return await holder.agent.planner(chat)
    zone = zone_of(await holder.store.chats.get(chat), holder.settings)

    async def profiles() -> list[str]:
        with suppress(BackendUnavailable):
            return [profile.name for profile in await holder.backend.profiles()]
        return []

    return planner(holder.settings, holder.store, chat, zone, profiles)


ServeHolder = Callable[[Holder], AbstractAsyncContextManager[None]]
