"""The transcript of a running turn, kept in step with the journal, and the tokens it has used."""

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
        """Whether the transcript was shortened; the plan of the task is then repeated behind it."""
        state = await self._journal.compact(self.messages, begins, full=full)
        if state is None:
            return False
        self.messages = state.messages
        if lines := plan_lines(await self._journal.plan()):
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
