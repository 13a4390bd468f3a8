"""What the loop needs of durable state: every finished step is written before the next starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent import prompt
from agent.context import user_message
from agent.events import Reason, TokenUsage
from agent.messages import Assistant, Message, System, ToolResult, User
from agent.model import Completion
from agent.store import Store
from agent.store.inbox import InboxRow, Incoming
from agent.store.turns import OpenTurn, TurnEnd
from agent.store.usage import CacheReuse


@dataclass(frozen=True, slots=True)
class TurnState:
    """Where a turn stands when the loop takes it up: at its start, or after a crash.

    `messages` is the whole transcript in the window, the leading System message
    first, the turn's own messages last. `own` is how many of them belong to this
    turn (its user message and finished steps). `started` are ids of tool calls
    that had started but not finished.
    """

    messages: tuple[Message, ...]
    own: int
    started: frozenset[str] = field(default_factory=frozenset)


class Journal(Protocol):
    """The durable side of one turn. Each method returns once its row is committed."""

    @property
    def turn(self) -> str: ...

    @property
    def chat(self) -> str: ...

    async def open(self) -> TurnState: ...

    async def asked(self, completion: Completion) -> None:
        """A model call ended: its token figures, for usage and the cache record."""
        ...

    async def aside(self, completion: Completion) -> None:
        """A model call of a sub-task ended: its token figures, apart from the cache record."""
        ...

    async def step(self, message: Assistant) -> None:
        """The model's message with its tool calls."""
        ...

    async def started(self, call: str) -> None:
        """A tool is about to run (so that a crash is told as an interruption)."""
        ...

    async def result(self, result: ToolResult) -> ToolResult:
        """A tool's result, as it now stands in the transcript (cut when it alone is too large)."""
        ...

    async def steer(self) -> Sequence[User]:
        """Messages that arrived meanwhile, now part of this turn and its transcript."""
        ...

    async def note(self, message: User) -> None:
        """A message of the program's own to the model (advice, a repair), kept in the transcript."""
        ...

    async def compact(self, *, full: bool = False) -> TurnState | None:
        """Shorten the transcript when it nears the window; the new opening, or None if nothing changed.

        Asked before every model call. `full`: the server has just refused the
        transcript as too long, so shorten it whatever the count says.
        """
        ...

    async def finish(
        self, message: Assistant | None, text: str, reason: Reason, usage: TokenUsage
    ) -> None:
        """The last step, the reply's outbox rows and the inbox rows' end, in one transaction.

        `message` is None when the model gave no last message (cancelled, failed).
        """
        ...


@dataclass(frozen=True, slots=True)
class TurnReply:
    """A finished turn's text, for whoever composes what is sent; `answers` is what it answers."""

    chat: str
    turn: str
    text: str
    reason: Reason
    answers: tuple[Incoming, ...]


Compose = Callable[[TurnReply], Sequence[str]]
"""A pure function of the messaging app: the payloads (JSON) to put into the outbox."""


def nothing(reply: TurnReply) -> Sequence[str]:  # noqa: ARG001 - the form of a Compose
    """The composer of a chat that reads the events itself (the command line)."""
    return ()


class Window(Protocol):
    """What leaves the prompt when it is full (agent.context.window)."""

    async def roomy(self, messages: Sequence[Message]) -> bool:
        """Whether a prompt of these messages, the system message left out, surely fits."""
        ...

    async def fit(self, turn: OpenTurn, *, full: bool) -> bool:
        """Shorten the turn's conversation if it must be; whether anything changed."""
        ...

    async def rest(self, chat: str) -> None:
        """While nobody waits: shorten what is nearly full, and read the new prompt in."""
        ...

    def cut(self, conversation: int) -> None:
        """The tail of a prompt was cut on purpose: the next call need not go on from the last."""
        ...

    async def enter(self, chat: str, text: str) -> str:
        """A text on its way into the prompt, cut with a clear mark when it alone is too large."""
        ...

    async def record(self, turn: OpenTurn, sent: Sequence[Message], completion: Completion) -> None:
        """Keep a call's token figures and hold them against what the cache should have given."""
        ...


@dataclass
class StoredJournal:
    """The journal over the store. Messages are cut to the window's measure as they enter."""

    store: Store
    open_turn: OpenTurn
    window: Window
    zone: str
    sources: frozenset[str]
    compose: Compose = nothing
    fetch: user_message.Fetch = user_message.as_they_are
    answers: list[Incoming] = field(default_factory=list)
    sent: list[Message] = field(default_factory=list)

    @property
    def turn(self) -> str:
        return self.open_turn.id

    @property
    def chat(self) -> str:
        return self.open_turn.chat

    async def open(self) -> TurnState:
        steps = await self.store.turns.progress(self.open_turn)
        self.sent = [System(prompt.system_text()), *(entry.message for entry in steps.entries)]
        own = sum(entry.turn == self.turn for entry in steps.entries)
        return TurnState(tuple(self.sent), own, steps.started)

    async def asked(self, completion: Completion) -> None:
        await self.window.record(self.open_turn, tuple(self.sent), completion)

    async def aside(self, completion: Completion) -> None:
        turn = self.open_turn
        await self.store.usage.add(
            turn.chat, turn.conversation, turn.id, completion, CacheReuse(), "sub-task"
        )

    async def step(self, message: Assistant) -> None:
        await self._add(message)

    async def started(self, call: str) -> None:
        await self.store.turns.started(self.open_turn, call)

    async def result(self, result: ToolResult) -> ToolResult:
        text = await self.window.enter(self.chat, result.text)
        entered = ToolResult(result.call, result.name, text)
        await self._add(entered)
        return entered

    async def steer(self) -> Sequence[User]:
        said = await self._arrived()
        if not said:
            return ()
        said = await self.fetch(said)
        told = await user_message.tell(self.store, said, self.zone, self.window.enter)
        await self.store.turns.add_messages(self.open_turn, said, told)
        self.answers += [row.incoming for row in said]
        self.sent.append(told.message)
        return (told.message,)

    async def note(self, message: User) -> None:
        await self._add(message, own=True)

    async def compact(self, *, full: bool = False) -> TurnState | None:
        if not full and await self.window.roomy(self.sent[1:]):
            return None
        changed = await self.window.fit(self.open_turn, full=full)
        return await self.open() if changed else None

    async def finish(
        self, message: Assistant | None, text: str, reason: Reason, usage: TokenUsage
    ) -> None:
        reply = TurnReply(self.chat, self.turn, text, reason, tuple(self.answers))
        ended = TurnEnd(message, text, reason, usage, self.compose(reply))
        if await self.store.turns.end(self.open_turn, ended):
            self.store.outbox.added.set()

    async def _arrived(self) -> Sequence[InboxRow]:
        """What may join this turn: people's words, unless the chat has moved on to another conversation."""
        rows = await self.store.inbox.waiting(self.chat, self.sources)
        if not rows or self.open_turn.kind == "job":
            return []
        chat = await self.store.chats.get(self.chat)
        if chat is None or chat.conversation != self.open_turn.conversation:
            return []
        return [row for row in rows if row.incoming.kind != "job"]

    async def _add(self, message: Message, *, own: bool = False) -> None:
        await self.store.turns.add(self.open_turn, message, own=own)
        self.sent.append(message)
