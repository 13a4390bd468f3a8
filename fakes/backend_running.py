"""A backend with somebody who talks to it as the agent would."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from backend.client import BackendClient, BackendUnavailable, GpuLease
from backend.config import BackendConfig
from backend.protocol import CompletionReport, Status
from backend.service import RunningBackend, serve_backend
from backend.state import Timing
from fakes.patience import SECONDS

QUICK = Timing(
    first_pause=0.05,
    retry=600,
    stall=2.0,
    stopped=1.0,
    load_stall=20.0,
    longest_load=40,
    look_busy=0.1,
    look_idle=0.1,
)


@dataclass
class Running:
    backend: RunningBackend
    client: BackendClient
    patience: float = SECONDS
    reasons: list[str] = field(default_factory=list)  # why it waited, as a person would read it

    async def ready(self, seconds: float = SECONDS) -> None:
        async for _ in self.client.ready(seconds):
            pass

    async def until(self, fits: Callable[[Status], bool], seconds: float = SECONDS) -> Status:
        """The first status that fits; looks again after each change."""
        async with asyncio.timeout(seconds):
            async for _ in self.backend.state.status.changes():
                status = await self.client.status()
                if fits(status):
                    return status
        raise AssertionError("unreachable")

    async def ask(self, chat: str, text: str, *, tries: int = 200) -> dict[str, Any]:
        """One turn as the agent would: the queue, the endpoint, the stream, again when it breaks."""
        async with self.client.acquire_gpu(chat) as lease:
            for _ in range(tries):
                try:
                    await self._wait()
                    return await self._complete(lease, text)
                except (aiohttp.ClientError, OSError, KeyError, BackendUnavailable):
                    await lease.report(CompletionReport(chat=chat, status=0))
        raise AssertionError(f"no answer after {tries} tries")

    async def _wait(self) -> None:
        async for state in self.client.ready(self.patience):
            if state.reason and state.reason not in self.reasons:
                self.reasons.append(state.reason)

    async def _complete(self, lease: GpuLease, text: str) -> dict[str, Any]:
        system = {"role": "system", "content": SYSTEM}
        return await self.completed(lease, [system, {"role": "user", "content": text}])

    async def report(self, report: CompletionReport) -> None:
        async with self.client.acquire_gpu(report.chat) as lease:
            await lease.report(report)

    async def complete(
        self, messages: list[dict[str, Any]], chat: str = "", *, save: bool = False
    ) -> dict[str, Any]:
        """One completion of a chat, reported and perhaps saved; its timings."""
        async with self.client.acquire_gpu(chat) as lease:
            timings = await self.completed(lease, messages, chat)
            if save:
                await lease.save()
            return timings

    async def completed(
        self, lease: GpuLease, messages: list[dict[str, Any]], chat: str = ""
    ) -> dict[str, Any]:
        endpoint = await self.client.endpoint()
        body = {"messages": messages, "stream": True, "max_tokens": 12}
        last: dict[str, Any] = {}
        headers = {"Authorization": f"Bearer {endpoint.api_key}"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{endpoint.url}/v1/chat/completions", json=body, headers=headers
            ) as answer,
        ):
            if answer.status != 200:
                await lease.report(CompletionReport(status=answer.status))
                raise aiohttp.ClientPayloadError("refused")
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    last = json.loads(line[6:])
        timings: dict[str, Any] = last["timings"]
        await lease.report(
            CompletionReport(
                chat=chat,
                prompt_tokens=timings["cache_n"] + timings["prompt_n"],
                cached_tokens=timings["cache_n"],
                completion_tokens=timings["predicted_n"],
                decode_tok_s=timings["predicted_per_second"],
                prefill_tok_s=timings["prompt_per_second"],
            )
        )
        return dict(timings)


SYSTEM = "You are a test. " * 40


@asynccontextmanager
async def running(config: BackendConfig, timing: Timing = QUICK) -> AsyncIterator[Running]:
    async with (
        serve_backend(config, timing=timing) as backend,
        BackendClient(backend.socket) as client,
    ):
        yield Running(backend, client)
