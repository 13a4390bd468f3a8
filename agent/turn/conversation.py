"""The conversation of a running turn: its messages, the tokens it has used, and the journal that makes each step
durable before the next one starts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from agent import prompt
from agent.aio import complete
from agent.channels import Channels, NoChannels, TurnReply
from agent.context import user_message
from agent.context.window import ModelWindow
from agent.events import Reason, TokenUsage
from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import Completion
from agent.plan import Plan, plan_lines
from agent.prompt import PLAN, context_and_words
from agent.store import Store
from agent.store.inbox import CLI, Incoming, MessageChanged
from agent.store.turns import OpenTurn, TurnEnd
from agent.store.usage import CacheReuse
from agent.trust import Taint
from agent.turn import texts


@dataclass(frozen=True, slots=True)
class TurnState:
    """Where a turn stands when the loop takes it up: at its start, or after a crash.

    `messages` is the whole transcript in the window, the leading System message
    first, the turn's own messages last. `own` is how many of them belong to this
    turn (its user message and finished steps). `started` are ids of tool calls
    that had started but not finished. `withheld` is what was withheld before a restart.
    `plan` is that of the task, once a compaction has taken it out of sight.
    """

    messages: tuple[Message, ...]
    own: int
    started: frozenset[str] = field(default_factory=frozenset)
    withheld: tuple[str, ...] = ()
    plan: Plan = ()


class Journal(Protocol):
    """The durable side of one turn. Each method returns once its row is committed."""

    @property
    def turn(self) -> str: ...

    @property
    def chat(self) -> str: ...

    async def open(self) -> TurnState: ...

    async def called(self, completion: Completion, sent: Sequence[Message] | None) -> None:
        """Record a model call's token figures for usage and, for the messages that were `sent`, for the
        cache audit. `sent` is None for a call with other messages, such as a sub-task's."""
        ...

    async def add(self, message: Message, *, own: bool, strangers: Sequence[str] = ()) -> Message:
        """Append a message; returned as it now stands in the transcript (cut when it alone is too large).

        `own`: the program's own words to the model (advice, a repair). `strangers` names
        the sources of strangers' text in it.
        """
        ...

    async def taints(self) -> Sequence[Taint]:
        """The strangers' text that the turn's conversation holds, oldest first."""
        ...

    async def started(self, call: str) -> None:
        """Record that a tool is about to run, so that after a crash it counts as interrupted."""
        ...

    async def withhold(self, what: str) -> None:
        """Record what was withheld; the person is told of it when the turn ends."""
        ...

    async def steer(self) -> Sequence[User]:
        """Append the messages that have arrived meanwhile to this turn's transcript, and return them."""
        ...

    async def compact(
        self, messages: Sequence[Message], begins: Callable[[], None], *, full: bool
    ) -> TurnState | None:
        """Shorten the stored transcript if it nearly fills the window. Returns the new state, None if nothing changed.

        Called before every model call with the messages that it would send. With `full` the transcript is shortened
        even if it seems to fit: the server has just refused it as too long. `begins` is called before a model is
        asked for a summary, which takes a while.
        """
        ...

    async def finish(
        self,
        message: Assistant | None,
        text: str,
        reason: Reason,
        usage: TokenUsage,
        changes: int = 0,
    ) -> None:
        """Write the last step and the reply's outbox rows, and close the inbox rows, in one transaction.

        `message` is None when the model gave no last message (cancelled, failed); `changes` is the number of the
        record of what the turn changed, 0 without one.
        """
        ...


