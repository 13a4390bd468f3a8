"""One completion, whatever the server does meanwhile: away, full, or refusing."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agent.errors import BackendAway, BackendLost, TurnError
from agent.events import Emit, ModelFinished, ModelProgress, Notice, TextDelta, ThoughtDelta
from agent.language import translate_phrase, translated
from agent.llm.tool_call_parser import KnownTools, ToolCallParser
from agent.model import (
    Completion,
    Model,
    ModelRefused,
    PrefillProgress,
    ReasoningPiece,
    Request,
    TextPiece,
)
from agent.turn import texts
from agent.turn.repetition import RepeatedTextDetector
from agent.turn.step import with_calls_of_thought
from agent.turn.turn import TurnLimits, TurnTime
from backend.protocol import Phrase

MOST_BREAKS = 3
HIDDEN_CHARACTERS = 400  # of words that no person reads, after which they are no answer to come
_NO_KEY = (401, 403)
_SERVER_ERROR = 500  # and above: the server's own fault, by its status
_PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)  # seconds


@dataclass
class ModelCaller:
    """Asks the model; remembers over a turn what its server has refused.

    `ready` waits for a backend that is away. Setting `answer_now` ends a thought under way. A call that
    grows longer than `longest_call` characters is cut.
    """

    model: Model
    known: KnownTools
    limits: TurnLimits
    ready: Callable[[], Awaitable[None]]
    emit: Emit
    answer_now: asyncio.Event = field(default_factory=asyncio.Event)
    time: TurnTime = field(default_factory=TurnTime)
    longest_call: float = math.inf
    _without_tools_shown: bool = False
    _failed: bool = False  # the server has failed with a request in every form
    _breaks: int = 0
    _away_since: float | None = None
    _waits: int = 0
    _shown: bool = True
    _enough: Callable[[str], bool] | None = None
    _already_shown: str = ""  # of an answer that its server could not parse

    def __post_init__(self) -> None:
        self._fallback = RequestFallback()
        self._parser = ToolCallParser(self.known)

    @property
    def partial(self) -> str:
        """The part of the current completion that a person has seen."""
        return self._parser.visible

    @property
    def without_tools(self) -> str:
        """A sentence that says why the model answers without tools; empty while it has them."""
        reason = self._fallback.reason
        return translated(texts.WITHOUT_TOOLS).format(reason=reason) if reason else ""

    async def window(self) -> int:
        """The context window in tokens. Waits for a backend that is away."""
        while True:
            try:
                return await self.model.window()
            except BackendAway as error:
                await self._wait(str(error))

    async def complete(
        self,
        request: Request,
        *,
        shown: bool = True,
        enough: Callable[[str], bool] | None = None,
    ) -> tuple[Completion, ToolCallParser]:
        """The completion, and the parser that has read its text; `shown`: to the person, as it comes.

        The words end where `enough` of them are there. Raises ContextFull, BackendLost, TurnError.
        """
        self._shown, self._enough = shown, enough
        while True:
            try:
                completion = await self._stream(self._fallback.of(request))
            except BackendAway as error:
                await self._wait(str(error))
            except ModelRefused as error:
                if error.unparsed and not request.raw:  # this time our own parser reads the answer
                    self._already_shown = self.partial
                    request = replace(request, raw=True)
                elif request.constrained:  # the grammar met a token that it could not take
                    self._already_shown = self.partial
                    request = replace(request, constrained=False)
                else:
                    await self._refused(error)
            else:
                if completion.finish_reason != "cut":
                    return self._completed(completion)
                self._breaks += 1
                if self._breaks >= MOST_BREAKS:
                    lost = translated(texts.BACKEND_LOST)
                    raise BackendLost(lost.format(reason=translated(texts.BREAKS_OFF)))
                await self._wait(translated(texts.BROKE_OFF))

    async def _stream(self, request: Request) -> Completion:
        self._parser = parser = ToolCallParser(self.known)
        detector = RepeatedTextDetector()
        call_detector = RepeatedTextDetector(2) if request.constrained else RepeatedTextDetector()
        thought_detector, thought, called = RepeatedTextDetector(), "", 0
        completion = None
        async with aclosing(self.model.stream(request)) as pieces:
            async for piece in pieces:
                new_thought = ""
                if self._fallback.reason and not self._without_tools_shown:
                    self._without_tools_shown = True
                    self.emit(Notice(self.without_tools))
                match piece:
                    case PrefillProgress(processed, total, cached):
                        self.emit(ModelProgress(processed, total, cached))
                    case TextPiece(text):
                        self._show(shown := parser.feed(text))
                        new_thought = parser.new_thought()
                        if detector.feed(shown):
                            self.emit(Notice(translated(texts.CIRCLING)))
                            completion = Completion(parser.generated, (), "", "repeats")
                            break
                        hidden = not self._shown and len(parser.visible) > HIDDEN_CHARACTERS
                        if hidden or (shown and self._enough and self._enough(parser.visible)):
                            completion = Completion(parser.generated, (), "", "stop")
                            break
                        in_call = "" if shown or new_thought else text.replace("\\n", "\n")
                        called += len(in_call)
                        if call_detector.feed(in_call) or called > self.longest_call:
                            completion = Completion(parser.generated, (), "", "length")
                            break
                    case ReasoningPiece(text):
                        new_thought = text
                    case Completion():
                        completion = piece
                if new_thought:
                    self.emit(ThoughtDelta(new_thought))
                    thought += new_thought
                    wanted = not request.brief and self.answer_now.is_set()
                    if wanted or thought_detector.feed(new_thought):
                        why = translated(texts.ANSWER_NOW if wanted else texts.CIRCLING_THOUGHT)
                        self.emit(Notice(why))
                        completion = Completion("", (), thought, "length")
                        break
        assert completion, "a model's stream ends with its completion"
        if completion.finish_reason != "cut":
            self._show(parser.close())
            if not completion.reasoning:  # a server that takes no thoughts out of the text
                if rest := parser.new_thought():
                    self.emit(ThoughtDelta(rest))
                completion = replace(completion, reasoning=parser.thought)
            said = parser.visible.strip() or parser.calls or completion.calls
            if not said and completion.finish_reason in ("stop", "tool_calls"):
                completion = with_calls_of_thought(completion, self.known)
        if completion.completion_tokens and thought_alone(completion, parser):
            self.emit(Notice(translated(texts.THOUGHT_ALONE)))
        return completion

    def _show(self, text: str) -> None:
        """Show new text; of an answer that is generated again, what a person has not seen yet."""
        if before := self._already_shown:
            if before.startswith(self.partial):
                return
            self._already_shown = ""
            if not self.partial.startswith(before):
                self.emit(Notice(translated(texts.READ_AGAIN)))
                before = ""
            text = self.partial[len(before) :]
        if text and self._shown:
            self.emit(TextDelta(text))

    def _completed(self, completion: Completion) -> tuple[Completion, ToolCallParser]:
        self._breaks = self._waits = 0
        self._already_shown = ""
        self._away_since, self._failed = None, False
        self._fallback.answered()
        self.emit(
            ModelFinished(
                prompt_tokens=completion.prompt_tokens,
                cached_tokens=completion.cached_tokens,
                completion_tokens=completion.completion_tokens,
                ttft_ms=completion.ttft_ms,
                prefill_tok_s=completion.prefill_tok_s,
                decode_tok_s=completion.decode_tok_s,
                finish_reason=completion.finish_reason,
            )
        )
        parser, self._parser = self._parser, ToolCallParser(self.known)
        return completion, parser

    async def _refused(self, error: ModelRefused) -> None:
        """Try another form of the request. Where all are refused with a server error, wait and ask once more."""
        if error.status not in _NO_KEY and self._fallback.refused(error):
            return
        if error.status < _SERVER_ERROR or self._failed:
            raise TurnError(translated(texts.REFUSED).format(reason=error)) from None
        self._failed = True
        await asyncio.sleep(self.limits.trouble_seconds)  # for the supervisor to notice
        await self._wait(translated(texts.FAILED).format(reason=error))

    async def _wait(self, reason: str) -> None:
        """Wait for the backend. A notice says why: once, and again whenever text already shown becomes void."""
        clock = asyncio.get_running_loop().time
        now, longest = clock(), self.limits.away_seconds
        if self._away_since is None or self.partial:
            self.emit(
                Notice(translated(texts.AWAY).format(reason=translate_phrase(reason).rstrip(".。")))
            )
        self._away_since = self._away_since or now
        pause = _PAUSES[min(self._waits, len(_PAUSES) - 1)]
        self._waits += 1
        self._fallback.reset()
        self.time.stand_still(True)
        try:
            await self.ready()
            if clock() - now > longest:  # the card was lent, which is no trouble
                self._away_since = clock()
            if clock() - self._away_since > longest:
                raise TimeoutError
            if self._waits > 1:  # it was ready, and away again at once
                await asyncio.sleep(pause)
        except (BackendAway, TimeoutError) as error:
            why = translate_phrase(Phrase.of(error) or reason)
            raise BackendLost(translated(texts.BACKEND_LOST).format(reason=why)) from None
        finally:
            self.time.stand_still(False)


def thought_alone(completion: Completion, parser: ToolCallParser) -> bool:
    """Whether it thought until its limit, or until it was stopped, without saying or calling anything."""
    said = parser.visible or parser.calls or completion.calls
    return completion.finish_reason == "length" and bool(completion.reasoning) and not said


SAME, ANY = 2, 4  # refusals in a row: equal ones, or any, before the next form is tried
AS_IT_IS, NO_CALLS, NO_TOOLS = range(3)


@dataclass(slots=True)
class RequestFallback:
    """The form in which a request is sent: as it is; once that is refused, without calls, then without tools.

    `reason` is the refusal after which the form was changed; empty while the request is sent as it is.
    """

    reason: str = ""
    _form: int = AS_IT_IS
    _tries: int = 0  # of this form
    _refusals: list[tuple[int, str]] = field(default_factory=list)

    def of(self, request: Request) -> Request:
        if self._form == AS_IT_IS:
            return request
        tools = request.tools if self._form == NO_CALLS else ()
        return replace(request, tools=tools, tool_choice="none")

    def refused(self, error: ModelRefused) -> bool:
        """Whether there is something left to try: the same form once more, or another one."""
        self._refusals.append((error.status, str(error)))
        self._tries += 1
        alike = len(set(self._refusals[-SAME:])) == 1 and len(self._refusals) >= SAME
        if not alike and self._tries < ANY:
            return True
        self._form, self._tries, self.reason = self._form + 1, 0, str(error)
        return self._form <= NO_TOOLS

    def answered(self) -> None:
        self._refusals.clear()
        self._tries = 0

    def reset(self) -> None:
        """Begin again with the request as it is: the server has been restarted, or is another one."""
        self.answered()
        self._form, self.reason = AS_IT_IS, ""
