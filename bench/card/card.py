"""The card itself: what NVML says of it idle and under load, memory held on it, and its stand-in."""

import asyncio
import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from backend.gpu.nvml import Sample, installed_gpus
from backend.measure.bench import bench_server, recording
from backend.measure.probe import CannotMeasure
from bench.card.stage import Stage

NVML = Path(__file__).parents[2] / "fakes/nvml.c"
STAND_IN = {
    "temperature": 61, "memory_temperature": 60, "power": 150_000, "limit": 300_000, "load": 97, "used": 2 << 30,
    "total": 16_144 << 20, "clock": 1380, "throttle": 0, "ecc": 0, "capability": 70, "driver": 575, "links": 6,
}  # fmt: skip
FIGURES = (
    "temperature_c", "memory_temperature_c", "power_w", "power_limit_w", "utilization", "memory_used_mib",
    "sm_clock_mhz", "memory_clock_mhz", "throttle", "ecc_uncorrected", "pcie", "nvlinks_up",
)  # fmt: skip
PIECE = 256 << 20  # bytes of memory taken at once
HELD_SECONDS = 60.0
JOULE_TOKENS = 2  # times the scale's answer: long enough for the counter to move


def make_stand_in(folder: Path) -> Path:
    """Compile NVML's stand-in and write its card; the library. Children find both by the environment."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise CannotMeasure("There is no C compiler for the stand-in of NVML.")
    folder.mkdir(parents=True, exist_ok=True)
    library, scene = folder / "libnvidia-ml.so.1", folder / "scene"
    named = "-Wl,-soname,libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", named, "-o", library, NVML], check=True)
    write_scene(scene, 0)
    os.environ |= {"FAKE_NVML": str(scene), "LD_LIBRARY_PATH": str(folder)}
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    return library


def write_scene(scene: Path, millijoules: int) -> None:
    lines = (f"{key} {value}\n" for key, value in {**STAND_IN, "energy": millijoules}.items())
    fresh = scene.with_suffix(".new")
    fresh.write_text("".join(lines))
    fresh.replace(scene)


async def keep_drawing(scene: Path) -> None:
    """The stand-in draws its power, as its energy counter says, until cancelled."""
    began = time.monotonic()
    while True:
        write_scene(scene, int((time.monotonic() - began) * STAND_IN["power"]))
        await asyncio.sleep(0.1)


# -- under load --------------------------------------------------------------------


async def under_load(stage: Stage) -> None:
    """Every figure of NVML's idle and while it reads and writes, and joules for each token."""
    idle = await sampled(stage)
    prompt, reply = stage.scale.prompt, stage.scale.reply * JOULE_TOKENS
    profile = stage.profile("dense", 2 * prompt + reply + 512)
    async with bench_server(stage.config(), profile, stage.sampler) as bench:
        text = await bench.probe.tokens(prompt)
        async with recording(stage.sampler) as reading:
            before = await sampled(stage)
            read = await bench.probe.complete(text, write=1)
            between = await sampled(stage)
        async with recording(stage.sampler) as writing:
            written = await bench.probe.complete(text, write=reply)
            after = await sampled(stage)
    samples = [*reading, *writing]
    for figure in FIGURES:
        stage.table.row(
            "NVML", figure, f"{value_of(idle, figure)} idle; {span(samples, figure)} under load"
        )
    stage.table.row(
        "NVML", "samples a second", f"{len(samples) / max(0.01, after.at - before.at):.1f}"
    )
    stage.table.row("joules", "read", energy(before, between, prompt, read.prefill_tok_s))
    stage.table.row("joules", "written", energy(between, after, reply, written.decode_tok_s))


async def sampled(stage: Stage) -> Sample:
    """The next sample; CannotMeasure without NVML."""
    got = asyncio.get_running_loop().create_future()

    def take(sample: Sample) -> None:
        if not got.done():
            got.set_result(sample)

    stage.sampler.listeners.append(take)
    try:
        async with asyncio.timeout(5):
            found: Sample = await got
            return found
    except TimeoutError:
        raise CannotMeasure(f"NVML gives no samples. {installed_gpus().problem}".strip()) from None
    finally:
        stage.sampler.listeners.remove(take)


def value_of(sample: Sample, figure: str) -> str:
    return ", ".join(str(getattr(gpu, figure)) for gpu in sample.gpus)


def span(samples: list[Sample], figure: str) -> str:
    """The least and the most of a number; each of the values otherwise."""
    found = [getattr(gpu, figure) for sample in samples for gpu in sample.gpus]
    numbers = [value for value in found if isinstance(value, int | float)]
    if numbers:
        return f"{min(numbers):g} to {max(numbers):g}"
    return " / ".join(dict.fromkeys(map(str, found)))


def energy(before: Sample, after: Sample, tokens: int, speed: float | None) -> str:
    """By the card's own counter, and by its power at the end."""
    words = [f"{speed:,.1f} tokens/s" if speed else "no speed told"]
    if before.joules is not None and after.joules is not None:
        words.append(f"{(after.joules - before.joules) / tokens:.4f} J a token by the counter")
    if speed and after.watts:
        words.append(f"{after.watts / speed:.4f} J by {after.watts:.0f} W")
    return "; ".join(words)


# -- memory held ---------------------------------------------------------------------


@asynccontextmanager
async def memory_held(free_mib: int) -> AsyncIterator[None]:
    """Another process holds the first card's memory but for `free_mib`, until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.card.card", str(free_mib)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    try:
        async with asyncio.timeout(HELD_SECONDS):
            line = (await process.stdout.readline()).decode().strip()
        if not line.startswith("held"):
            raise CannotMeasure(
                f"The card's memory cannot be held: {line or 'CUDA does not answer'}."
            )
        yield
    finally:
        process.stdin.close()
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
        await process.wait()


def hold(free: int) -> Iterator[str]:
    """Take plain device memory until only `free` bytes are left; a line, then the end."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        yield "libcuda.so.1 is missing"
        return
    device, context, left = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t()
    all_of_it, pointer = ctypes.c_size_t(), ctypes.c_uint64()
    codes = [
        cuda.cuInit(0),
        cuda.cuDeviceGet(ctypes.byref(device), 0),
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
        cuda.cuCtxSetCurrent(context),
    ]
    if any(codes):
        yield f"CUDA answers {codes}"
        return
    while True:
        cuda.cuMemGetInfo_v2(ctypes.byref(left), ctypes.byref(all_of_it))
        more = min(PIECE, left.value - free)
        if more < 1 << 20 or cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(more)):
            break
    yield f"held, {left.value >> 20} MiB left"


if __name__ == "__main__":
    for said in hold(int(sys.argv[1]) << 20):
        print(said, flush=True)
    sys.stdin.read()
