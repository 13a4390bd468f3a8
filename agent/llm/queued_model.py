"""Models whose calls wait in the queue for the GPU.

The GPU is held for one model call at a time, so that a long-running tool or a
question to the owner delays no other chat. The queue itself is in the backend,
which all processes share.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    suppress,
)
from dataclasses import dataclass

from agent.aio import move_on_when
from agent.errors import BackendAway
from agent.model import (
    Completion,
    ModelRefused,
    Piece,
    PrefillProgress,
    Request,
    WrappedModel,
)
from backend.client import BackendClient, BackendUnavailable, GpuLease
from backend.protocol import PERSON, CompletionReport, Phrase, Priority, QueueState

HEARTBEAT_SECONDS = 1.0
BROKEN = 0  # in place of the HTTP status, where the connection broke
OnWait = Callable[[QueueState], None]
"""Called with each new place in the queue, and with the reason why no call may start (heat)."""


class GpuHold:
    """The GPU while it is held. `wanted` is set when something more urgent waits."""

    def __init__(self) -> None:
        self.wanted = asyncio.Event()

    async def received(self, piece: Piece) -> None:
        """Report a piece of the open request's answer."""

    async def failed(self, error: ModelRefused | BackendAway) -> None:
        """Report that the open request has failed."""

    async def save(self) -> None:
        """Have the prompt that was just read saved to the disk, where the backend does that."""


GpuQueue = Callable[[str, Priority, OnWait | None], AbstractAsyncContextManager[GpuHold]]
"""(chat, priority, on_wait): waits for the GPU, and holds it for the block."""


def backend_queue(backend: BackendClient) -> GpuQueue:
    """The backend's queue. Entering it raises BackendAway when no backend answers."""

    @asynccontextmanager
    async def queue(
        chat: str, priority: Priority, on_wait: OnWait | None = None
    ) -> AsyncIterator[GpuHold]:
        reason: str | None = None
        waited = False

        def waits(state: QueueState) -> None:
            nonlocal reason, waited
            waited = True
            if on_wait and (state.reason is None or state.reason != reason):
                reason = state.reason
                on_wait(state)

        try:
            async with backend.acquire_gpu(chat, priority, waits) as lease:
                if on_wait and waited:
                    on_wait(QueueState(state="held"))
                yield ReportingHold(lease, chat)
        except BackendUnavailable as error:
            raise BackendAway(Phrase.of(error)) from None

    return queue


class ReportingHold(GpuHold):
    """Reports each request to the backend, for its speed figures and its stall detection."""

    def __init__(self, lease: GpuLease, chat: str) -> None:
        self.wanted = lease.wanted
        self._lease = lease
        self._chat = chat
        self._read = self._written = 0  # tokens
        self._heartbeat_at = 0.0

    async def received(self, piece: Piece) -> None:
        if isinstance(piece, Completion):
            report = CompletionReport(
                chat=self._chat,
                status=BROKEN if piece.finish_reason == "cut" else 200,
                estimated_tokens=piece.estimated_tokens,
                prompt_tokens=piece.prompt_tokens,
                cached_tokens=piece.cached_tokens,
                completion_tokens=piece.completion_tokens,
                ttft_ms=piece.ttft_ms,
                prefill_tok_s=piece.prefill_tok_s,
                decode_tok_s=piece.decode_tok_s,
                draft_tokens=piece.draft_tokens,
                draft_accepted=piece.draft_accepted,
            )
            await self._lease.report(report)
            return
        if isinstance(piece, PrefillProgress):
            self._read = piece.processed
        else:
            self._written += 1
        if time.monotonic() - self._heartbeat_at >= HEARTBEAT_SECONDS:
            self._heartbeat_at = time.monotonic()
            await self._lease.heartbeat(self._read + self._written)

    async def failed(self, error: ModelRefused | BackendAway) -> None:
        status = error.status if isinstance(error, ModelRefused) else BROKEN
        await self._lease.report(CompletionReport(chat=self._chat, status=status))

    async def save(self) -> None:
        await self._lease.save()


@dataclass(frozen=True)
class QueuedModel(WrappedModel):
    """A model whose every call waits for the GPU."""

    queue: GpuQueue
    chat: str
    priority: Priority = PERSON
    on_wait: OnWait | None = None

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        async with (
            self.queue(self.chat, self.priority, self.on_wait) as hold,
            aclosing(self.model.stream(request)) as pieces,
        ):
            try:
                async for piece in pieces:
                    await hold.received(piece)
                    yield piece
            except (ModelRefused, BackendAway) as error:
                await hold.failed(error)
                raise


@asynccontextmanager
async def profile_held(
    backend: BackendClient, chat: str, stop: asyncio.Event, on_wait: OnWait
) -> AsyncIterator[None]:
    """Keep the model's profile for the block, after waiting for a switch that is under way.

    The wait ends when `stop` is set. Without a backend nothing is held: the first
    model call raises BackendAway.
    """
    waited = False

    def waits(state: QueueState) -> None:
        nonlocal waited
        if state.reason:
            waited = True
            on_wait(state)

    async with AsyncExitStack() as stack:
        with suppress(BackendUnavailable):
            async with move_on_when(stop):
                await stack.enter_async_context(backend.turn(chat, waits))
        if waited:
            on_wait(QueueState(state="held"))
        yield
