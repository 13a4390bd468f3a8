"""The whole path against the bare server: how much slower is a warm turn.

    python -m bench.path [--turns N]

Each turn goes from a person's message to the final text in their chat, through
the local Bot API server, `voltaire bot` and the embedded server with Pocket.
Then the very same requests are put to a fresh server, in the same order and after
the same pauses, so that each has the same new tokens and finds the processor as cold.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from agent.context.compaction_plan import sent
from agent.llm.openai import OpenAIModel
from agent.messages import Assistant, Message
from agent.model import Request
from agent.store import open_store
from agent.tools.registry import chosen
from backend.protocol import Endpoint
from bench.cache import OURS, POCKET, server
from bench.installation import OWNER, READING_SECONDS, Installation, installation

FLAGS = ("-c", "16384", "-t", "1", *OURS)
WORDS = ("hello", "thank you", "good morning", "hi there")
SECONDS = 120.0


async def compare(turns: int) -> dict[str, float]:
    async with server(POCKET, FLAGS) as endpoint, installation(endpoint.url) as b:
        whole, said = await _whole(b, turns)
    async with server(POCKET, FLAGS) as endpoint:
        bare = await _bare(endpoint, said)
    warm, alone = statistics.median(whole), statistics.median(bare)
    return {
        "warm_turn_ms": round(warm, 1),
        "bare_request_ms": round(alone, 1),
        "warm_turn_more_ms": round(warm - alone, 1),
    }


async def _whole(b: Installation, turns: int) -> tuple[Sequence[float], Sequence[Message]]:
    """Milliseconds of each turn but the first, which reads the whole prefix; and all that was said in them."""
    times = []
    async with b.process("backend"), b.process("bot"):
        for number in range(turns + 1):
            await asyncio.sleep(READING_SECONDS)
            began = time.perf_counter()
            await b.owner.ask(WORDS[number % len(WORDS)], seconds=SECONDS)
            times.append(1000 * (time.perf_counter() - began))
    async with open_store(b.home / "s" / "voltaire.db") as store:
        _, entries = await store.transcript.current(f"tg:{OWNER}")
    return times[1:], sent(entries)


async def _bare(endpoint: Endpoint, said: Sequence[Message]) -> Sequence[float]:
    times = []
    schemas = tuple(tool.schema for tool in chosen([]))
    asked = [
        before[:-1] for before in accumulate(zip(said), tuple.__add__) if _answers(before[-1])
    ]  # what stood before each answer
    async with OpenAIModel(_fixed(endpoint)) as model:
        for messages in asked:
            await asyncio.sleep(READING_SECONDS)
            began = time.perf_counter()
            async for _ in model.stream(Request(messages, schemas, max_tokens=2048)):
                pass
            times.append(1000 * (time.perf_counter() - began))
    return times[1:]


def _answers(message: Message) -> bool:
    return isinstance(message, Assistant)


def _fixed(endpoint: Endpoint) -> Any:
    async def same() -> Endpoint:
        return endpoint

    return same


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=30)
    for name, value in asyncio.run(compare(parser.parse_args().turns)).items():
        print(f"{name:20} {value}")


if __name__ == "__main__":
    main()
