"""What ten thousand messages leave behind, and whether retention and VACUUM bound it under load.

    python -m bench.growth [--messages 10000] [--chats 40] [--bound 4]

`voltaire run` in a process of its own against the local Bot API server and a scripted
model; every person writes as soon as they are answered (and the bot takes another message
of theirs), and every tenth answer writes a file. For a last fifth of the messages the database has a bound in MiB, a day of
retention takes 4 s, its hour 10 s, and VACUUM comes twice a minute. Prints a row for each tenth, and what a
message takes of database, workspaces, log and memory; exit code 1 when an answer is
missing, the bound does not hold, or no freed room was given back.
"""

import argparse
import asyncio
import logging
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bot import access
from bot.cli.doctor_machine import bytes_in
from bot.localgram import Localgram, Person
from fakes.bot_process import Process
from fakes.model_scripted import Json, Line, ModelServer, calls, says
from fakes.patience import soon

TOKEN = "4242:growth"
OWNER = 1
START_SECONDS = 120.0
ANSWER_SECONDS = 300.0
TENTHS = 10
BOUNDED = 2  # of the tenths, the last ones
FILES = 10  # one answer in so many writes a file
ANSWER = "An answer of the length that answers have. " * 10
SOON = """
from agent.chats import maintenance
from agent.store import retention
retention.DAY, maintenance.HOUR, maintenance.DAY = 4.0, 10.0, 30.0
*others, _, warmed = maintenance.Maintenance.__init__.__defaults__
maintenance.Maintenance.__init__.__defaults__ = (*others, 2.0, warmed)
"""
SLACK = (
    1.5  # a bound is kept once an hour, and VACUUM once a day: what comes in between is above it
)


@dataclass(frozen=True)
class Sample:
    """After so many messages, in bytes; `seconds` since the start."""

    messages: int
    seconds: float
    database: int
    workspaces: int
    log: int
    memory: int

    def row(self) -> str:
        sizes = (self.database, self.workspaces, self.log, self.memory)
        return f"{self.messages:8,} {self.seconds:7.0f} s" + "".join(
            f"{size / 2**20:12.1f}" for size in sizes
        )


@dataclass
class Growth:
    gram: Localgram
    folder: Path
    process: Process
    people: list[Person]
    answered: int = 0
    began: float = 0.0

    def sample(self) -> Sample:
        database = (self.folder / "voltaire.db").stat().st_size  # its log is 4 MiB beside it
        return Sample(
            self.answered,
            time.monotonic() - self.began,
            database,
            bytes_in(self.folder / "chats"),
            (self.folder / "log.txt").stat().st_size,
            round(self.process.resident_mib() * 2**20),
        )

    async def more(self, messages: int) -> None:
        """That many messages and answers, of all people at once."""
        left = iter(range(messages))

        async def talk(person: Person) -> None:
            for _ in left:
                words, began = f"{person.id}-{self.answered}", time.monotonic()
                answer = await person.ask(f"say {words}", seconds=ANSWER_SECONDS)
                if not answer.text.startswith(f"said {words}"):
                    raise RuntimeError(f"{words} was answered by {answer.text[:80]!r}")
                self.answered += 1
                await asyncio.sleep(began + access.SECONDS - time.monotonic())

        async with asyncio.TaskGroup() as group:
            for person in self.people:
                group.create_task(talk(person))


def script(request: Json) -> Line:
    """An answer that names the words; after a file where it is its turn."""
    messages = request["messages"]
    said = next(m for m in reversed(messages) if m["role"] == "user")
    found = re.findall(r"say (\S+)", str(said["content"]))
    if not found:  # a summary
        return says(ANSWER, size=200)
    words = found[-1]
    number = int(words.rpartition("-")[2])
    if number % FILES == 0 and messages[-1]["role"] != "tool":
        return calls("write_file", path=f"{words}.txt", content=ANSWER)
    return says(f"said {words}. {ANSWER}", size=200)


async def run(messages: int, chats: int, bound: int) -> list[str]:
    """The rows, then what was wrong, each of those after a '!'."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="vg-") as place:
        folder = Path(place)
        async with Localgram(TOKEN) as gram, ModelServer(script=script, n_ctx=32_768) as model:
            people = [gram.user(f"Person {n}", started=True) for n in range(chats)]
            process = Process(gram, folder, model.url, OWNER)
            process.allow([person.id for person in people])
            it = Growth(gram, folder, process, people)
            each, samples = messages // TENTHS, []
            print(
                f"{'messages':>8} {'':9}{'database':>12}{'workspaces':>12}{'log':>12}{'memory':>12}  MiB"
            )
            async with _running(it):
                it.began = time.monotonic()
                for _ in range(TENTHS - BOUNDED):
                    await it.more(each)
                    samples.append(it.sample())
                    print(samples[-1].row(), flush=True)
            process.first = SOON
            process.set("STATE__KEEP_MIB", bound)
            async with _running(it):
                for _ in range(BOUNDED):
                    await it.more(each)
                    samples.append(it.sample())
                    print(samples[-1].row(), "  bounded", flush=True)
            first, last, end = samples[0], samples[-BOUNDED - 1], samples[-1]
            print(per_message(first, last))
            if end.database > bound * SLACK * 2**20:
                wrong.append(f"the database is {end.database / 2**20:.1f} MiB, its bound {bound}")
            if end.database >= last.database:
                wrong.append("no room was given back to the disk")
    return wrong


def per_message(first: Sample, last: Sample) -> str:
    count = last.messages - first.messages
    sizes = {
        name: (getattr(last, name) - getattr(first, name)) / count / 1024
        for name in ("database", "workspaces", "log", "memory")
    }
    return "KiB a message: " + ", ".join(f"{name} {size:.2f}" for name, size in sizes.items())


@asynccontextmanager
async def _running(it: Growth) -> AsyncIterator[None]:
    polls = it.gram.world.updates.polls
    async with it.process.running():
        await soon(lambda: it.gram.world.updates.polls > polls, START_SECONDS)
        yield
        await it.process.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--chats", type=int, default=40)
    parser.add_argument("--bound", type=int, default=4, help="MiB of the database at the end")
    given = parser.parse_args()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # clients may go before the end
    wrong = asyncio.run(run(given.messages, given.chats, given.bound))
    for line in wrong:
        print(f"wrong: {line}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
