"""What a worker hands to whoever runs its turn, and the listener that shows the turn."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent.context.user_message import Fetch, as_they_are
from agent.events import Emit, Event, TurnFinished
from agent.store.chats import Chat
from agent.store.inbox import Incoming
from agent.store.turns import OpenTurn
from agent.turn.conversation import Compose, Journal, compose_nothing
from backend.protocol import PERSON, SCHEDULED, Priority


@dataclass(frozen=True)
class Assignment:
    """A turn to run or resume; `stop` and `answer_now` are those of agent.turn.turn.Turn.

    `answers` grows by messages that arrive while the turn runs. `known` is its chat, and `frozen` since when
    no tool may run, both as the turn began.
    """

    turn: OpenTurn
    answers: Sequence[Incoming]
    journal: Journal
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


class TurnListener(Protocol):
    """Shows turns to people. A slow listener delays only itself; after an error it gets no more events of
    that turn."""

    async def event(self, assignment: Assignment, event: Event) -> None: ...

    async def waiting(self, chat: str, why: str) -> None:
        """A message waits before its turn can begin; `why` is a sentence."""
        ...


class SilentListener:
    """Shows nothing."""

    async def event(self, assignment: Assignment, event: Event) -> None:
        pass

    async def waiting(self, chat: str, why: str) -> None:
        pass


@dataclass(frozen=True)
class ChatOptions:
    """How messages are answered.

    `zone` is the agent's IANA time zone, for chats without their own. `fetch` downloads attachments.
    `attended` tells whether somebody waits for the answer to a message: the others, of terminals that are
    gone, are dropped. `own` tells of a chat and a source whether this process answers it; the rest waits
    for the bot.
    """

    zone: str = "UTC"
    compose: Compose = compose_nothing
    fetch: Fetch = as_they_are
    attended: Callable[[Incoming], bool] = lambda incoming: True
    own: Callable[[str, str], bool] = lambda chat, source: True
