"""The store under load: a million messages in 500 chats.

    python -m bench.store [--messages N] [--chats N] [--keep FILE]

Prints p50 and p95 of loading a chat's prompt, of recall, of taking a message in, of a budget's count, of a ledger's row,
and the time that opening the file takes. Targets: prompt p95 10 ms, recall p95 60 ms.
"""

import argparse
import asyncio
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

from agent.memory.notes import ChatMemory
from agent.store import Incoming, Store, open_store

LIVE = 120  # messages in a chat's prompt
SAMPLES = 300
PROMPT_MS, RECALL_MS, OPEN_S = 10.0, 60.0, 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--chats", type=int, default=500)
    parser.add_argument("--keep", type=Path, help="a file to fill once and use again")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = asked.keep or Path(folder) / "voltaire.db"
        return asyncio.run(bench(path, asked.messages, asked.chats))


async def bench(path: Path, messages: int, chats: int) -> int:
    async with open_store(path) as store:
        filled = await store.chats.count()
    if not filled:
        started = time.perf_counter()
        fill(path, messages, chats, random.Random(7))
        print(
            f"filled {messages:,} messages in {chats} chats in {time.perf_counter() - started:.0f} s"
        )
    started = time.perf_counter()
    async with open_store(path) as store:
        opened = time.perf_counter() - started
        print(f"{path.stat().st_size / 1e6:,.0f} MB; opened in {opened * 1000:.0f} ms")
        good = await measure(store, chats)
    return 0 if good and opened < OPEN_S else 1


async def measure(store: Store, chats: int) -> bool:
    dice = random.Random(11)
    words = vocabulary(random.Random(3))

    async def load() -> None:
        await store.transcript.current(chat(dice.randrange(chats)))

    async def recall() -> None:
        query = " ".join(draw(dice, words) for _ in range(dice.randint(1, 5)))
        await ChatMemory(store, chat(dice.randrange(chats)), "UTC").recall(query, 5)

    numbers = iter(range(1_000_000))

    async def take_in() -> None:
        await store.inbox.add(
            Incoming(
                chat(dice.randrange(chats)), "bench", f"{time.time_ns()}-{next(numbers)}", "hello"
            )
        )

    async def reserve() -> None:
        amounts, limits = {"calls": 1, "files": 0}, {"calls": 1 << 40, "files": 1 << 40}
        await store.budgets.reserve(chat(dice.randrange(chats)), "2026-11-22", amounts, limits)

    async def record() -> None:
        await store.ledger.record("admin", chat(dice.randrange(chats)), act="bench")

    await sampled("budget of a tool call", reserve)
    await sampled("row of the ledger", record)
    prompt = await sampled("prompt of a chat", load)
    found = await sampled("recall, 1 to 5 words", recall)
    await sampled("message into the inbox", take_in)
    return prompt <= PROMPT_MS and found <= RECALL_MS


async def sampled(name: str, work: Callable[[], Awaitable[None]]) -> float:
    """Run it SAMPLES times; prints and returns p95 in milliseconds."""
    times = []
    for _ in range(SAMPLES):
        started = time.perf_counter()
        await work()
        times.append((time.perf_counter() - started) * 1000)
    p95 = statistics.quantiles(times, n=20)[-1]
    print(
        f"{name:<24} p50 {statistics.median(times):7.2f} ms   p95 {p95:7.2f} ms   max {max(times):7.2f} ms"
    )
    return p95


def chat(number: int) -> str:
    return f"tg:{1000 + number}"


def vocabulary(dice: random.Random) -> list[str]:
    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    made = ("".join(dice.choices(syllables, k=dice.randint(1, 4))) for _ in range(30_000))
    return list(dict.fromkeys(made))


def draw(dice: random.Random, words: list[str]) -> str:
    """A word, the common ones far more often than the rare, as in a language."""
    return words[min(len(words) - 1, int(dice.paretovariate(0.6)) - 1)]


def fill(path: Path, messages: int, chats: int, dice: random.Random) -> None:
    """Write the chats straight into the file, triggers and indexes included."""
    words = vocabulary(random.Random(3))
    sentences = [
        " ".join(draw(dice, words) for _ in range(dice.randint(4, 40))) for _ in range(20_000)
    ]
    each = messages // chats
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        for pragma in ("synchronous = OFF", "cache_size = -200000", "foreign_keys = ON"):
            file.execute(f"PRAGMA {pragma}")
        file.execute("BEGIN")
        for number in range(chats):
            file.execute(
                "INSERT INTO chats (key, number, created_at, active_at) VALUES (?, ?, ?, ?)",
                (chat(number), number + 1, 0, number),
            )
            file.execute(
                "INSERT INTO conversations (id, chat, created_at, active_at) VALUES (?, ?, 0, 0)",
                (number + 1, chat(number)),
            )
            file.execute(
                "UPDATE chats SET conversation = ? WHERE key = ?", (number + 1, chat(number))
            )
        # Interleaved, as chats are in life: their rows are not neighbours on disk.
        rows = (
            row(at, number, each, sentences, dice) for at in range(each) for number in range(chats)
        )
        file.executemany(
            "INSERT INTO transcript (conversation, position, turn, role, text, extra, live, at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        file.execute("COMMIT")


def row(
    at: int, number: int, each: int, sentences: list[str], dice: random.Random
) -> tuple[object, ...]:
    role = ("user", "assistant", "tool", "assistant")[at % 4]
    extra = '{"call":"c","name":"bash"}' if role == "tool" else None
    return (
        number + 1,
        at + 1,
        f"t{at // 4}",
        role,
        dice.choice(sentences),
        extra,
        int(at >= each - LIVE),
        1.7e9 + at,
    )


if __name__ == "__main__":
    sys.exit(main())
