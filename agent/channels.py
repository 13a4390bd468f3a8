"""What passes between the agent and whoever talks to it: two protocols, which bot.connected_terminals.BotChannels implements, and
what they are given.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from agent.approvals import AskOwners
from agent.events import Emit, Event, Reason, TurnFinished
from agent.store.chats import Chat
from agent.store.inbox import InboxRow, Incoming
from agent.store.turns import OpenTurn
from agent.tools.context import FileSender
from backend.protocol import PERSON, SCHEDULED, Priority

if TYPE_CHECKING:
    from agent.mcp.servers import ToolServers
    from agent.turn.conversation import Journal


@dataclass(frozen=True)
class Assignment:
    """A turn to run or resume; `stop` and `answer_now` are those of agent.turn.turn.Turn.

    `answers` grows by messages that arrive while the turn runs. `known` is its chat, and `frozen` since when
    no tool may run, both as the turn began.
    """

    turn: OpenTurn
    answers: Sequence[Incoming]
    journal: "Journal"
    known: Chat | None = None
    frozen: float | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    answer_now: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def chat(self) -> str:
        return self.turn.chat

    @property
    def priority(self) -> Priority:
        """The place of its model calls in the GPU queue."""
        return SCHEDULED if self.turn.kind == "job" else PERSON


RunTurn = Callable[[Assignment, Emit], Awaitable[TurnFinished]]
"""Runs a turn with that chat's tools (agent.agent.Agent.run)."""


@dataclass(frozen=True, slots=True)
class TurnReply:
    """A finished turn's text, from which is composed what is sent; `answers` is what it answers."""

    chat: str
    turn: str
    text: str
    reason: Reason
    answers: tuple[Incoming, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)  # the chat's
    changes: int = 0  # the record of what the turn changed in the workspace (agent.sandbox.history)


class Channels(Protocol):
    """What messaging apps and terminals do for the agent; by default every chat is answered here, nobody can be
    asked, and nothing is fetched or sent."""

    def owns(self, chat: str, source: str) -> bool:
        """Whether this process answers messages of that source and runs the chat's jobs; others wait for the bot."""
        return True

    def attends(self, incoming: Incoming) -> bool:
        """Whether somebody waits for the answer; a message of a terminal that is gone is dropped."""
        return True

    async def fetch(self, rows: Sequence[InboxRow]) -> Sequence[InboxRow]:
        """The rows with their attachments downloaded and listed."""
        return rows

    def compose(self, reply: TurnReply) -> Sequence[str]:
        """The payloads (JSON) for the outbox, a pure function; none for a terminal, which shows the events."""
        return ()

    def payload(self, text: str) -> str:
        """The outbox payload of a message that is no turn's reply."""
        return text

    def asker(self, assignment: Assignment) -> AskOwners | None:
        """Who is asked for approvals on behalf of a turn."""
        return None

    def file_sender(self, chat: str) -> FileSender | None:
        return None

    def ask_to_sign_in(self, servers: "ToolServers", name: str) -> bool:
        """Have an owner asked to sign in to the MCP server of that name; False where nobody can be."""
        return False


class NoChannels(Channels):
    """The channels of an agent without apps and terminals."""


class TurnListener(Protocol):
    """Shows turns to people; by default nothing. A slow listener delays only itself; after an error it gets no more
    events of that turn."""

    async def event(self, assignment: Assignment, event: Event) -> None:
        return

    async def waiting(self, chat: str, why: str) -> None:
        """A message waits before its turn can begin; `why` is a sentence."""
        return


class SilentListener(TurnListener):
    """The listener to turns that nobody watches."""
