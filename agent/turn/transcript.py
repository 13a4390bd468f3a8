"""A turn under way: its transcript, always in step with the journal, and what it has used."""

from agent.aio import complete
from agent.events import TokenUsage
from agent.messages import Assistant, Message, ToolCall, ToolResult, User
from agent.model import Completion
from agent.turn import texts
from agent.turn.journal import Journal, TurnState
from agent.turn.step import Step


class TurnTranscript:
    """Every write is completed when the turn is cancelled meanwhile, so that this and the journal agree."""

    def __init__(self, journal: Journal) -> None:
        self.messages: tuple[Message, ...] = ()
        self.own: tuple[Message, ...] = ()  # those of this turn
        self.started: set[str] = set()
        self.usage = TokenUsage()
        self._journal = journal

    async def open(self) -> None:
        opening = await self._journal.open()
        self._take(opening)
        self.own = opening.messages[len(opening.messages) - opening.own :]
        self.started = set(opening.started)

    def open_calls(self) -> list[ToolCall]:
        """Calls of this turn without a result, in order."""
        answered = {m.call for m in self.own if isinstance(m, ToolResult)}
        calls = [call for m in self.own if isinstance(m, Assistant) for call in m.calls]
        return [call for call in calls if call.id not in answered]

    def call_ids(self) -> set[str]:
        """Ids of all calls in the transcript; servers give the same ones out again."""
        return {c.id for m in self.messages if isinstance(m, Assistant) for c in m.calls}

    def results(self) -> list[tuple[ToolCall, str]]:
        """Finished calls of this turn with their results, in order."""
        texts = {m.call: m.text for m in self.own if isinstance(m, ToolResult)}
        calls = [call for m in self.own if isinstance(m, Assistant) for call in m.calls]
        return [(call, texts[call.id]) for call in calls if call.id in texts]

    async def asked(self, completion: Completion) -> None:
        self.usage += _used(completion)
        await complete(self._journal.asked(completion))

    async def aside(self, completion: Completion) -> None:
        """A model call of a sub-task: it counts, but is none of this transcript."""
        self.usage += _used(completion)
        await complete(self._journal.aside(completion))

    async def step(self, step: Step) -> None:
        await complete(self._step(step.message))

    async def note(self, text: str) -> None:
        """Words of the program to the model, in the form in which it always speaks."""
        await complete(self._note(User(f"<context>\n{text}\n</context>")))

    async def begin(self, call: ToolCall) -> None:
        await complete(self._begin(call))

    async def result(self, call: ToolCall, text: str) -> None:
        await complete(self._result(ToolResult(call.id, call.name, text)))

    async def steer(self) -> None:
        await complete(self._steer())

    async def compact(self, *, full: bool = False) -> bool:
        """Whether the transcript was shortened."""
        opening = await self._journal.compact(full=full)
        if opening:
            self._take(opening)
        return opening is not None

    async def close(self, *, stopped: bool) -> None:
        """Give every open call a result, so that the transcript is sound."""
        interrupted = texts.STOPPED_CALL if stopped else texts.INTERRUPTED
        for call in self.open_calls():
            await self.result(call, interrupted if call.id in self.started else texts.NOT_RUN)

    def _take(self, opening: TurnState) -> None:
        self.messages = opening.messages

    def _add(self, message: Message) -> None:
        self.messages += (message,)
        self.own += (message,)

    async def _step(self, message: Assistant) -> None:
        await self._journal.step(message)
        self._add(message)

    async def _note(self, message: User) -> None:
        await self._journal.note(message)
        self._add(message)

    async def _begin(self, call: ToolCall) -> None:
        await self._journal.started(call.id)
        self.started.add(call.id)

    async def _result(self, result: ToolResult) -> None:
        self._add(await self._journal.result(result))

    async def _steer(self) -> None:
        for message in await self._journal.steer():
            self._add(message)


def _used(completion: Completion) -> TokenUsage:
    guess = (len(completion.text) + sum(len(c.arguments) for c in completion.calls)) // 3
    return TokenUsage(
        completion.prompt_tokens or 0,
        completion.cached_tokens or 0,
        guess if completion.completion_tokens is None else completion.completion_tokens,
    )
