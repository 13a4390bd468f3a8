"""The whole path against the bare server: how much slower is a warm turn, and each token of it.

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
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from agent.context.summary import sent
from agent.llm.openai import OpenAIModel
from agent.messages import Assistant, Message
from agent.model import Completion, Request
from agent.store import open_store
from agent.tools.registry import chosen
from backend.protocol import Endpoint
from bench.cache import OURS, POCKET, server
from bench.installation import OWNER, READING_SECONDS, Installation, installation

FLAGS = ("-c", "16384", "-t", "1", *OURS)
WORDS = ("hello", "thank you", "good morning", "hi there")
SECONDS = 120.0


@dataclass(frozen=True)
class Pass:
    """One pass over the turns: milliseconds of each, tokens per second of each answer."""

    turn_ms: Sequence[float]
    tok_s: Sequence[float]


async def compare(turns: int) -> dict[str, float]:
    async with server(POCKET, FLAGS) as endpoint, installation(endpoint.url) as b:
        whole, said = await _whole(b, turns)
    async with server(POCKET, FLAGS) as endpoint:
        bare = await _bare(endpoint, said)
    warm, alone = statistics.median(whole.turn_ms), statistics.median(bare.turn_ms)
    return {
        "decode_ratio": round(statistics.median(whole.tok_s) / statistics.median(bare.tok_s), 3),
        "warm_turn_ms": round(warm, 1),
        "bare_request_ms": round(alone, 1),
        "warm_turn_more_ms": round(warm - alone, 1),
    }


async def _whole(b: Installation, turns: int) -> tuple[Pass, Sequence[Message]]:
    """The turns, the first of them left out, and all that was said in them."""
    times = []
    async with b.process("backend"), b.process("bot"):
        for number in range(turns + 1):
            await asyncio.sleep(READING_SECONDS)
            began = time.perf_counter()
            await b.owner.ask(WORDS[number % len(WORDS)], seconds=SECONDS)
            times.append(1000 * (time.perf_counter() - began))
    async with open_store(b.home / "s" / "voltaire.db") as store:
        _, entries = await store.transcript.current(f"tg:{OWNER}")
        async with store.database.read() as tx:
            speeds = await tx.all(
                "SELECT decode_tok_s FROM usage WHERE purpose = 'turn' ORDER BY id"
            )
    return _pass(times, [speed for (speed,) in speeds]), sent(entries)


async def _bare(endpoint: Endpoint, said: Sequence[Message]) -> Pass:
    times, speeds = [], []
    schemas = tuple(tool.schema for tool in chosen([]))
    asked = [
        before[:-1] for before in accumulate(zip(said), tuple.__add__) if _answers(before[-1])
    ]  # what stood before each answer
    async with OpenAIModel(_fixed(endpoint)) as model:
        for messages in asked:
            await asyncio.sleep(READING_SECONDS)
            began = time.perf_counter()
            completion = await _completed(model, Request(messages, schemas, max_tokens=2048))
            times.append(1000 * (time.perf_counter() - began))
            speeds.append(completion.decode_tok_s)
    return _pass(times, speeds)


def _answers(message: Message) -> bool:
    return isinstance(message, Assistant)


async def _completed(model: OpenAIModel, request: Request) -> Completion:
    last = [piece async for piece in model.stream(request)][-1]
    assert isinstance(last, Completion)
    return last


def _pass(times: Sequence[float], speeds: Sequence[float | None]) -> Pass:
    """Without the first, which reads the whole prefix."""
    return Pass(times[1:], [speed for speed in speeds[1:] if speed])


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
