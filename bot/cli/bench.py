"""voltaire bench: what this machine does with its model; `sweep` looks for better flags."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from backend.client import BackendClient, BackendUnavailable
from backend.gpu.nvml import Sampler, installed_gpus
from backend.measure import sweep
from backend.measure.bench import (
    UNDRAFTED,
    Bench,
    BenchRow,
    Setting,
    bench_server,
    compare,
    gpu_sampler,
    setting,
    sizes_of,
)
from backend.measure.probe import CannotMeasure, open_probe
from backend.models.fit import FreeMemory, run_options
from backend.models.gguf_header import NotAModel, read_header
from backend.models.memory import checkpoint_bytes
from backend.models.profile import Profile, ProfileError, locate
from backend.pictures import bench_svg, rasterize
from backend.server.flag_spellings import known
from backend.server.launch import find_binary, with_context
from bot.cli.backend_config import backend_config, next_profile, profile_of, profiles_folder
from bot.cli.command import Failed, Misused, Options, json_option, runs
from bot.cli.connect import backend_client, running_backend
from bot.cli.progress import sign_of_life
from bot.settings import Settings
from bot.state import make_private

NAME, WIDTH = 28, 9
SPEEDS = (("prefill", "tok/s"), ("decode", "tok/s"), ("first", "s"))
CARD = (("power", "W"), ("energy", "tok/J"), ("heat", "°C"), ("clock", "MHz"))
SHARES = (("drafts", "kept"), ("cache", "reused"))
TURN = (("turn", "s"),)
# Sizes of caches in RAM, which depend on the memory that was free when the server started.
CACHE_SIZES = re.compile(r"(?<=-ram) \d+|(?<=-cram) \d+")


@click.group("bench", invoke_without_command=True)
@click.option("--server", "servers", multiple=True, metavar="PATH", help="Compare two binaries.")
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw a PNG.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, servers: tuple[str, ...], picture: Path | None, as_json: bool
) -> int:
    """Measure this machine: speeds, first token, cache, drafting, watts."""
    return 0 if ctx.invoked_subcommand else measure(servers, picture, as_json)


@runs
async def measure(
    options: Options, servers: Sequence[str], picture: Path | None, as_json: bool
) -> None:
    if len(servers) == 1:
        raise Misused("--server is given twice, to compare two: --server A --server B")
    output = BenchOutput(as_json)
    with sign_of_life(lambda: f"measuring, rows so far: {len(output.rows)}"):
        if servers:
            await compare_servers(options.settings, servers, output)
        else:
            await measure_running(options.settings, output)
    output.end()
    if picture:
        drawn = await rasterize(bench_svg([asdict(row) for row in output.rows]))
        await asyncio.to_thread(picture.write_bytes, drawn)


@command.command("sweep")
@json_option
@runs
async def sweep_flags(options: Options, as_json: bool) -> None:
    """Try -ub, threads, KV type and drafting; propose the fastest. Starts a server of its own."""
    settings = options.settings
    profile = await profile_to_start(settings)
    cores = os.cpu_count() or 1
    threads = sorted({max(1, cores // 2), cores})
    choices = await sweep_choices(settings, profile, threads)
    table = Table(shares=False, turns=True)
    async with gpu_sampler() as sampler:

        async def try_variant(variant: Profile) -> BenchRow | None:
            """None when it does not start."""
            try:
                async with own_server(settings, variant, sampler) as bench:
                    size = min(2048, variant.context // 2)
                    row = await bench.at(size)
                    rewound = await bench.rewind_ms(size) if choices.checkpoints else None
                    return replace(row, rewind_ms=rewound)
            except CannotMeasure:
                return None

        print_tried = (lambda tried: None) if as_json else table.tried
        with sign_of_life("measuring"):
            result = await sweep.sweep(profile, try_variant, choices, print_tried)
    print_sweep(profile, result, as_json)


async def sweep_choices(
    settings: Settings, profile: Profile, threads: Sequence[int]
) -> sweep.Choices:
    """What a sweep can vary with this server and this model. Raises CannotStart."""
    config = backend_config(settings)
    names = known((await find_binary(config)).help)
    path = Path(config.model) if config.model else locate(profile.model, config.models_folder)
    try:
        model = await asyncio.to_thread(read_header, path)
        needed = checkpoint_bytes(model, run_options(profile, model, FreeMemory(0, 0))) > 0
    except (NotAModel, OSError):  # starting the server will report it
        needed = False
    return sweep.Choices(threads, names, needed)


async def measure_running(settings: Settings, output: "BenchOutput") -> None:
    """Measure the running backend, or one of our own, while holding its GPU queue."""
    async with running_backend(settings) as backend, gpu_sampler() as sampler:
        async for _ in backend.ready():
            pass
        place = await backend.endpoint()
        if not place.extras:
            raise BackendUnavailable("Only a llama-server can be measured: others give no timings.")
        slots = 1
        try:
            profile = profile_of(place.profile or "")
        except ProfileError:
            pass  # the backend has another folder of profiles
        else:
            output.reference(profile)
            slots = profile.slots
        async with backend.acquire_gpu("bench"), bench_running(backend, sampler) as bench:
            async for row in bench.rows(sizes_of(place.n_ctx, place.useful_context), slots):
                output.row(row)


@asynccontextmanager
async def bench_running(backend: BackendClient, sampler: Sampler) -> AsyncIterator[Bench]:
    place, status = await backend.endpoint(), await backend.status()
    try:  # the server's own command line; its key is not on it
        raw = Path(f"/proc/{status.backend.pid}/cmdline").read_bytes()
    except OSError:
        raw = b""
    argv = [part.decode("utf-8", "replace") for part in raw.split(b"\0") if part]
    driver = (await asyncio.to_thread(installed_gpus)).driver
    async with open_probe(place.url, place.api_key) as probe:
        name = place.profile or place.model
        yield Bench(probe, setting(name, (await probe.server.props()).build, argv, driver), sampler)


async def compare_servers(
    settings: Settings, servers: Sequence[str], output: "BenchOutput"
) -> None:
    """Measure each binary twice, alternating, so that heat and clocks affect all alike."""
    profile = await profile_to_start(settings)
    output.reference(profile)
    async with gpu_sampler() as sampler:
        for server in [*servers, *servers]:
            async with own_server(settings, profile, sampler, server) as bench:
                for size in sizes_of(profile.context, profile.useful_context)[:2]:
                    output.row(await bench.at(size))


@asynccontextmanager
async def own_server(
    settings: Settings, profile: Profile, sampler: Sampler, server: str = ""
) -> AsyncIterator[Bench]:
    config = backend_config(settings)
    config = replace(config, server=server) if server else config
    driver = (await asyncio.to_thread(installed_gpus)).driver
    async with bench_server(config, profile, sampler, driver) as bench:
        yield bench


async def profile_to_start(settings: Settings) -> Profile:
    """The configured profile. Raises Failed where a backend runs, which holds the GPU."""
    make_private(settings.state_dir)
    async with backend_client(settings) as backend:
        if await backend.answers():
            raise Failed("A backend runs and holds the card: stop it first, then measure again.")
    return with_context(backend_config(settings), next_profile(settings))


# -- what is printed ----------------------------------------------------------


class BenchOutput:
    """Prints each row as it comes, or all of them as JSON at the end."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.rows: list[BenchRow] = []
        self._table = Table()
        self._reference: dict[str, Any] = {}

    def reference(self, profile: Profile) -> None:
        known = profile.reference
        self._reference = known.model_dump()
        if known.decode_tok_s and not self.as_json:
            prefill = f", prefill {known.prefill_tok_s:g}" if known.prefill_tok_s else ""
            click.echo(f"Reference: {known.decode_tok_s:g} tokens/s{prefill} ({known.source})")

    def row(self, row: BenchRow) -> None:
        if not self.as_json:
            self._table.row(row)
        self.rows.append(row)

    def end(self) -> None:
        pairs = list(compare(self.rows))
        if self.as_json:
            rows = [{**asdict(row), "throttled": row.throttled} for row in self.rows]
            whole = {"reference": self._reference, "rows": rows, "compared": [*map(asdict, pairs)]}
            click.echo(json.dumps(whole, ensure_ascii=False))
            return
        if any(row.throttled for row in self.rows):
            click.echo("! The card was slowed in the marked rows; they are no reference.")
        drafts = any(row.acceptance is not None for row in self.rows)
        if drafts and not any(row.name.endswith(UNDRAFTED) for row in self.rows):
            click.echo(
                "This server drafts for every request; voltaire bench sweep measures it without."
            )
        for pair in pairs:
            speeds = ", ".join(f"{number(speed, 1)} with {name}" for name, speed in pair.speeds)
            faster = f"{pair.winner} is {pair.lead:.0%} faster"
            verdict = faster if pair.winner else "no difference: their runs overlap"
            click.echo(f"{pair.name}, {pair.figure}: {speeds}; {verdict}")


