"""A turn under way: its transcript, always in step with the journal, and the tokens it has used."""

from collections.abc import Callable, Sequence

from agent.aio import complete
from agent.events import TokenUsage
from agent.messages import Assistant, Message, ToolCall, ToolResult, User
from agent.model import Completion
from agent.plan import plan_lines
from agent.prompt import PLAN
from agent.turn import texts
from agent.turn.journal import Journal


class TurnTranscript:
    """Every write is completed when the turn is cancelled meanwhile, so that this and the journal agree.

    `messages` is what the model is sent, `own` those of this turn; `started` are
    ids of calls whose tools have been started, `withheld` what was not let out before a restart.
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

    def open_calls(self) -> list[ToolCall]:
        """Calls of this turn without a result, in order."""
        return unanswered(self.own)

    async def called(self, completion: Completion) -> None:
        """A model call of this transcript ended."""
        self.usage += usage_of(completion)
        await complete(self._journal.called(completion, self.messages))

    async def called_aside(self, completion: Completion) -> None:
        """A model call of a sub-task ended: it counts, but is none of this transcript."""
        self.usage += usage_of(completion)
        await complete(self._journal.called_aside(completion))

    async def add(
        self, message: Message, *, own: bool = False, strangers: Sequence[str] = ()
    ) -> None:
        """`own`: the program's own words, not the person's. `strangers`: of Journal.add."""
        await complete(self._add(message, own=own, strangers=strangers))

    async def note(self, text: str, images: Sequence[str] = ()) -> None:
        """Words of the program to the model, in the form in which it always speaks."""
        await self.add(User(f"<context>\n{text}\n</context>", tuple(images)), own=True)

    async def start(self, call: ToolCall) -> None:
        """The call's tool is about to run."""
        self.started.add(call.id)
        await complete(self._journal.started(call.id))

    async def result(self, call: ToolCall, text: str, strangers: Sequence[str] = ()) -> None:
        await self.add(ToolResult(call.id, call.name, text), strangers=strangers)

    async def steer(self) -> None:
        """Take in messages that arrived meanwhile."""
        await complete(self._steer())

    async def compact(self, begins: Callable[[], None], *, full: bool = False) -> bool:
        """Whether the transcript was shortened; the plan then stands behind it."""
        state = await self._journal.compact(self.messages, begins, full=full)
        if state is None:
            return False
        self.messages = state.messages
        if lines := plan_lines(await self._journal.plan()):
            await self.note("\n".join([PLAN, *lines]))
        return True

    async def close(self, *, stopped: bool) -> None:
        """Give every open call a result, so that the transcript is sound."""
        interrupted = texts.STOPPED_CALL if stopped else texts.INTERRUPTED
        for call in self.open_calls():
            await self.result(call, interrupted if call.id in self.started else texts.NOT_RUN)

    async def _add(self, message: Message, *, own: bool, strangers: Sequence[str]) -> None:
        self._take(await self._journal.add(message, own=own, strangers=strangers))

    async def _steer(self) -> None:
        for message in await self._journal.steer():
            self._take(message)

    def _take(self, message: Message) -> None:
        self.messages += (message,)
        self.own += (message,)


def calls_of(messages: Sequence[Message]) -> list[ToolCall]:
    return [call for m in messages if isinstance(m, Assistant) for call in m.calls]


def unanswered(messages: Sequence[Message]) -> list[ToolCall]:
    """The calls without a result, in order."""
    answered = {message.call for message in messages if isinstance(message, ToolResult)}
    return [call for call in calls_of(messages) if call.id not in answered]


def usage_of(completion: Completion) -> TokenUsage:
    guess = (len(completion.text) + sum(len(c.arguments) for c in completion.calls)) // 3
    return TokenUsage(
        completion.prompt_tokens or 0,
        completion.cached_tokens or 0,
        guess if completion.completion_tokens is None else completion.completion_tokens,
    )
