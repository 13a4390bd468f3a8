"""What `voltaire bench` measures, as rows that say under which conditions they were taken.

A row whose card was slowed (heat, power, a fault of the board) is marked and
never counts as a reference: a throttled card once made a gain of 8 % look like
45 % (github.com/andrewleech/v100-llm-kit).
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

from backend.gpu.nvml import Sample, Sampler, load_library, sampling
from backend.measure.probe import SHARED, Gauge, Run
from backend.server.binary import EMBEDDED

STREAMS = (1, 4, 8)
UNDRAFTED = ", no drafting"
FIRST_SECONDS = 2.0  # for the first sample of the cards
MARGIN = 512  # tokens of the window left for the reply
KV = (("-ctk", "--cache-type-k"), ("-ctv", "--cache-type-v"))


@dataclass(frozen=True, slots=True)
class Setting:
    """What a row was measured on; None is unknown."""

    profile: str
    build: str
    flags: str
    kv: str
    driver: str | None = None
    server: str = ""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The cards meanwhile: mean watts of all, the hottest °C, the lowest MHz, reasons for slowing."""

    watts: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    throttle: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: tokens/s, milliseconds, shares of 1, tokens per joule."""

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

    @property
    def throttled(self) -> bool:
        return bool(self.conditions.throttle)


@dataclass(slots=True)
class Weather:
    """Collects the cards' samples while something is measured."""

    samples: list[Sample] = field(default_factory=list)

    def conditions(self) -> Conditions:
        gpus = [gpu for sample in self.samples for gpu in sample.gpus]
        watts = [sample.watts for sample in self.samples if sample.watts is not None]
        clocks = [gpu.sm_clock_mhz for gpu in gpus if gpu.sm_clock_mhz is not None]
        degrees = [sample.hottest for sample in self.samples if sample.hottest is not None]
        return Conditions(
            watts=round(sum(watts) / len(watts), 1) if watts else None,
            temperature_c=max(degrees, default=None),
            sm_clock_mhz=min(clocks, default=None),
            throttle=tuple(dict.fromkeys(why for gpu in gpus for why in gpu.throttle)),
        )


@asynccontextmanager
async def weather(sampler: Sampler) -> AsyncIterator[Weather]:
    """The samples of the block; of one that is over sooner, the one before it."""
    found = Weather([sampler.fresh] if sampler.fresh else [])
    take = found.samples.append
    sampler.listeners.append(take)
    try:
        yield found
    finally:
        sampler.listeners.remove(take)
    if len(found.samples) > 1:
        found.samples.pop(0)


@dataclass(frozen=True, slots=True)
class Bench:
    """Measures one server, with the cards' conditions."""

    gauge: Gauge
    setting: Setting
    sampler: Sampler

    async def rows(self, sizes: Sequence[int], slots: int = 1) -> AsyncIterator[Row]:
        """Everything, a row at a time."""
        for size in sizes:
            row = await self.at(size)
            yield row
        if row.acceptance is not None and (plain := await self._undrafted(row)):
            yield plain
        async for row in self._answers(sizes[len(sizes) // 2], min(SHARED, sizes[-1])):
            yield row
        for count in STREAMS if slots > 1 else ():
            if count <= slots:
                yield await self._streams(count)

    async def at(self, context: int) -> Row:
        """Prefill and decode with so many tokens in the window."""
        async with weather(self.sampler) as seen:
            run = await self.gauge.run(await self.gauge.tokens(context))
        return self._row(f"{context:,} tokens", run, seen.conditions(), context)

    async def _undrafted(self, drafted: Row) -> Row | None:
        """The last size without drafting; None where the server cannot leave it off for a request.

        llama.cpp's server could, until somewhere before build 11434.
        """
        context = drafted.context or 0
        async with weather(self.sampler) as seen:
            run = await self.gauge.run(await self.gauge.tokens(context), draft=False)
        if run.drafted:
            return None
        return self._row(f"{context:,} tokens{UNDRAFTED}", run, seen.conditions(), context)

    async def _answers(self, context: int, shared: int) -> AsyncIterator[Row]:
        async with weather(self.sampler) as seen:
            cold, warm = await self.gauge.cold_and_warm(context)
        for name, run in (("first token, cold", cold), ("first token, warm", warm)):
            yield Row(name, self.setting, seen.conditions(), context, ttft_ms=run.ttft_ms)
        async with weather(self.sampler) as seen:
            share = await self.gauge.reuse(shared)
        yield Row("cache, chats in turn", self.setting, seen.conditions(), cache_hit=share)

    async def _streams(self, count: int) -> Row:
        async with weather(self.sampler) as seen:
            speed = await self.gauge.streams(count)
        conditions = seen.conditions()
        joule = speed / conditions.watts if conditions.watts else None
        name = f"{count} chat{'s' if count > 1 else ''} at once"
        return Row(name, self.setting, conditions, decode_tok_s=speed, tokens_per_joule=joule)

    def _row(self, name: str, run: Run, conditions: Conditions, context: int) -> Row:
        joule = None
        if conditions.watts and run.decode_tok_s:
            joule = run.decode_tok_s / conditions.watts
        return Row(
            name,
            self.setting,
            conditions,
            context,
            run.prefill_tok_s,
            run.decode_tok_s,
            run.ttft_ms,
            run.acceptance,
            joule,
        )


@asynccontextmanager
async def cards_sampled(nvml: str | None = None) -> AsyncIterator[Sampler]:
    """A sampler of our own, four times a second; it stays empty without NVML."""
    sampler, came = Sampler(), asyncio.Event()
    sampler.listeners.append(lambda sample: came.set())
    async with sampling(sampler, nvml, every=0.25):
        if load_library(nvml):
            with suppress(TimeoutError):  # a driver in trouble
                await asyncio.wait_for(came.wait(), FIRST_SECONDS)
        yield sampler


def sizes_of(window: int, useful: int | None = None) -> list[int]:
    """Three sizes of context: short, a quarter, and as much as the window is good for."""
    most = min(useful or window, window - MARGIN)
    return sorted({size for size in (512, most // 4, most) if 0 < size <= most})


def setting(name: str, build: str, argv: Sequence[str], driver: str | None) -> Setting:
    """What a row names, from the very command line."""
    if tuple(argv[1:3]) == EMBEDDED[1:]:
        build, argv = f"xllamacpp {version('xllamacpp')}", ["embedded", *argv[3:]]
    return Setting(name, build, shown(argv), _kv(argv), driver, argv[0] if argv else "")


def shown(argv: Sequence[str]) -> str:
    """Flags without the program, what is random, and what is a path."""
    kept, skip = [], False
    for part in argv[1:]:
        if skip:
            skip = False
        elif part in ("--port", "--host", "--api-key", "--api-key-file", "--slot-save-path", "-lv"):
            skip = True
        else:
            kept.append(Path(part).name if part.startswith("/") else part)
    return " ".join(kept)


def _kv(argv: Sequence[str]) -> str:
    return "/".join(dict.fromkeys(_value(argv, names) for names in KV))


def _value(argv: Sequence[str], names: tuple[str, ...]) -> str:
    return next((value for flag, value in pairwise(argv) if flag in names), "f16")
