"""Many people at once while the network misbehaves: everybody answered exactly once, in order.

    python -m bench.soak --chats 200 --messages 5000 --faults 0.05

The bot is `voltaire run` in a process of its own, against the local Bot API server
(with flood control) and a scripted model. A person whose answer stays away after
a notice presses its button. Prints throughput, the time from an update to the
first visible sign, CPU per message, and peak memory; exit code 1 if anything was
lost, doubled, or out of order.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import quantiles

import aiohttp

from bench.reader import Reader
from bot.localgram import Limits, Localgram, Message, Person
from bot.localgram.feed import Drafted, Event, Posted, Reacted
from fakes.bot_process import Process
from fakes.model_scripted import Json, Line, ModelServer, says
from fakes.patience import soon

TOKEN = "4242:soak"
OWNER = 1
START_SECONDS = 120.0
ANSWER_SECONDS = 120.0
STEAL_SECONDS = 20.0
STOLEN_SECONDS = 1.0  # how long a second poller holds the first up
SENT = ("drop", "execute_then_drop", "bad_gateway", "delay", "flood")
POLLED = ("drop", "bad_gateway", "duplicate")


@dataclass
class Tally:
    """What happened; times in seconds."""

    signs: list[float] = field(default_factory=list)
    calm: list[float] = field(default_factory=list)  # without a fault meanwhile
    wrong: list[str] = field(default_factory=list)


@dataclass
class Soak:
    gram: Localgram
    tally: Tally
    each: int
    pause: float  # seconds between an answer and the next message, on average
    chance: random.Random
    readers: list[Reader] = field(default_factory=list)
    stolen_at: float = 0.0  # when a second poller last asked

    async def person(self, olga: Person) -> None:
        """Says one thing after the other, each some time after the last was answered."""
        reader = Reader(olga, olga.chat())
        self.readers.append(reader)
        for number in range(self.each):
            await asyncio.sleep(self.chance.uniform(0, 2 * self.pause))
            said = await self._say(olga, f"{olga.id}-{number}")
            if not await reader.answered(said, partial(_copies, olga), ANSWER_SECONDS):
                self.tally.wrong.append(f"{said.text}: no answer")
                return

    async def _say(self, olga: Person, words: str) -> Message:
        struck, started = self._struck(), time.monotonic()
        olga._read[olga.id] = olga.chat().feed.last
        said = await olga.send(f"say {words}")
        await olga.event(lambda event: _sign(event, said), seconds=ANSWER_SECONDS)
        seconds = time.monotonic() - started
        self.tally.signs.append(seconds)
        if self._struck() == struck and started - self.stolen_at > STOLEN_SECONDS:
            self.tally.calm.append(seconds)
        return said

    def _struck(self) -> int:
        return sum(fault.struck for fault in self.gram.world.faults.list)

    def check(self, people: Sequence[Person]) -> None:
        """Each answer once, in order, in its own chat."""
        for olga in people:
            answers = [m.text for m in olga.messages() if m.text.startswith("said ")]
            wanted = [f"said {olga.id}-{number}" for number in range(self.each)]
            if answers != wanted:
                extra = [a for a in answers if answers.count(a) > 1]
                missing = [w for w in wanted if w not in answers]
                self.tally.wrong.append(f"{olga.id}: twice {extra[:3]}, missing {missing[:3]}")


def _sign(event: Event, said: Message) -> bool | None:
    if isinstance(event, Reacted) and event.message.id == said.id:
        return True
    mine = isinstance(event, Posted) and event.message.sender.is_bot
    return True if mine or isinstance(event, Drafted) else None


def _copies(olga: Person, said: Message) -> int:
    answer = f"said {said.text.removeprefix('say ')}"
    return sum(message.text == answer for message in olga.messages()[-8:])


def script(request: Json) -> Line:
    words = re.findall(r"say (\S+)", str(request["messages"][-1]["content"]))
    return says(f"said {words[-1]}" if words else "said nothing", size=40)


def misbehave(gram: Localgram, rate: float, chance: random.Random) -> None:
    """Each of `rate` of the calls goes wrong, in one of these ways."""
    for kind in SENT:
        seconds = {"delay": 12.0, "flood": 2.0}.get(kind, 0.0)
        share = rate / len(SENT) / (4 if kind == "delay" else 1)
        fault = gram.fault("sendMessage", kind, times=None, seconds=seconds, rate=share)  # type: ignore[arg-type]
        fault.chance = chance
    for method, kinds in (("getUpdates", POLLED), ("setMessageReaction", SENT[:3])):
        for kind in kinds:
            gram.fault(method, kind, times=None, rate=rate / len(kinds)).chance = chance  # type: ignore[arg-type]


async def steal(gram: Localgram, soak: Soak) -> None:
    """Now and then another copy of the bot asks for updates."""
    async with aiohttp.ClientSession() as session:
        while True:
            await asyncio.sleep(STEAL_SECONDS)
            soak.stolen_at = time.monotonic()
            url = f"{gram.url}/bot{TOKEN}/getUpdates"
            try:
                async with session.post(url, data={"timeout": "0", "limit": "1"}):
                    continue
            except aiohttp.ClientError:
                continue


async def run(
    chats: int, messages: int, rate: float, seed: int, per_second: float
) -> dict[str, object]:
    each = max(1, messages // chats)
    pause = chats / per_second if per_second else 0.0
    with tempfile.TemporaryDirectory() as folder:
        async with (
            Localgram(TOKEN, limits=Limits()) as gram,
            ModelServer(script=script, n_ctx=32_768) as model,
        ):
            people = [gram.user(f"Person {n}", started=True) for n in range(chats)]
            process = Process(gram, Path(folder), model.url, OWNER)
            process.allow([person.id for person in people])
            async with process.running():
                await soon(lambda: gram.world.updates.polls, START_SECONDS)
                chance = random.Random(seed)
                misbehave(gram, rate, chance)
                soak = Soak(gram, Tally(), each, pause, chance)
                figures = await _measured(process, lambda: _all(soak, gram, people))
                report = _report(soak, chats, each, figures, gram)
            soak.check(people)
            return report


async def _all(soak: Soak, gram: Localgram, people: Sequence[Person]) -> None:
    stealing = asyncio.create_task(steal(gram, soak))
    try:
        async with asyncio.TaskGroup() as group:
            for person in people:
                group.create_task(soak.person(person))
    finally:
        stealing.cancel()
        await asyncio.wait([stealing])


@dataclass(frozen=True)
class Figures:
    seconds: float
    cpu_s: float
    peak_mib: float


async def _measured(process: Process, work: Callable[[], Awaitable[None]]) -> Figures:
    before, started = process.cpu_seconds(), time.monotonic()
    await work()
    seconds = time.monotonic() - started
    return Figures(seconds, process.cpu_seconds() - before, process.peak_mib())


def _report(
    soak: Soak, chats: int, each: int, figures: Figures, gram: Localgram
) -> dict[str, object]:
    tally, total = soak.tally, chats * each
    return {
        "chats": chats,
        "messages": total,
        "seconds": round(figures.seconds, 1),
        "messages_per_second": round(total / figures.seconds, 1),
        "first_sign_ms": _percentiles(tally.signs),
        "first_sign_without_fault_ms": _percentiles(tally.calm),
        "cpu_ms_per_message": round(1000 * figures.cpu_s / total, 1),
        "peak_mib": figures.peak_mib,
        "faults": sum(fault.struck for fault in gram.world.faults.list),
        "notices": sum(reader.notices for reader in soak.readers),
        "pressed": sum(reader.pressed for reader in soak.readers),
        "wrong": tally.wrong,
    }


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return {}
    cuts = quantiles(seconds, n=100)
    return {"p50": round(1000 * cuts[49], 1), "p95": round(1000 * cuts[94], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--faults", type=float, default=0.05)
    parser.add_argument(
        "--rate",
        type=float,
        default=10.0,
        help="messages a second that all send together (Telegram takes about 30); 0: no pauses",
    )
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    report = asyncio.run(run(given.chats, given.messages, given.faults, given.seed, given.rate))
    print(json.dumps(report, indent=2))
    sys.exit(bool(report["wrong"]))


if __name__ == "__main__":
    main()
