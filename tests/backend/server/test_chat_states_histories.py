"""Random histories of chats whose prompts are saved and restored, against a server that keeps nothing."""

import asyncio
import os
import random
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import aiohttp
import pytest

from backend.client import BackendUnavailable
from backend.config import BackendConfig
from backend.protocol import CompletionReport
from fakes import gguf_maker
from fakes.gguf_maker import Shape
from tests.backend.conftest import QUICK, SYSTEM, Running, running

FIXED: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
ACTS = (
    *("turn", "turn", "turn", "save", "save"),
    *("new", "restart", "switch", "killed", "killed as it saves"),
)
STEPS = 8
# Mean difference of log probabilities: 0.02 at most by how a prompt was divided when it was read, 0.07 at least
# where one of its messages is another.
NEAR = 0.04


@dataclass(frozen=True)
class Answer:
    """The likeliest next token, and the log probabilities of the five likeliest, by id."""

    text: str
    likely: dict[int, float]

    def is_that_of(self, other: "Answer") -> bool:
        """Whether both have read the same, but for rounding."""
        if not (self.likely and other.likely):
            return self.text == other.text
        shared = self.likely.keys() & other.likely.keys()
        gaps = [abs(self.likely[token] - other.likely[token]) for token in shared]
        return len(shared) > 2 and fmean(gaps) < NEAR


async def answer(
    it: Running, chat: str, messages: Sequence[Any], *, save: bool, cache: bool
) -> Answer:
    """The next token of a prompt; the request goes on after a kill, as the agent's does."""
    body = {"messages": list(messages), "temperature": 0, "max_tokens": 1}
    body |= {"logprobs": True, "top_logprobs": 5}
    async with it.client.acquire_gpu(chat) as lease, aiohttp.ClientSession() as session:
        while True:
            try:
                await it.ready()
                endpoint = await it.client.endpoint()
                async with session.post(
                    f"{endpoint.url}/v1/chat/completions",
                    json={**body, "cache_prompt": cache},
                    headers={"Authorization": f"Bearer {endpoint.api_key}"},
                ) as got:
                    said = await got.json()
                break
            except (aiohttp.ClientError, OSError, BackendUnavailable):
                continue
        timings = said["timings"]
        prompt, cached = timings["cache_n"] + timings["prompt_n"], timings["cache_n"]
        await lease.report(
            CompletionReport(
                chat=chat, prompt_tokens=prompt, cached_tokens=cached, prefill_tok_s=1000
            )
        )
        if save:
            await lease.save()
    choice = said["choices"][0]
    tokens = (choice.get("logprobs") or {}).get("content") or [{"top_logprobs": []}]
    likely = tokens[0]["top_logprobs"]  # none of an end
    return Answer(choice["message"]["content"], {each["id"]: each["logprob"] for each in likely})


@dataclass
class History:
    """Chats of one history, on a server that saves (`kept`) and on one that reads everything (`plain`)."""

    kept: Running
    plain: Running
    rng: random.Random
    name: str
    model: str
    other: str
    chats: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    async def act(self, act: str) -> None:
        chat = f"{self.name}{self.rng.choice('abc')}"
        said = self.chats.setdefault(chat, [])
        if act in ("turn", "save", "killed as it saves"):
            words = " ".join(f"{chat}{self.rng.randrange(999)}" for _ in range(30))
            said.append({"role": "user", "content": words})
            prompt = [*FIXED, *said]
            mine = await answer(self.kept, chat, prompt, save=act != "turn", cache=True)
            if act == "killed as it saves":
                await self.kill()
            whole = await answer(self.plain, chat, prompt, save=False, cache=False)
            assert mine.is_that_of(whole), (act, mine, whole)
            said.append({"role": "assistant", "content": mine.text})
        elif act == "new":
            said.clear()
            await self.kept.client.forget_chat(chat)
        elif act == "restart":
            await self.kept.client.restart()
        elif act == "switch":
            for model in (self.other, self.model):
                async for _ in self.kept.client.use_profile(model):
                    pass
        else:
            await self.kill()

    async def kill(self) -> None:
        if pid := (await self.kept.client.status()).backend.pid:
            await asyncio.sleep(self.rng.random() * 0.01)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "seeds",
    [range(2, 3), pytest.param(range(4, 204), marks=[pytest.mark.slow, pytest.mark.timeout(5400)])],
    ids=["1", "200"],
)
async def test_answers_are_those_of_a_server_that_reads_everything(
    config: BackendConfig, tmp_path: Path, seeds: range
) -> None:
    other_model = gguf_maker.make(tmp_path / "other.gguf", Shape(kind="lfm2"))
    async with AsyncExitStack() as stack:
        quick = replace(QUICK, least_saved=0, first_pause=0.01)
        kept = await stack.enter_async_context(
            running(replace(config, profile=config.model, model=""), quick)
        )
        other = replace(config, state_dir=config.state_dir / "p", saved_prompts_mib=0)
        plain = await stack.enter_async_context(running(other, QUICK))
        await kept.client.warm(FIXED)
        await kept.until(lambda status: status.backend.warm is not None and status.backend.serving)
        for seed in seeds:
            rng = random.Random(seed)
            history = History(kept, plain, rng, f"h{seed}", config.model, str(other_model))
            for act in rng.choices(ACTS, k=STEPS):
                await history.act(act)
        await kept.ready()
        restored = (await kept.client.status()).backend.restored
    assert restored and restored.chats > len(seeds) / 10
