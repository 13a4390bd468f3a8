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
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, distribution
from itertools import pairwise
from pathlib import Path
from typing import Any

from backend.pictures import gpu_svg, rasterize
from backend.protocol import GpuMinute
from bench.installation import READING_SECONDS, Installation, installation
from bot.state import resident_mib
from fakes.localgram import Person
from fakes.model_scripted import ModelServer, Reply, says

ROOT = Path(__file__).parent.parent
SECONDS = 60
TICK = os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def bench(script: Callable[[Any], Reply]) -> AsyncIterator[tuple[Installation, ModelServer]]:
    async with ModelServer(script=script) as model, installation(model.url) as b:
        yield b, model


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

    async with (
        bench(script) as (b, model),
        b.process("backend") as backend,
        b.process("bot") as bot,
    ):
        await b.owner.ask("warm up", seconds=SECONDS)
        before = _cpu(bot.pid)
        for number in range(count):
            await asyncio.sleep(READING_SECONDS)
            asked.clear()
            ended.clear()
            sent = time.perf_counter()
            await b.owner.ask(f"question {number}", seconds=SECONDS)
            done = time.perf_counter()
            times["update_to_request_ms"].append(1000 * (asked[0] - sent))
            times["last_byte_to_sent_ms"].append(1000 * (done - ended[0]))
        cpu = 1000 * (_cpu(bot.pid) - before) / count
        memory = {"bot_mb": _resident_mb(bot.pid), "backend_mb": _resident_mb(backend.pid)}
        kept = _prefix_kept(model.requests)
        first = _tokens(model.requests[0])
    figures = {name: round(statistics.median(values), 1) for name, values in times.items()}
    return {
        **figures,
        "cpu_ms_per_turn": round(cpu, 1),
        **memory,
        "prefix_kept_percent": round(100 * kept, 1),
        "first_request_tokens": first,
        "small_window": "works",  # the model server's window is 8,192, and all were answered
    }


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def _resident_mb(pid: int) -> float:
    """In 10^6 bytes, as the peers' figures."""
    return round((resident_mib(pid) or 0) * 2**20 / 1e6, 1)


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
    async with bench(lambda _: says("Four.")) as (b, _):
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
        bench(lambda _: says("A long answer that is cut off.", size=1, hold=gate.wait)) as (
            b,
            model,
        ),
        b.process("backend"),
    ):
        for number in range(count):
            gate.clear()
            seen = len(model.requests)
            async with b.process("bot"):
                await b.owner.send(f"question {number}")
                await _until(lambda seen=seen: len(model.requests) > seen)
            gate.set()
            async with b.process("bot"):
                await b.owner.next_message(where=lambda m: not m.silent, seconds=SECONDS)
                answered += 1
    return {"killed_mid_answer_answered": f"{answered} of {count}"}


async def throughput(people: int, each: int) -> dict[str, float]:
    """Messages a second of people who all write at once, each again as soon as they are answered."""
    async with bench(lambda _: says("Four.")) as (b, _), b.process("backend"):
        crowd = [b.gram.user(f"Person {number}", started=True) for number in range(people)]
        async with b.process("bot", allow=[person.id for person in crowd]):
            await b.owner.ask("warm up", seconds=SECONDS)
            began = time.perf_counter()
            async with asyncio.TaskGroup() as group:
                for person in crowd:
                    group.create_task(_chatter(person, each))
            seconds = time.perf_counter() - began
    return {"messages_per_second": round(people * each / seconds, 1)}


async def _chatter(person: Person, count: int) -> None:
    for number in range(count):
        await person.ask(f"question {number}", seconds=SECONDS)


async def _until(look: Any) -> None:
    async with asyncio.timeout(SECONDS):
        while not look():
            await asyncio.sleep(0.005)


def installed() -> dict[str, Any]:
    """Packages and their size on disk, with our own; and with those for Matrix (docs/matrix.md)."""
    plain = _locked("requirements.lock")
    with_matrix = plain | _locked("requirements-matrix.lock")
    return {
        "packages": len(plain) + 1,
        "installed_mb": _megabytes(plain),
        "packages_with_matrix": len(with_matrix) + 1,
        "installed_mb_with_matrix": _megabytes(with_matrix),
    }


def _locked(lock: str) -> set[str]:
    """The packages that a lock file installs."""
    return {
        line.split("==")[0]
        for line in (ROOT / lock).read_text().splitlines()
        if "==" in line and "never" not in line
    }


def _megabytes(packages: set[str]) -> int:
    own = sum(
        f.stat().st_size
        for p in ("bot", "agent", "backend")
        for f in (ROOT / p).rglob("*")
        if f.suffix != ".pyc" and f.is_file()
    )
    return round((sum(map(_size, packages)) + own) / 1e6)


async def picture() -> dict[str, float]:
    """Seconds to a first /gpu picture: two cards, three hours."""
    now = datetime.now(UTC)
    minutes = [
        GpuMinute(at=now - timedelta(minutes=n), gpu=gpu, temperature_c=60 + n % 9, power_w=90 + n)
        for n in range(180)
        for gpu in range(2)
    ]
    began = time.perf_counter()
    await rasterize(gpu_svg(minutes, hours=3))
    return {"first_picture_s": round(time.perf_counter() - began, 2)}


def _size(name: str) -> int:
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:  # of another platform
        return 0
    paths = [file.locate() for file in files]
    return sum(
        Path(p).stat().st_size for p in paths if Path(p).is_file() and not str(p).endswith(".pyc")
    )


Part = Callable[[], Awaitable[dict[str, Any]]]


def parts(count: int, kill_count: int) -> dict[str, Part]:
    """What there is to measure, by name."""
    return {
        "turns": lambda: turns(count),
        "starts": starts,
        "picture": picture,
        "installed": lambda: asyncio.to_thread(installed),
        "messages per second": lambda: throughput(20, 10),
        "killed mid-answer": lambda: kills(kill_count),
    }


async def measure(count: int, kill_count: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for part in parts(count, kill_count).values():
        figures |= await part()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--turns", type=int, default=40)
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