class Conversation:
    """Every write is completed even if the turn is cancelled meanwhile, so that this and the journal agree.

    `messages` is what the model is sent, `own` those of this turn; `started` are
    ids of calls whose tools have been started, `withheld` what was withheld before a restart.
    """

    def __init__(self, journal: Journal) -> None:
        self.messages: tuple[Message, ...] = ()
        self.own: tuple[Message, ...] = ()
        self.started: set[str] = set()
        self.withheld: tuple[str, ...] = ()
        self.usage = TokenUsage()
        self._journal = journal

    async def open(self) -> None:
        state = await self._journal.open()
        self.messages = state.messages
        self.own = state.messages[len(state.messages) - state.own :]
        self.started = set(state.started)
        self.withheld = state.withheld

    def results(self) -> list[tuple[ToolCall, str]]:
        """Finished calls of this turn with their results, in order."""
        texts = {m.call: m.text for m in self.own if isinstance(m, ToolResult)}
        return [(call, texts[call.id]) for call in calls_of(self.own) if call.id in texts]

    def asked(self) -> tuple[Message, ...]:
        """The messages without what was done in this turn."""
        return (*self._before(), *filter(said_in, self.own))

    def last_exchange(self) -> tuple[Message, ...]:
        """The person's message before this turn, and the answer to it."""
        before = self._before()
        said = list(filter(None, map(said_in, before)))
        answered = [m.text for m in before if isinstance(m, Assistant) and m.text and not m.calls]
        return (User(said[-1]), Assistant(answered[-1])) if said and answered else ()

    def _before(self) -> tuple[Message, ...]:
        return self.messages[: next((n for n, m in enumerate(self.messages) if m in self.own), 0)]

    def pictures(self) -> tuple[str, ...]:
        """Those that the person sent in this turn, and those that its calls showed."""
        return tuple(image for m in self.own if isinstance(m, User) for image in m.images)

    def words(self) -> str:
        """What the person has said in this turn."""
        return "\n".join(filter(None, map(said_in, self.own)))

    def open_calls(self) -> list[ToolCall]:
        return unanswered(self.own)

    async def called(self, completion: Completion, *, aside: bool = False) -> None:
        """Count a model call; `aside`: one that was not about this transcript."""
        self.usage += usage_of(completion)
        await complete(self._journal.called(completion, None if aside else self.messages))

    async def add(
        self, message: Message, *, own: bool = False, strangers: Sequence[str] = ()
    ) -> None:
        """`own` and `strangers` are those of Journal.add."""

        async def write() -> None:
            self._take(await self._journal.add(message, own=own, strangers=strangers))

        await complete(write())

    async def note(self, text: str, images: Sequence[str] = ()) -> None:
        """Add the program's own words to the model, in the form that it always uses for them."""
        await self.add(User(f"<context>\n{text}\n</context>", tuple(images)), own=True)

    async def start(self, call: ToolCall) -> None:
        """Record that the call's tool is about to run."""
        self.started.add(call.id)
        await complete(self._journal.started(call.id))

    async def result(self, call: ToolCall, text: str, strangers: Sequence[str] = ()) -> None:
        await self.add(ToolResult(call.id, call.name, text), strangers=strangers)

    async def steer(self) -> None:
        """Take in messages that arrived meanwhile."""

        async def take_in() -> None:
            self._take(*await self._journal.steer())

        await complete(take_in())

    async def compact(self, begins: Callable[[], None], *, full: bool = False) -> bool:
        """Shorten the transcript as `Journal.compact` does, and append the task's plan again if that changed anything.
        Returns whether it did."""
        state = await self._journal.compact(self.messages, begins, full=full)
        if state is None:
            return False
        self.messages = state.messages
        if lines := plan_lines(state.plan):
            await self.note("\n".join([PLAN, *lines]))
        return True

    async def close(self, *, stopped: bool) -> None:
        """Give a result to every open call, as each call of a transcript must have one."""
        interrupted = texts.STOPPED_CALL if stopped else texts.INTERRUPTED
        for call in self.open_calls():
            await self.result(call, interrupted if call.id in self.started else texts.NOT_RUN)

    def _take(self, *messages: Message) -> None:
        self.messages += messages
        self.own += messages


def said_in(message: Message) -> str:
    """A person's words; "" where the message holds none."""
    if not isinstance(message, User) or message.text.endswith("\n</context>"):
        return ""
    return context_and_words(message.text)[1]


def calls_of(messages: Sequence[Message]) -> list[ToolCall]:
    return [call for m in messages if isinstance(m, Assistant) for call in m.calls]


def unanswered(messages: Sequence[Message]) -> list[ToolCall]:
    """The calls without a result, in order."""
    answered = {message.call for message in messages if isinstance(message, ToolResult)}
    return [call for call in calls_of(messages) if call.id not in answered]


