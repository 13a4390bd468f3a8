"""One completion, whatever the server does meanwhile: away, full, or refusing."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

from agent import texts
from agent.errors import BackendAway, BackendLost, TurnError
from agent.events import Event, ModelFinished, ModelProgress, Notice, TextDelta, ThoughtDelta
from agent.limits import Limits
from agent.model import (
    Completion,
    Model,
    ModelRefused,
    Reading,
    ReasoningPiece,
    Request,
    TextPiece,
)
from agent.salvage import Known, Reader

Emit = Callable[[Event], None]
REFUSALS_BEFORE_CHANGE = 2
MOST_BREAKS = 3
_NO_KEY = (401, 403)
_PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)


class Asking:
    """Asks the model; remembers over a turn what its server has refused."""

    def __init__(
        self,
        model: Model,
        known: Known,
        limits: Limits,
        ready: Callable[[], Awaitable[None]],
        emit: Emit,
    ) -> None:
        self._model = model
        self._known = known
        self._limits = limits
        self._ready = ready
        self._emit = emit
        self._form = 0  # how far requests have been changed: as they are, no calls, no tools
        self._refusals: list[tuple[int, str]] = []
        self._breaks = 0
        self._away_since: float | None = None
        self._pauses = 0
        self._reader = Reader(known)

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

    async def __call__(self, request: Request) -> tuple[Completion, Reader]:
        """The completion and its text as read. Raises ContextFull, BackendLost, TurnError."""
        while True:
            try:
                completion, reader = await self._stream(self._changed(request))
            except BackendAway as error:
                await self._wait(str(error))
            except ModelRefused as error:
                self._refused(error)
            else:
                if completion.finish_reason != "cut":
                    self._answered(completion)
                    return completion, reader
                await self._broke_off()

    async def _stream(self, request: Request) -> tuple[Completion, Reader]:
        self._reader = reader = Reader(self._known)
        completion = None
        async with aclosing(self._model.stream(request)) as pieces:
            async for piece in pieces:
                match piece:
                    case Reading(processed, total, cached):
                        self._emit(ModelProgress(processed, total, cached))
                    case TextPiece(text):
                        self._show(reader.feed(text))
                    case ReasoningPiece(text):
                        self._emit(ThoughtDelta(text))
                    case Completion():
                        completion = piece
        assert completion, "a model's stream ends with its completion"
        if completion.finish_reason != "cut":
            self._show(reader.close())
        return completion, reader

    def _show(self, text: str) -> None:
        if text:
            self._emit(TextDelta(text))

    def _answered(self, completion: Completion) -> None:
        self._breaks = self._pauses = 0
        self._away_since = None
        self._refusals.clear()
        self._reader = Reader(self._known)
        self._emit(finished(completion))

    def _changed(self, request: Request) -> Request:
        if self._form == 0:
            return request
        tools = request.tools if self._form == 1 else ()
        return replace(request, tools=tools, tool_choice="none")

    def _refused(self, error: ModelRefused) -> None:
        """After two identical refusals the request is changed, and in the end given up."""
        self._refusals.append((error.status, str(error)))
        if error.status in _NO_KEY or len(self._refusals) > 2 * REFUSALS_BEFORE_CHANGE:
            raise TurnError(texts.REFUSED.format(reason=error)) from None
        same = self._refusals[-REFUSALS_BEFORE_CHANGE:]
        if len(same) < REFUSALS_BEFORE_CHANGE or len(set(same)) > 1:
            return
        if self._form == 2:
            raise TurnError(texts.REFUSED.format(reason=error)) from None
        self._form += 1
        self._refusals.clear()

    async def _broke_off(self) -> None:
        self._breaks += 1
        if self._breaks >= MOST_BREAKS:
            raise BackendLost(texts.BACKEND_LOST.format(reason=texts.BROKE_OFF))
        await self._wait(texts.BROKE_OFF)

    async def _wait(self, reason: str) -> None:
        """Until the backend is there again; the person is told once."""
        now = asyncio.get_running_loop().time()
        if self._away_since is None:
            self._away_since = now
            self._emit(Notice(texts.RESTARTING))
        deadline = self._away_since + self._limits.away_seconds
        pause = _PAUSES[min(self._pauses, len(_PAUSES) - 1)]
        self._pauses += 1
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
