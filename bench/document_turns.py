"""Whether people wait longer while documents are read: python -m bench.document_turns

    python -m bench.document_turns [--count 1000] [--pages 10] [--turns 40]

Two bots with an instant model, one of which has a folder of documents to read, are asked by turns, so that both meet
the same machine. Prints for each how long it takes from a message to the model's request, and to the answer in
the chat, and at the end how far the folder was read meanwhile. Target: p95 of the answer within 20 % of the other's.
"""

import argparse
import asyncio
import random
import sqlite3
import tempfile
import time
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.documents import page, quantile, vocabulary
from bench.installation import READING_SECONDS, Installation, installation
from bot.state import DATABASE
from fakes import documents
from fakes.model_scripted import ModelServer, Reply, says

SECONDS = 120
MOST_RATIO = 1.2
FOLDER = "shelf"


@dataclass
class Times:
    """Seconds from a message on."""

    request: list[float] = field(default_factory=list)
    answer: list[float] = field(default_factory=list)


@dataclass
class TimedModel:
    """Answers at once, and tells when it was asked."""

    asked: float = 0.0

    def script(self, _request: Any) -> Reply:
        self.asked = self.asked or time.perf_counter()
        return says("The answer is four.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="documents")
    parser.add_argument("--pages", type=int, default=10, help="of each")
    parser.add_argument("--turns", type=int, default=40, help="of each bot")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shelf = Path(folder, FOLDER)
        fill(shelf, asked.count, asked.pages)
        return asyncio.run(compare(shelf, asked.turns))


def fill(shelf: Path, count: int, pages: int) -> None:
    dice = random.Random(7)
    words = vocabulary(dice)
    shelf.mkdir()
    shelf.parent.chmod(0o755)
    for number in range(count):
        content = documents.pdf([page(dice, words, number) for _ in range(pages)])
        (shelf / f"{number}.pdf").write_bytes(content)


async def compare(shelf: Path, turns: int) -> int:
    times = {"without": Times(), "reading": Times()}
    async with AsyncExitStack() as stack:
        bots: dict[str, tuple[Installation, TimedModel]] = {}
        for name in times:
            model = TimedModel()
            server = await stack.enter_async_context(ModelServer(script=model.script))
            bot = await stack.enter_async_context(installation(server.url))
            config = bot.home / "c/voltaire/config.toml"
            config.parent.mkdir(parents=True, exist_ok=True)
            config.write_text(
                f'[agent.documents]\n{FOLDER} = "{shelf}"\n' if name == "reading" else ""
            )
            await stack.enter_async_context(bot.process("backend"))
            await stack.enter_async_context(bot.process("bot"))
            bots[name] = bot, model
        for bot, _ in bots.values():
            await bot.owner.ask("warm up", seconds=SECONDS)
        began = read_so_far(bots["reading"][0])
        for number in range(turns):
            for name, (bot, model) in bots.items():
                await asyncio.sleep(READING_SECONDS / 2)
                model.asked, sent = 0.0, time.perf_counter()
                await bot.owner.ask(f"question {number}", seconds=SECONDS)
                times[name].request.append(model.asked - sent)
                times[name].answer.append(time.perf_counter() - sent)
        read = read_so_far(bots["reading"][0])
    for name, each in times.items():
        print(f"{name}: {told(each.request)} to the request, {told(each.answer)} to the answer")
    ratio = quantile(times["reading"].answer, 95) / quantile(times["without"].answer, 95)
    print(f"documents read meanwhile: {read - began}, {read} in all")
    print(f"p95 of the answer, reading / without: {ratio:.2f} (at most {MOST_RATIO:g})")
    return int(ratio > MOST_RATIO)


def read_so_far(bot: Installation) -> int:
    uri = f"file:{bot.home / 's' / DATABASE}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as database:
        sql = "SELECT count(*) FROM documents WHERE state <> 'waiting'"
        return int(database.execute(sql).fetchone()[0])


def told(seconds: list[float]) -> str:
    return f"p50 {quantile(seconds, 50):.0f}, p95 {quantile(seconds, 95):.0f} ms"


if __name__ == "__main__":
    raise SystemExit(main())