def usage_of(completion: Completion) -> TokenUsage:
    """The completion's token counts; generated tokens are estimated where the server gives no count."""
    guess = (len(completion.text) + sum(len(c.arguments) for c in completion.calls)) // 3
    return TokenUsage(
        completion.prompt_tokens or 0,
        completion.cached_tokens or 0,
        guess if completion.completion_tokens is None else completion.completion_tokens,
    )


# -- the journal in the store ---------------------------------------------------


@dataclass
class StoredJournal:
    """The journal in the store. Tool results are cut to the window's measure as they enter."""

    store: Store
    open_turn: OpenTurn
    window: ModelWindow
    zone: str
    channels: Channels = field(default_factory=NoChannels)
    answers: list[Incoming] = field(default_factory=list)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def turn(self) -> str:
        return self.open_turn.id

    @property
    def chat(self) -> str:
        return self.open_turn.chat

    async def open(self) -> TurnState:
        progress = await self.store.turns.progress(self.open_turn)
        messages = (System(prompt.system_text()), *(e.message for e in progress.entries))
        own = sum(entry.turn == self.turn for entry in progress.entries)
        resumed = self.open_turn.resumed  # a turn that has just begun has withheld nothing
        withheld = await self.store.ledger.withheld(self.turn) if resumed else ()
        return TurnState(messages, own, progress.started, withheld)

    async def called(self, completion: Completion, sent: Sequence[Message] | None) -> None:
        turn = self.open_turn
        if sent is not None:
            await self.window.record(turn, sent, completion)
            return
        await self.store.usage.add(
            turn.chat, turn.conversation, turn.id, completion, CacheReuse(), "sub-task"
        )

    async def add(self, message: Message, *, own: bool, strangers: Sequence[str] = ()) -> Message:
        if isinstance(message, ToolResult):
            text = await self.window.enter(self.chat, message.text, "; ".join(strangers))
            message = ToolResult(message.call, message.name, text)
        await self.store.turns.add(self.open_turn, message, own=own, strangers=strangers)
        return message

    async def taints(self) -> Sequence[Taint]:
        return await self.store.taints.of(self.open_turn.conversation)

    async def started(self, call: str) -> None:
        await self.store.turns.started(self.open_turn, call)

    async def withhold(self, what: str) -> None:
        await self.store.ledger.record("withheld", self.chat, turn=self.turn, what=what)

    async def steer(self) -> Sequence[User]:
        """What people wrote meanwhile in the same app, unless the chat has moved on to another conversation.

        Each question of a terminal has its own turn, and so has what is written once the turn has asked an owner.
        """
        source = self.open_turn.source
        if self.open_turn.kind == "job" or source == CLI:
            return ()
        asked_at = await self.store.approvals.first_asked_at(self.turn)
        waiting = [
            row
            for row in await self.store.inbox.waiting(self.chat)
            if row.incoming.source == source
            and row.incoming.kind != "job"
            and row.received_at < asked_at
        ]
        if not waiting:
            return ()
        chat = await self.store.chats.get(self.chat)
        if chat is None or chat.conversation != self.open_turn.conversation:
            return ()
        rows = await self.channels.fetch(waiting)
        rendered = await user_message.render(self.window, rows, self.zone)
        try:
            await self.store.turns.add_messages(self.open_turn, rows, rendered)
        except MessageChanged:
            return ()  # until the next step
        self.answers += [row.incoming for row in rows]
        return (rendered.message,)

    async def compact(
        self, messages: Sequence[Message], begins: Callable[[], None], *, full: bool
    ) -> TurnState | None:
        if not full and await self.window.roomy(messages[1:]):
            return None
        if not await self.window.fit(self.open_turn, begins, full=full):
            return None
        return replace(await self.open(), plan=await self.store.plans.of_turn(self.turn))

    async def finish(
        self,
        message: Assistant | None,
        text: str,
        reason: Reason,
        usage: TokenUsage,
        changes: int = 0,
    ) -> None:
        answers = tuple(self.answers)
        reply = TurnReply(self.chat, self.turn, text, reason, answers, self.settings, changes)
        end = TurnEnd(message, text, reason, usage, self.channels.compose(reply))
        if await self.store.turns.end(self.open_turn, end):
            self.store.outbox.wake()