@dataclass
class Table:
    """Prints rows, with a new heading where the setting differs from the last row's."""

    shares: bool = True
    turns: bool = False
    _heading: tuple[str, str] = field(default=("", ""))

    def row(self, row: BenchRow, name: str = "", seconds: float | None = None) -> None:
        seen = row.conditions
        card = any(v is not None for v in (seen.watts, seen.temperature_c, seen.sm_clock_mhz))
        self._print_heading(row.setting, card=card)
        cells = [
            number(row.prefill_tok_s),
            number(row.decode_tok_s, 1),
            number(row.ttft_ms and row.ttft_ms / 1000, 2),
        ]
        if self.shares:
            cells += [share(row.acceptance), share(row.cache_hit)]
        if self.turns:
            cells.append(number(seconds, 1))
        if card:
            cells += [
                number(seen.watts),
                number(row.tokens_per_joule, 2),
                number(seen.temperature_c),
                number(seen.sm_clock_mhz),
            ]
        why = f"  slowed: {', '.join(seen.throttle)}" if row.throttled else ""
        click.echo(line(f"{name or row.name}{' !' if row.throttled else ''}", cells) + why)

    def tried(self, tried: sweep.TriedVariant) -> None:
        words = f"{tried.words}{', again' if tried.again else ''}"
        if tried.row is None:
            click.echo(f"{words:<{NAME}}  does not start")
        else:
            self.row(tried.row, words, tried.seconds)

    def _print_heading(self, used: Setting, *, card: bool) -> None:
        driver = f", driver {used.driver}" if used.driver else ""
        server = f"{used.profile}: {used.server} {used.build}{driver}"
        # In a sweep each line names the flags that it tried.
        flags = f"  KV {used.kv}: {CACHE_SIZES.sub(' …', used.flags)}"
        heading = (server, "" if self.turns else flags)
        if heading == self._heading:
            return
        self._heading = heading
        columns = SPEEDS + SHARES * self.shares + TURN * self.turns + CARD * card
        click.echo("\n".join(filter(None, heading)))
        click.echo(line("", [title for title, _ in columns]))
        click.echo(line("", [unit for _, unit in columns]))


def print_sweep(profile: Profile, result: sweep.SweepResult, as_json: bool) -> None:
    """Print which flags to write where, or all tried variants as JSON."""
    flags = sweep.changed_flags(profile, result.best.profile)
    if as_json:
        tried = [
            {
                "words": each.words,
                "again": each.again,
                "seconds": each.seconds,
                "row": asdict(each.row) if each.row else None,
            }
            for each in result.tried
        ]
        click.echo(json.dumps({"tried": tried, "flags": flags, "gain": result.gain}))
        return
    if not flags:
        click.echo("The profile's own flags are the fastest here.")
        return
    turn = f"a turn that reads {sweep.READ:,} tokens and writes {sweep.WRITE}"
    click.echo(f"{result.gain:.0%} faster here, for {turn}:")
    for name, value in flags.items():
        removed = profile.flag(name) is not None and not value
        click.echo(f"    without {name}" if removed else f'    "{name}" = "{value}"')
    path = profiles_folder() / f"{profile.name}.toml"
    click.echo(f"To keep it, put that under [flags.optional] of {path}")


def line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<{NAME}}" + "".join(f"{cell:>{WIDTH}}" for cell in cells)


def number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"
