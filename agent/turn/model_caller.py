"""One completion, whatever the server does meanwhile: away, full, or refusing."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from agent.errors import BackendAway, BackendLost, TurnError
from agent.events import Event, ModelFinished, ModelProgress, Notice, TextDelta, ThoughtDelta
from agent.llm.tool_call_parser import KnownTools, ToolCallParser
from agent.model import (
    Completion,
    Model,
    ModelRefused,
    Reading,
    ReasoningPiece,
    Request,
    TextPiece,
)
from agent.turn import texts
from agent.turn.limits import TurnLimits
from agent.turn.request_fallback import RequestFallback
from agent.turn.text_loop_detection import TextLoopDetector

Emit = Callable[[Event], None]
MOST_BREAKS = 3
_NO_KEY = (401, 403)
_SERVER_ERROR = 500  # and above: said to be the server's own fault
_PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)


class ModelCaller:
    """Asks the model; remembers over a turn what its server has refused."""

    def __init__(
        self,
        model: Model,
        known: KnownTools,
        limits: TurnLimits,
        ready: Callable[[], Awaitable[None]],
        emit: Emit,
    ) -> None:
        self._model = model
        self._known = known
        self._limits = limits
        self._ready = ready
        self._emit = emit
        self._forms = RequestFallback()
        self._told_form = False
        self._troubled = False  # the server has failed with a request in every form
        self._breaks = 0
        self._away_since: float | None = None
        self._pauses = 0
        self._reader = ToolCallParser(known)

    @property
    def partial(self) -> str:
        """What a person has seen of the completion that is under way."""
        return self._reader.visible

    async def window(self) -> int:
        """The context window in tokens, as soon as the server can tell it."""
        while True:
            try:
                return await self._model.window()
            except BackendAway as error:
                await self._wait(str(error))

    async def __call__(self, request: Request) -> tuple[Completion, ToolCallParser]:
        """The completion and its text as read. Raises ContextFull, BackendLost, TurnError."""
        while True:
            try:
                completion, reader = await self._stream(self._forms.of(request))
            except BackendAway as error:
                await self._wait(str(error))
            except ModelRefused as error:
                await self._refused(error)
            else:
                if completion.finish_reason != "cut":
                    self._answered(completion)
                    return completion, reader
                await self._broke_off()

    async def _stream(self, request: Request) -> tuple[Completion, ToolCallParser]:
        self._reader = reader = ToolCallParser(self._known)
        circling, completion = TextLoopDetector(), None
        async with aclosing(self._model.stream(request)) as pieces:
            async for piece in pieces:
                self._tell_form()
                match piece:
                    case Reading(processed, total, cached):
                        self._emit(ModelProgress(processed, total, cached))
                    case TextPiece(text):
                        self._show(shown := reader.feed(text))
                        if circling.feed(shown):
                            completion = self._stopped(reader)
                            break
                    case ReasoningPiece(text):
                        self._emit(ThoughtDelta(text))
                    case Completion():
                        completion = piece
        assert completion, "a model's stream ends with its completion"
        if completion.finish_reason != "cut":
            self._show(reader.close())
        return completion, reader

    def _stopped(self, reader: ToolCallParser) -> Completion:
        """The end of a completion that would have gone in a circle up to its limit."""
        self._emit(Notice(texts.CIRCLING))
        return Completion(reader.generated, (), "", "stop")

    def _tell_form(self) -> None:
        """An answer comes, but without tools: the person is told why, once."""
        if self._forms.why and not self._told_form:
            self._told_form = True
            self._emit(Notice(texts.WITHOUT_TOOLS.format(reason=self._forms.why)))

    def _show(self, text: str) -> None:
        if text:
            self._emit(TextDelta(text))

    def _answered(self, completion: Completion) -> None:
        self._breaks = self._pauses = 0
        self._away_since, self._troubled = None, False
        self._forms.answered()
        self._reader = ToolCallParser(self._known)
        self._emit(finished(completion))

    async def _refused(self, error: ModelRefused) -> None:
        """A request that is refused in every form is the server's fault when it says so; once more then."""
        if error.status not in _NO_KEY and self._forms.refused(error):
            return
        if error.status < _SERVER_ERROR or self._troubled:
            raise TurnError(texts.REFUSED.format(reason=error)) from None
        self._troubled = True
        await asyncio.sleep(self._limits.trouble_seconds)  # for whoever looks after it to notice
        await self._wait(texts.FAILED.format(reason=error))

    async def _broke_off(self) -> None:
        self._breaks += 1
        if self._breaks >= MOST_BREAKS:
            raise BackendLost(texts.BACKEND_LOST.format(reason=texts.BREAKS_OFF))
        await self._wait(texts.BROKE_OFF)

    async def _wait(self, reason: str) -> None:
        """Until the backend is there again; the person is told why once, and whenever words they saw are void."""
        now = asyncio.get_running_loop().time()
        if self._away_since is None or self.partial:
            self._emit(Notice(texts.AWAY.format(reason=reason.rstrip("."))))
        self._away_since = self._away_since or now
        deadline = self._away_since + self._limits.away_seconds
        pause = _PAUSES[min(self._pauses, len(_PAUSES) - 1)]
        self._pauses += 1
        self._forms.anew()
        try:
            async with asyncio.timeout_at(deadline):
                await self._ready()
                if self._pauses > 1:  # ready, and yet away again: not at full speed
                    await asyncio.sleep(pause)
        except (BackendAway, TimeoutError) as error:
            why = str(error) or reason
            raise BackendLost(texts.BACKEND_LOST.format(reason=why)) from None


def finished(completion: Completion) -> ModelFinished:
    return ModelFinished(
        prompt_tokens=completion.prompt_tokens,
        cached_tokens=completion.cached_tokens,
        completion_tokens=completion.completion_tokens,
        ttft_ms=completion.ttft_ms,
        prefill_tok_s=completion.prefill_tok_s,
        decode_tok_s=completion.decode_tok_s,
        finish_reason=completion.finish_reason,
    )
