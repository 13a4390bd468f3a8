"""What `voltaire bench` measures on a user's machine, as rows with the conditions of the GPUs.

(The repository's own bench/ prints the figures of docs/performance.md and is not
installed.)

    async with gpu_sampler() as sampler, bench_server(config, profile, sampler) as bench:
        async for row in bench.rows([512, 8192]):

A row whose GPU was throttled (heat, power, a fault of the board) is marked and
never used for a comparison: a throttled card once made a gain of 8 % look like
45 % (github.com/andrewleech/v100-llm-kit).
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from backend.aio import set_within
from backend.config import BackendConfig
from backend.gpu.nvml import Sample, Sampler, sampling
from backend.measure.probe import SHARED, CannotMeasure, Probe, open_probe
from backend.models.profile import Profile
from backend.server.launch import EMBEDDED, CannotStart, loaded_server, prepare

STREAMS = (1, 4, 8)
UNDRAFTED = ", no drafting"
FIRST_SECONDS = 2.0  # for the first GPU sample
LOAD_SECONDS = 1800.0
MARGIN = 512  # tokens of the window left for the reply
CACHE_FLAGS = (("-ctk", "--cache-type-k"), ("-ctv", "--cache-type-v"))
# Flags that differ between starts, or do not affect speed.
OMITTED = ("--port", "--host", "--api-key", "--api-key-file", "--slot-save-path", "-lv")
FIGURES = (("prefill", "prefill_tok_s"), ("decode", "decode_tok_s"))


@dataclass(frozen=True, slots=True)
class Setting:
    """What a row was measured on; None means unknown."""

    profile: str
    build: str
    flags: str
    kv: str
    driver: str | None = None
    server: str = ""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The GPUs during a measurement: mean total watts, highest °C, lowest MHz, throttle reasons."""

    watts: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    throttle: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One measurement: tokens/s, milliseconds, fractions of 1, tokens per joule."""

    name: str
    setting: Setting
    conditions: Conditions
    context: int | None = None
    prefill_tok_s: float | None = None
    decode_tok_s: float | None = None
    ttft_ms: float | None = None
    acceptance: float | None = None
    tokens_per_joule: float | None = None
    cache_hit: float | None = None
    rewind_ms: float | None = None

    @property
    def throttled(self) -> bool:
        return bool(self.conditions.throttle)


def conditions(samples: Sequence[Sample]) -> Conditions:
    gpus = [gpu for sample in samples for gpu in sample.gpus]
    watts = [sample.watts for sample in samples if sample.watts is not None]
    clocks = [gpu.sm_clock_mhz for gpu in gpus if gpu.sm_clock_mhz is not None]
    degrees = [sample.hottest for sample in samples if sample.hottest is not None]
    return Conditions(
        watts=round(sum(watts) / len(watts), 1) if watts else None,
        temperature_c=max(degrees, default=None),
        sm_clock_mhz=min(clocks, default=None),
        throttle=tuple(dict.fromkeys(why for gpu in gpus for why in gpu.throttle)),
    )


@asynccontextmanager
async def recording(sampler: Sampler) -> AsyncIterator[list[Sample]]:
    """Record the samples taken during the block, or the one before it if none was taken."""
    samples = [sampler.fresh] if sampler.fresh else []
    take = samples.append
    sampler.listeners.append(take)
    try:
        yield samples
    finally:
        sampler.listeners.remove(take)
    if len(samples) > 1:
        samples.pop(0)


@dataclass(frozen=True, slots=True)
class Bench:
    """Measures one server, with the GPUs' conditions."""

    probe: Probe
    setting: Setting
    sampler: Sampler

    async def rows(self, sizes: Sequence[int], slots: int = 1) -> AsyncIterator[BenchRow]:
        """Measure everything, one row after the other."""
        for size in sizes:
            row = await self.at(size)
            yield row
        if row.acceptance is not None:
            plain = await self.at(sizes[-1], draft=False)
            # llama-server before build 11434 could turn drafting off for a single request.
            if plain.acceptance is None:
                yield plain
        async for row in self._first_tokens(sizes[len(sizes) // 2]):
            yield row
        async with recording(self.sampler) as samples:
            share = await self.probe.cache_reuse(min(SHARED, sizes[-1]))
        row = BenchRow("cache, chats in turn", self.setting, conditions(samples), cache_hit=share)
        yield row
        for count in STREAMS if slots > 1 else ():
            if count <= slots:
                yield await self._concurrent(count)

    async def at(self, context: int, *, draft: bool = True) -> BenchRow:
        """Prefill and decode speed with `context` tokens in the window."""
        async with recording(self.sampler) as samples:
            timed = await self.probe.complete(await self.probe.tokens(context), draft=draft)
        seen, joule = conditions(samples), None
        if seen.watts and timed.decode_tok_s:
            joule = timed.decode_tok_s / seen.watts
        return BenchRow(
            f"{context:,} tokens" if draft else f"{context:,} tokens{UNDRAFTED}",
            self.setting,
            seen,
            context,
            timed.prefill_tok_s,
            timed.decode_tok_s,
            timed.ttft_ms,
            timed.acceptance,
            joule,
        )

    async def rewind_ms(self, context: int) -> float:
        """Milliseconds to the first token of a prompt whose end was changed after it had been read."""
        return (await self.probe.rewound(context)).ttft_ms

    async def _first_tokens(self, context: int) -> AsyncIterator[BenchRow]:
        async with recording(self.sampler) as samples:
            cold, warm = await self.probe.cold_and_warm(context)
        seen = conditions(samples)
        for name, timed in (("first token, cold", cold), ("first token, warm", warm)):
            yield BenchRow(name, self.setting, seen, context, ttft_ms=timed.ttft_ms)

    async def _concurrent(self, count: int) -> BenchRow:
        async with recording(self.sampler) as samples:
            speed = await self.probe.concurrent(count)
        seen = conditions(samples)
        joule = speed / seen.watts if seen.watts else None
        name = f"{count} chat{'s' if count > 1 else ''} at once"
        return BenchRow(name, self.setting, seen, decode_tok_s=speed, tokens_per_joule=joule)


@asynccontextmanager
async def gpu_sampler(nvml: str | None = None) -> AsyncIterator[Sampler]:
    """A sampler that runs four times a second; it stays empty without NVML."""
    sampler = Sampler()
    async with sampling(sampler, nvml, every=0.25):
        await set_within(sampler.answered, FIRST_SECONDS)  # continue even if the driver hangs
        yield sampler


@asynccontextmanager
async def bench_server(
    config: BackendConfig, profile: Profile, sampler: Sampler, driver: str | None = None
) -> AsyncIterator[Bench]:
    """Run a server with this profile for the block, without supervisor and warm-up.

    Raises CannotMeasure if it does not start.
    """
    record = config.state_dir / "run" / "bench.json"
    try:
        launch = await prepare(config, profile)
        async with (
            loaded_server(launch, record, LOAD_SECONDS) as (_, server),
            open_probe(launch.url, launch.api_key) as probe,
        ):
            used = setting(profile.name, (await server.props()).build, launch.argv, driver)
            yield Bench(probe, used, sampler)
    except CannotStart as error:
        raise CannotMeasure(str(error)) from None


def sizes_of(window: int, useful: int | None = None) -> list[int]:
    """List three context sizes: short, a quarter of the largest, and the largest useful one."""
    most = min(useful or window, window - MARGIN)
    return sorted({size for size in (512, most // 4, most) if 0 < size <= most})


def setting(name: str, build: str, argv: Sequence[str], driver: str | None) -> Setting:
    """The setting of a row, from the server's command line: flags without folders and without OMITTED."""
    if tuple(argv[1:3]) == EMBEDDED[1:]:
        build, argv = f"xllamacpp {version('xllamacpp')}", ["embedded", *argv[3:]]
    flags = [
        Path(part).name if part.startswith("/") else part
        for before, part in pairwise(argv)
        if part not in OMITTED and before not in OMITTED
    ]
    types = [
        next((value for flag, value in pairwise(argv) if flag in names), "f16")
        for names in CACHE_FLAGS
    ]
    server = argv[0] if argv else ""
    return Setting(name, build, " ".join(flags), "/".join(dict.fromkeys(types)), driver, server)


# -- two servers ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of one row for each server: mean tokens/s, the fastest first.

    `apart`: every run of the fastest was faster than every run of the second; else the lead may be chance.
    """

    name: str
    figure: str
    speeds: tuple[tuple[str, float], ...]
    apart: bool

    @property
    def lead(self) -> float:
        """The lead of the fastest over the second: 0.1 is 10 %."""
        return self.speeds[0][1] / self.speeds[1][1] - 1

    @property
    def winner(self) -> str | None:
        return self.speeds[0][0] if self.apart else None


def compare(rows: Sequence[BenchRow]) -> Iterator[Comparison]:
    """Compare each figure that at least two servers have; throttled rows are ignored."""
    for name in dict.fromkeys(row.name for row in rows):
        for figure, attribute in FIGURES:
            runs = defaultdict[str, list[float]](list)
            for row in rows:
                if row.name == name and not row.throttled and (speed := getattr(row, attribute)):
                    runs[row.setting.server].append(speed)
            if len(runs) > 1:
                fastest, second, *_ = ranked = sorted(runs, key=lambda server: -fmean(runs[server]))
                speeds = tuple((server, fmean(runs[server])) for server in ranked)
                yield Comparison(name, figure, speeds, min(runs[fastest]) > max(runs[second]))
