"""What a turn costs beside the model: latency, CPU, memory, starts; with an instant model.

    python -m bench.turn [--json] [--turns N] [--kills N]

Bot and backend run as their own processes against the local Bot API server; the
model server answers at once, so that what is measured is ours.
"""

import argparse
import asyncio
import json
import os
import resource
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from itertools import pairwise
from pathlib import Path
from typing import Any

from bot.localgram import Localgram, Person
from bot.presence import resident_mib
from tests.fakes.model_scripted import ModelServer, Reply, says

VOLTAIRE = Path(sys.executable).with_name("voltaire")
TOKEN = "1000001:bench"
OWNER = 7
SECONDS = 60
TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Bench:
    """One installation: a phone, a model server, and where the state is."""

    gram: Localgram
    owner: Person
    model: ModelServer
    home: Path
    asked: list[float] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        plain = {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")}
        return plain | {
            "XDG_CONFIG_HOME": str(self.home / "c"),
            "VOLTAIRE_TELEGRAM__TOKEN": TOKEN,
            "VOLTAIRE_TELEGRAM__BASE_URL": self.gram.url,
            "VOLTAIRE_TELEGRAM__OWNERS": str(OWNER),
            "VOLTAIRE_BACKEND__KIND": "external",
            "VOLTAIRE_BACKEND__URL": self.model.url,
            "VOLTAIRE_BACKEND__SOCKET": str(self.home / "b.sock"),
            "VOLTAIRE_STATE__DIR": str(self.home / "s"),
        }

    @asynccontextmanager
    async def process(self, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            VOLTAIRE,
            *words,
            env=self.environment,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


@asynccontextmanager
async def bench(script: Any) -> AsyncIterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="vb-") as folder:
        async with (
            Localgram(TOKEN) as gram,
            ModelServer(script=script) if callable(script) else ModelServer(*script) as model,
        ):
            owner = gram.user("Ada", id=OWNER, started=True)
            yield Bench(gram, owner, model, Path(folder))


async def turns(count: int) -> dict[str, Any]:
    """Latencies, CPU and memory over `count` turns of one chat."""
    times: dict[str, list[float]] = {"update_to_request_ms": [], "last_byte_to_sent_ms": []}
    asked: list[float] = []
    ended: list[float] = []

    async def at_end() -> None:
        ended.append(time.perf_counter())

    def script(_request: Any) -> Reply:
        asked.append(time.perf_counter())
        return says("The answer is four.", hold=at_end)

    async with bench(script) as b, b.process("backend") as backend, b.process("bot") as bot:
        await b.owner.ask("warm up", seconds=SECONDS)
        before = _cpu(bot.pid)
        for number in range(count):
            asked.clear(), ended.clear()
            sent = time.perf_counter()
            await b.owner.ask(f"question {number}", seconds=SECONDS)
            done = time.perf_counter()
            times["update_to_request_ms"].append(1000 * (asked[0] - sent))
            times["last_byte_to_sent_ms"].append(1000 * (done - ended[0]))
        cpu = 1000 * (_cpu(bot.pid) - before) / count
        memory = {"bot_mib": resident_mib(bot.pid), "backend_mib": resident_mib(backend.pid)}
        kept = _prefix_kept(b.model.requests)
        first = _tokens(b.model.requests[0])
    figures = {name: round(statistics.median(values), 1) for name, values in times.items()}
    return {
        **figures,
        "cpu_ms_per_turn": round(cpu, 1),
        **memory,
        "prefix_kept": kept,
        "first_request_tokens": first,
    }


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def _prefix_kept(requests: list[dict[str, Any]]) -> float:
    """Share of requests that begin with the one before and have the same tools."""
    pairs = list(pairwise(requests))
    same = [
        later["messages"][: len(earlier["messages"])] == earlier["messages"]
        and later.get("tools") == earlier.get("tools")
        for earlier, later in pairs
    ]
    return sum(same) / len(same) if same else 1.0


def _tokens(request: dict[str, Any]) -> int:
    from rs_bpe.bpe import openai

    text = json.dumps(request.get("tools", []), separators=(",", ":"), ensure_ascii=False)
    text += "".join(str(message["content"]) for message in request["messages"])
    return len(openai.o200k_base().encode(text))


async def starts() -> dict[str, float]:
    """Seconds to the first poll, and of a one-shot command."""
    async with bench([says("Four.")]) as b:
        polls: list[float] = []
        one_shot: list[float] = []
        for _ in range(5):
            began, polled = time.perf_counter(), b.gram.world.updates.polls
            async with b.process("bot"):
                await _until(lambda polled=polled: b.gram.world.updates.polls > polled)
                polls.append(time.perf_counter() - began)
        for _ in range(5):
            began = time.perf_counter()
            async with b.process("ask", "what is two and two?") as process:
                assert await asyncio.wait_for(process.wait(), SECONDS) == 0
            one_shot.append(time.perf_counter() - began)
    return {"start_to_first_poll_s": round(min(polls), 2), "one_shot_s": round(min(one_shot), 2)}


async def kills(count: int) -> dict[str, str]:
    """The bot is killed mid-answer and started again: how often the question is answered, once."""
    answered = 0
    gate = asyncio.Event()

    async with (
        bench(lambda request: says("A long answer that is cut off.", size=1, hold=gate.wait)) as b,
        b.process("backend"),
    ):
        for number in range(count):
            gate.clear()
            seen = len(b.model.requests)
            async with b.process("bot"):
                await b.owner.send(f"question {number}")
                await _until(lambda seen=seen: len(b.model.requests) > seen)
            gate.set()
            async with b.process("bot"):
                await b.owner.next_message(where=lambda m: not m.silent, seconds=SECONDS)
                answered += 1
    return {"killed_mid_answer_answered": f"{answered} of {count}"}


async def _until(look: Any) -> None:
    async with asyncio.timeout(SECONDS):
        while not look():
            await asyncio.sleep(0.005)


def installed() -> dict[str, Any]:
    """Packages of requirements.lock and their size on disk, with our own."""
    root = Path(__file__).parent.parent
    names = [
        line.split("==")[0]
        for line in (root / "requirements.lock").read_text().splitlines()
        if "==" in line and "never" not in line
    ]
    size = sum(_size(name) for name in set(names))
    own = sum(
        f.stat().st_size
        for p in ("bot", "agent", "backend")
        for f in (root / p).rglob("*")
        if f.suffix != ".pyc" and f.is_file()
    )
    return {"packages": len(set(names)) + 1, "installed_mib": round((size + own) / 2**20)}


def _size(name: str) -> int:
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:  # of another platform
        return 0
    paths = [file.locate() for file in files]
    return sum(
        Path(p).stat().st_size for p in paths if Path(p).is_file() and not str(p).endswith(".pyc")
    )


async def measure(count: int, kill_count: int) -> dict[str, Any]:
    figures: dict[str, Any] = {**await turns(count), **await starts(), **installed()}
    if kill_count:
        figures |= await kills(kill_count)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--kills", type=int, default=50)
    chosen = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    figures = asyncio.run(measure(chosen.turns, chosen.kills))
    if chosen.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:28} {value}")


if __name__ == "__main__":
    main()
