"""What the reader without hands costs beside reading a text directly: tokens and milliseconds.

    python -m bench.trust [--model GGUF] [--json]

Pocket on one thread, under the real llama.cpp server. Directly: the text as a tool's result, then
the answer. By the reader: a call that reads it and extracts, then the answer from the extract.
"""

import argparse
import asyncio
import json
import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from agent.llm.openai import OpenAIModel
from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import Completion, Request
from agent.prompt import system_text
from agent.tools.registry import chosen
from agent.turn.untrusted_reader import Reader
from fakes.llama_embedded import serve

POCKET = str(files("backend.embedded").joinpath("pocket.gguf"))
SENTENCE = (
    "The oven is cleaned on the first Monday of the month, and its filter is changed in June. "
)
SIZES = (1_000, 4_000, 12_000)  # characters of the text
WISH = "When is the filter changed?"


@dataclass
class Cost:
    prompt_tokens: int = 0
    new_tokens: int = 0
    completion_tokens: int = 0
    ms: float = 0.0

    async def add(self, completion: Completion) -> None:
        prompt, cached = completion.prompt_tokens or 0, completion.cached_tokens or 0
        self.prompt_tokens += prompt
        self.new_tokens += prompt - cached
        self.completion_tokens += completion.completion_tokens or 0


async def answered(model: OpenAIModel, reader: Reader, shown: str, cost: Cost) -> None:
    """The turn's answer once a tool has shown that text."""
    call = Assistant("", (ToolCall("abcdef123", "read_file", '{"path": "oven.txt"}'),))
    asked: tuple[Message, ...] = (System(system_text()), User(WISH), call)
    messages = (*asked, ToolResult("abcdef123", "read_file", shown))
    async for piece in model.stream(Request(messages, tuple(reader.schemas), "none", 200)):
        if isinstance(piece, Completion):
            await cost.add(piece)


async def measured(path: Path) -> list[dict[str, float | int | str]]:
    rows: list[dict[str, float | int | str]] = []
    schemas = [tool.schema for tool in chosen(())]
    async with serve(path) as endpoint:

        async def there() -> object:
            return endpoint

        async with OpenAIModel(there) as model:  # type: ignore[arg-type]
            await Reader(model, schemas).ask("Say yes.")  # the prefix is warm, as in the product
            for size in SIZES:
                text = (SENTENCE * (size // len(SENTENCE) + 1))[:size]
                for way in ("directly", "by the reader"):
                    cost, began = Cost(), time.perf_counter()
                    reader = Reader(model, schemas, cost.add)
                    shown = await reader.extract(WISH, text) if way == "by the reader" else text
                    await answered(model, reader, shown, cost)
                    cost.ms = round(1000 * (time.perf_counter() - began))
                    rows.append({"characters": size, "way": way, **cost.__dict__})
    return rows


async def main(path: Path, *, as_json: bool) -> None:
    rows = await measured(path)
    if as_json:
        print(json.dumps(rows))
        return
    print(
        "| characters | way | prompt tokens | of them new | written | ms |\n|---|---|---|---|---|---|"
    )
    for row in rows:
        print("| " + " | ".join(str(value) for value in row.values()) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=Path(POCKET))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    asyncio.run(main(options.model, as_json=options.json))
