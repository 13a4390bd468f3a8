"""The steps of `make card`, one after the other: one that fails says so in the table, and the next goes on."""

import argparse
import asyncio
import logging
import os
import platform
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent.aio import BackgroundTasks
from backend.gpu.nvml import installed_gpus
from backend.measure.bench import gpu_sampler
from bench.card import card, memory, speed, whole
from bench.card.build import compile_for
from bench.card.stage import CARD, PROCESSOR, Scale, Stage
from bench.card.table import Table
from fakes import gguf_random
from fakes.gguf_shapes import SHAPES

MODELS = {
    "dense": "qwen3-4b",
    "experts": "gpt-oss-20b",
    "sliding": "gemma4-26b-a4b",
    "hybrid": "qwen3.6-35b-a3b",
}
SHARE = 0.75  # of the card's memory that a model may take
MEMORY_FILES = Path("/dev/shm")
SPARE = 4 << 30
ALL_SECONDS, PROCESSOR_SECONDS = 570.0, 7200.0  # two busy cores compile for an hour
Run = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True)
class Step:
    """`seconds` is the most that it may take on a card."""

    name: str
    seconds: float
    run: Run


async def machine(stage: Stage) -> None:
    found = installed_gpus()
    for gpu in found.gpus:
        gib = f"{gpu.memory / (1 << 30):.1f} GiB" if gpu.memory else "?"
        capability = ".".join(map(str, gpu.capability or ("?",)))
        stage.table.row(
            "machine", gpu.name, f"{gib}, compute capability {capability}, driver {found.driver}"
        )
    cores = (
        f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"
    )
    stage.table.row("machine", "the rest", cores)
    if not found.gpus:
        raise RuntimeError(f"NVML shows no card. {found.problem}")


async def compiled(stage: Stage) -> None:
    if stage.server is not None:
        stage.table.row("server", "given", str(stage.server))
        return
    built = await compile_for("cpu" if stage.cpu else "cuda", stage.sources, stage.folder / "state")
    stage.server = built.server
    stage.table.row("server", "compiled", f"{built.seconds:.0f} s, {built.size / 1e6:.0f} MB")
    stage.table.row("server", "says", f"{built.version} {built.devices}")


async def models(stage: Stage) -> None:
    folder = stage.folder / "models"
    largest = max(gguf_random.size_of(SHAPES[name]) for name in MODELS.values())
    if not stage.cpu and shutil.disk_usage(MEMORY_FILES).free > 3 * largest + SPARE:
        folder = MEMORY_FILES / f"voltaire-card-{os.getpid()}"  # gone with the run
    folder.mkdir(parents=True, exist_ok=True)
    card_bytes = min((gpu.memory or 16 << 30 for gpu in installed_gpus().gpus), default=16 << 30)
    for kind, name in MODELS.items():
        shape = SHAPES[name]
        shape = (
            gguf_random.shrunk(shape)
            if stage.cpu
            else gguf_random.fitting(shape, int(SHARE * card_bytes))
        )
        began, path = time.monotonic(), folder / f"{kind}.gguf"
        await asyncio.to_thread(gguf_random.make_random, path, shape)
        stage.models[kind] = path
        layers, own = shape.values["block_count"], SHAPES[name].values["block_count"]
        size = f"{path.stat().st_size / 1e9:.1f} GB, {layers} of {own} layers, {time.monotonic() - began:.0f} s"
        stage.table.row("models", f"{kind}: {name}", size)


# What is measured in many rows comes last, where the time may end.
STEPS = (
    Step("machine", 20, machine),
    Step("server", 420, compiled),
    Step("models", 120, models),
    Step("NVML", 60, card.under_load),
    Step("a turn", 60, whole.whole_turn),
    Step("doctor", 60, whole.doctor_and_status),
    Step("too little memory", 60, whole.memory_short),
    Step("no card", 60, whole.no_card),
    Step("prompt cache", 90, speed.prompt_cache),
    Step("drafting", 60, speed.drafting),
    Step("fit, MiB", 150, memory.beside_the_log),
)


async def take_steps(stage: Stage, steps: Sequence[Step], seconds: float) -> None:
    """All of them within `seconds`; on a processor each may take as long as there is time."""
    end = time.monotonic() + seconds
    for step in steps:
        left = end - time.monotonic()
        limit = left if stage.cpu else min(step.seconds, left)
        if left <= 0:
            stage.table.failed(step.name, f"not begun: the {seconds:.0f} s were over")
            continue
        began = time.monotonic()
        try:
            async with asyncio.timeout(limit) as allowed:
                await step.run(stage)
        except TimeoutError:
            late = f"it took longer than {limit:.0f} s"
            answer = "something that it asked did not answer in time"
            stage.table.failed(step.name, late if allowed.expired() else answer)
        except Exception as error:
            words = str(error).strip() or type(error).__name__
            stage.table.failed(step.name, " ".join(words.split())[:400])
        print(f"  {step.name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


async def measure(asked: argparse.Namespace) -> int:
    folder: Path = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    table = Table(
        asked.out or folder / "card.md",
        f"`make card`{' on a processor, with a stand-in' if asked.cpu else ''}, {now:%Y-%m-%d %H:%M} UTC",
    )
    scale: Scale = PROCESSOR if asked.cpu else CARD
    stage = Stage(folder, table, asked.cpu, scale, asked.sources, server=asked.server)
    if asked.cpu:
        stage.nvml = str(card.make_stand_in(folder / "nvml"))
    began = time.monotonic()
    async with gpu_sampler(stage.nvml) as stage.sampler:
        try:
            async with BackgroundTasks() as tasks:
                if asked.cpu:
                    tasks.start(card.keep_drawing(folder / "nvml/scene"), "the stand-in")
                await take_steps(stage, STEPS, PROCESSOR_SECONDS if asked.cpu else ALL_SECONDS)
        finally:
            made = {path.parent for path in stage.models.values()}
            for used in (path for path in made if MEMORY_FILES in path.parents):
                shutil.rmtree(used, ignore_errors=True)
    failed = f"; failed: {', '.join(dict.fromkeys(table.failures))}" if table.failures else ""
    print(f"\n{len(table.rows)} figures in {time.monotonic() - began:.0f} s{failed}; {table.out}")
    return 1 if table.failures else 0


def main(words: Sequence[str] | None = None) -> int:
    logging.getLogger("backend").setLevel(logging.CRITICAL)  # the table says it
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cpu", action="store_true", help="a processor and stand-ins take the card's part"
    )
    parser.add_argument(
        "--server", type=Path, help="a llama-server in place of one that is compiled"
    )
    parser.add_argument("--sources", type=Path, help="of llama.cpp, in place of the kit's")
    parser.add_argument("--folder", type=Path, default=Path("build/card"), help="where it works")
    parser.add_argument(
        "--out", type=Path, help="the table's file; card.md in the folder otherwise"
    )
    return asyncio.run(measure(parser.parse_args(words)))


if __name__ == "__main__":
    sys.exit(main())
