"""Measuring one llama-server by its own timings: prefill, decode, first token, cache, drafting.

Each prompt begins with random characters, so that nothing but what a measurement
means to reuse comes from the cache.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

import aiohttp

REPLY = 128  # tokens written in each measurement
SHARED, NEW, CHATS, ROUNDS = 1024, 64, 2, 3  # the interleaved chats: tokens, tokens a turn
SILENT_SECONDS = 900.0  # a prefill on a slow machine says nothing for minutes on some engines
WORDS = "the quick brown fox jumps over a lazy dog while rain falls on seven green hills and ".split()  # fmt: skip


class CannotMeasure(Exception):
    """`str` is one plain sentence."""


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
    """Sends completions to a llama-server and takes their times. `url` has no /v1."""

    session: aiohttp.ClientSession
    url: str

    async def tokens(self, count: int) -> list[int]:
        """A prompt of exactly `count` tokens that no cache holds."""
        text = f"{secrets.token_hex(8)} " + " ".join(WORDS) * (1 + count // len(WORDS))
        async with self._post("/tokenize", {"content": text, "add_special": True}) as answer:
            found = (await answer.json())["tokens"]
        if len(found) < count:
            raise CannotMeasure("The server's tokenizer gives too few tokens.")
        return [int(token) for token in found[:count]]

    async def build(self) -> str:
        """What the server calls its build, such as "b11434-abc"."""
        async with self.session.get(f"{self.url}/props") as answer:
            return str((await answer.json()).get("build_info") or "unknown")

    async def complete(
        self, prompt: Sequence[int], write: int = REPLY, *, draft: bool = True
    ) -> TimedCompletion:
        """One completion, streamed; `draft` False asks the server to leave drafting off."""
        body = {
            "prompt": list(prompt),
            "n_predict": write,
            "ignore_eos": True,
            "cache_prompt": True,
            "stream": True,
            "timings_per_token": True,
            "temperature": 0.2,
            **({} if draft else {"speculative.n_max": 0}),
        }
        began, first, timings = monotonic(), 0.0, dict[str, Any]()
        async with self._post("/completion", body) as answer:
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    event = json.loads(line[6:])
                    if not first and (event.get("content") or event.get("stop")):
                        first = monotonic()
                    timings = event.get("timings") or timings
        if not timings:
            raise CannotMeasure("The server gives no timings: it is no llama-server.")
        cached = int(timings.get("cache_n") or 0)
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
        """The same prompt twice, the second time with a little more at its end."""
        first = await self.tokens(prompt)
        cold = await self.complete(first, write=1)
        more = await self.tokens(NEW)
        return cold, await self.complete([*first, *more], write=1)

    async def cache_reuse(self, shared: int = SHARED) -> float:
        """The share of old prompt tokens that came from the cache when chats take turns."""
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

    async def concurrent(self, count: int, prompt: int = 256) -> float:
        """Tokens/s written by `count` chats at once, all together."""
        prompts = [await self.tokens(prompt) for _ in range(count)]
        began = monotonic()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.complete(tokens)) for tokens in prompts]
        return sum(task.result().written for task in tasks) / (monotonic() - began)

    @asynccontextmanager
    async def _post(
        self, path: str, body: Mapping[str, Any]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        async with self.session.post(self.url + path, json=body) as answer:
            if answer.status != 200:
                reason = (await answer.text())[:200]
                raise CannotMeasure(f"The server answers {answer.status} to {path}: {reason}")
            yield answer


@asynccontextmanager
async def open_probe(url: str, api_key: str) -> AsyncIterator[Probe]:
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=SILENT_SECONDS)
    # The server closes what it has answered; a connection taken up again would break.
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    try:
        async with aiohttp.ClientSession(
            headers=headers, timeout=timeout, connector=connector, read_bufsize=8 << 20
        ) as session:
            yield Probe(session, url)
    except (aiohttp.ClientError, TimeoutError) as error:
        reason = str(error) or type(error).__name__
        raise CannotMeasure(f"The server broke off while it was measured: {reason}.") from None
