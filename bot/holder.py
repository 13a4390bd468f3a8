"""The process that holds the state: the bot, or a command where no bot runs. The others are its clients."""

from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.store import Store
from backend.client import BackendClient
from bot.settings import Settings

if TYPE_CHECKING:  # a command that makes a single change needs none of it
    from agent.agent import Agent
    from agent.chats.chats import Chats
    from agent.schedule.planner import Planner
    from bot.connected_terminals import ConnectedTerminals


@dataclass(frozen=True)
class Holder:
    """The running parts that clients' requests need. `agent`, `chats` and `terminals` are None in a command that
    makes a single change; `profiles` then gives the names of all profiles where no backend runs."""

    settings: Settings
    backend: BackendClient
    store: Store
    agent: "Agent | None" = None
    chats: "Chats | None" = None
    terminals: "ConnectedTerminals | None" = None
    runs_jobs: bool = False
    profiles: Callable[[], Collection[str]] = tuple


async def planner_of(holder: Holder, chat: str) -> "Planner":
    """The planner of a chat's jobs."""
    if holder.agent:
        return await holder.agent.planner(chat)
    from agent.agent import planner
    from bot.agent_config import agent_config

    config = agent_config(holder.settings)
    return await planner(config, holder.store, holder.backend, chat, profiles=holder.profiles)


ServeHolder = Callable[[Holder], AbstractAsyncContextManager[None]]
