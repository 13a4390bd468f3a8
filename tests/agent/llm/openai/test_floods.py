"""A model server that sends without an end: little of it is taken, and little of it kept."""

import asyncio
import multiprocessing
import resource

from agent.errors import AgentError
from agent.llm.openai import OpenAIModel
from agent.llm.openai.values import text
from agent.messages import User
from agent.model import Completion, Request
from fakes.flooding_model import FLOODS, flooding

MOST_TAKEN = 16 << 20  # bytes, those in the buffers of the system included
MOST_MEMORY = 150  # MiB


async def taken(flood: str) -> tuple[int, str]:
    async with flooding(flood) as server, OpenAIModel(server.endpoint) as model:
        try:
            last = [piece async for piece in model.stream(Request((User("hi"),), ()))][-1]
        except AgentError as error:
            return server.sent, type(error).__name__
        assert isinstance(last, Completion)
        return server.sent, last.finish_reason


def measured() -> tuple[dict[str, tuple[int, str]], int]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {flood: asyncio.run(taken(flood)) for flood in FLOODS}
    return found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before >> 10


def test_a_flood_is_cut() -> None:
    """In a process of its own, whose memory is nobody else's."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found, memory = pool.apply(measured)
    assert {flood: reason for flood, (_, reason) in found.items()} == dict.fromkeys(FLOODS, "cut")
    assert max(sent for sent, _ in found.values()) < MOST_TAKEN
    assert memory < MOST_MEMORY


def test_parts_of_a_text_hold_no_parts() -> None:
    deep: object = "x"
    for _ in range(400):
        deep = [{"text": deep}]
    assert text(deep) == ""
    assert text([{"text": "a"}, {"text": 5}, {"text": "b"}, 7]) == "ab"
