"""Measures one llama-server by the timings that it reports: prefill, decode, first token, cache, drafting.

Each prompt begins with random characters, so that only what a measurement intends to
reuse comes from the cache.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from backend.server.llama import (
    LlamaServer,
    ServerAway,
    ServerRefused,
    cached_tokens,
    llama_server,
)

REPLY = 128  # tokens written in each measurement
# Interleaved chats: tokens in their common prefix, new tokens in each turn, chats, turns of each.
SHARED, NEW, CHATS, ROUNDS = 1024, 64, 2, 3
CONCURRENT_PROMPT = 256  # tokens
SILENT_SECONDS = 900.0  # some engines send nothing during a prefill, which may take minutes
WORDS = "the quick brown fox jumps over a lazy dog while rain falls on seven green hills and ".split()  # fmt: skip


class CannotMeasure(Exception):
    """The server cannot be measured. `str` is one plain sentence."""


@dataclass(frozen=True, slots=True)
class TimedCompletion:
    """Tokens, tokens/s, milliseconds. `drafted` and `accepted` are None without drafting."""

    prompt: int
    cached: int
    written: int
    ttft_ms: float
    prefill_tok_s: float | None = None
    decode_tok_s: float | None = None
    drafted: int | None = None
    accepted: int | None = None

    @property
    def acceptance(self) -> float | None:
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else None


@dataclass(frozen=True, slots=True)
class Probe:
    """Sends completions to a llama-server and takes their times."""

    server: LlamaServer

    async def tokens(self, count: int) -> list[int]:
        """A prompt of exactly `count` tokens that is in no cache."""
        text = f"{secrets.token_hex(8)} " + " ".join(WORDS) * (1 + count // len(WORDS))
        found = await self.server.tokenize(text)
        if len(found) < count:
            raise CannotMeasure("The server's tokenizer gives too few tokens.")
        return found[:count]

    async def complete(
        self, prompt: Sequence[int], write: int = REPLY, *, draft: bool = True
    ) -> TimedCompletion:
        """One streamed completion; `draft` False asks the server not to use its draft model."""
        body = {"prompt": list(prompt), "n_predict": write, "ignore_eos": True, "temperature": 0.2}
        if not draft:
            body["speculative.n_max"] = 0
        began, first, timings = monotonic(), 0.0, dict[str, Any]()
        async with aclosing(self.server.completion(body)) as events:
            async for event in events:
                if not first and (event.get("content") or event.get("stop")):
                    first = monotonic()
                timings = event.get("timings") or timings
        if not timings:
            raise CannotMeasure("The server gives no timings: it is no llama-server.")
        cached = cached_tokens(timings, len(prompt))
        return TimedCompletion(
            prompt=cached + int(timings.get("prompt_n") or 0),
            cached=cached,
            written=int(timings.get("predicted_n") or 0),
            ttft_ms=1000 * (first - began),
            prefill_tok_s=timings.get("prompt_per_second"),
            decode_tok_s=timings.get("predicted_per_second"),
            drafted=timings.get("draft_n"),
            accepted=timings.get("draft_n_accepted"),
        )

    async def cold_and_warm(self, prompt: int) -> tuple[TimedCompletion, TimedCompletion]:
        """Complete a prompt twice, the second time with a few more tokens at its end."""
        first = await self.tokens(prompt)
        cold = await self.complete(first, write=1)
        more = await self.tokens(NEW)
        return cold, await self.complete([*first, *more], write=1)

    async def rewound(self, prompt: int) -> TimedCompletion:
        """Complete a prompt again whose last tokens have changed.

        A model with recurrent layers returns to a context checkpoint for that, or reads the whole prompt.
        """
        first = await self.tokens(prompt)
        await self.complete(first, write=1)
        return await self.complete([*first[: -4 * NEW], *await self.tokens(NEW)], write=1)

    async def cache_reuse(self, shared: int) -> float:
        """The fraction of known prompt tokens that came from the cache when chats alternate."""
        fixed = await self.tokens(shared)
        chats = [[*fixed, *await self.tokens(NEW)] for _ in range(CHATS)]
        old, cached = 0, 0
        for turn in range(ROUNDS):
            for number, chat in enumerate(chats):
                timed = await self.complete(chat, write=1)
                if turn:
                    old += len(chat) - NEW
                    cached += min(timed.cached, len(chat) - NEW)
                chats[number] = [*chat, *await self.tokens(NEW)]
        return cached / old

    async def concurrent(self, count: int) -> float:
        """The total decode speed in tokens/s of `count` concurrent chats."""
        prompts = [await self.tokens(CONCURRENT_PROMPT) for _ in range(count)]
        began = monotonic()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.complete(tokens)) for tokens in prompts]
        return sum(task.result().written for task in tasks) / (monotonic() - began)


@asynccontextmanager
async def open_probe(url: str, api_key: str) -> AsyncIterator[Probe]:
    try:
        async with llama_server(url, api_key, silent_seconds=SILENT_SECONDS) as server:
            yield Probe(server)
    except ServerRefused as error:
        raise CannotMeasure(f"The server answers {error.status}: {error}.") from None
    except ServerAway as error:
        raise CannotMeasure(f"The server broke off while it was measured: {error}.") from None
