"""A conversation that goes on and on in a window of 8,192 tokens, with the default tools."""

import asyncio
import gc
import random
import re
import resource
from pathlib import Path

import pytest

from agent.messages import Assistant, ToolCall, ToolResult, User
from agent.model import Request
from agent.tools.registry import chosen
from agent.tools.tool import Call, Output, tool
from fakes.model_caching import CachingModel
from tests.agent.chats.conftest import Bench, said

PINNED = ["allergic to peanuts", "the door code is 4711", "daughter is called Ada"]
CHAT = "tg:1"


async def work(call: Call, size: int) -> Output:
    "Give so many characters."
    return Output("o" * size)


def answer(request: Request) -> Assistant:
    last = request.messages[-1]
    if "is about to be shortened" in last.text:
        return Assistant("The person talks on and on about the garden and the report.")
    users = [m for m in request.messages if isinstance(m, User)]
    size = re.findall(r"size=(\d+)", users[-1].text)[-1]
    if int(size) % 3 == 0 and not isinstance(last, ToolResult):
        return Assistant("", (ToolCall(f"c{size}{len(last.text)}", "work", f'{{"size": {size}}}'),))
    return Assistant(" ".join(map(str, range(int(size))))[: int(size) // 4 + 1])


def pinned_there(request: Request) -> None:
    text = "".join(message.text for message in request.messages)
    missing = [fact for fact in PINNED if fact not in text]
    assert not missing, missing


async def talk(path: Path, turns: int) -> tuple[CachingModel, list[int]]:
    """The model, and the process's peak memory (KiB) after each fifth of the turns."""
    model = CachingModel(answer, n_ctx=8192, before=pinned_there)
    bench, dice, memory = Bench(path, model, [*chosen([]), tool(work)]), random.Random(1), []
    async with bench.running() as chats:
        for fact in PINNED:
            await chats.store.notes.add(CHAT, fact, pinned=True)
        for number in range(turns):
            size = dice.choice([3, 40, 400, 900, 3000])
            await chats.submit(
                said(f"turn {number} {'w' * dice.randrange(600)} size={size}", str(number), CHAT)
            )
            await bench.heard.until(lambda: bench.heard.ends(CHAT))
            [end] = bench.heard.ends(CHAT)
            assert end.reason == "done"
            bench.heard.events.clear()
            bench.heard.ended.clear()
            del model.requests[:]
            if number % (turns // 5) == 0:
                gc.collect()
                memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        said_rows = await chats.store.transcript.texts(1)
    assert len([s for s in said_rows if s.role == "user"]) == turns
    return model, memory


@pytest.mark.parametrize(
    "turns",
    [
        60,
        pytest.param(2000, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
async def test_it_never_overflows_and_never_forgets_what_is_pinned(
    tmp_path: Path, turns: int
) -> None:
    model, memory = await talk(tmp_path / "v.db", turns)
    assert max(prompt for prompt, _ in model.reads) <= 8192
    read = sum(prompt - cached for prompt, cached in model.reads)
    told = sum(prompt for prompt, _ in model.reads)
    assert read < 0.2 * told
    assert memory[-1] - memory[1] < 16 * 1024
    await asyncio.sleep(0)
