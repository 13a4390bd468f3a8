"""A model whose completions are reported to the backend: its speed figures and its watchdog live on them."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from agent.errors import BackendAway
from agent.model import Completion, Model, ModelRefused, Piece, Request
from backend.client import BackendUnavailable
from backend.protocol import CompletionReport

BROKEN = 0  # the status of a connection that broke


@dataclass(frozen=True)
class ReportedModel:
    """`tell` is backend.client.BackendClient.report; that nobody hears it is no fault of a turn."""

    model: Model
    tell: Callable[[CompletionReport], Awaitable[None]]
    chat: str = ""

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        try:
            async with aclosing(self.model.stream(request)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Completion):
                        await self._tell(_report(piece, self.chat))
                    yield piece
        except ModelRefused as error:
            await self._tell(CompletionReport(chat=self.chat, status=error.status))
            raise
        except BackendAway:
            await self._tell(CompletionReport(chat=self.chat, status=BROKEN))
            raise

    async def window(self) -> int:
        return await self.model.window()

    async def count(self, request: Request) -> int:
        return await self.model.count(request)

    async def _tell(self, report: CompletionReport) -> None:
        try:
            await self.tell(report)
        except (BackendUnavailable, TimeoutError):
            return


def _report(completion: Completion, chat: str) -> CompletionReport:
    return CompletionReport(
        chat=chat,
        status=BROKEN if completion.finish_reason == "cut" else 200,
        prompt_tokens=completion.prompt_tokens,
        cached_tokens=completion.cached_tokens,
        completion_tokens=completion.completion_tokens,
        ttft_ms=completion.ttft_ms,
        prefill_tok_s=completion.prefill_tok_s,
        decode_tok_s=completion.decode_tok_s,
        draft_tokens=completion.draft_tokens,
        draft_accepted=completion.draft_accepted,
    )
