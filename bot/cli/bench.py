"""voltaire bench: what this machine does with its model; `sweep` looks for better flags."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bot.cli import Failed, Misused
from bot.cli.bench_table import Table
from bot.cli.bench_table import pairs as show_pairs
from bot.cli.options import json_option, runs, settings_of

if TYPE_CHECKING:
    from backend.client import BackendClient
    from backend.gpu.nvml import Sampler
    from backend.measure.bench import Bench, BenchRow
    from backend.measure.sweep import SweepResult
    from backend.models.profile import Profile
    from bot.settings import Settings


@click.group("bench", invoke_without_command=True)
@click.option("--server", "servers", multiple=True, metavar="PATH", help="Compare two binaries.")
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw a PNG.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, servers: tuple[str, ...], picture: Path | None, as_json: bool
) -> int:
    """Measure this machine: speeds, first token, cache, drafting, watts."""
    if ctx.invoked_subcommand:
        return 0
    return measure(ctx, servers, picture, as_json)


@runs
async def measure(
    ctx: click.Context, servers: tuple[str, ...], picture: Path | None, as_json: bool
) -> None:
    from backend.measure.probe import CannotMeasure

    settings = settings_of(ctx)
    if len(servers) == 1:
        raise Misused("--server is given twice, to compare two: --server A --server B")
    told = Told(as_json)
    try:
        if servers:
            await _compare(settings, servers, told)
        else:
            await _running(settings, told)
    except CannotMeasure as error:
        raise Failed(str(error)) from None
    told.end()
    if picture:
        await _draw(told.rows, picture)


@command.command("sweep")
@json_option
@click.pass_context
@runs
async def sweep_flags(ctx: click.Context, as_json: bool) -> None:
    """Try -ub, threads, KV type and drafting on a server of its own; propose the fastest."""
    from backend.measure.probe import CannotMeasure
    from backend.measure.sweep import sweep

    settings = settings_of(ctx)
    await _nobody_runs(settings)
    profile = _profile(settings)
    try:
        async with _sampled() as sampler:

            async def one(variant: "Profile") -> "BenchRow | None":
                return await _row_of(settings, variant, sampler)

            table = Table(shares=False, turns=True)
            told = (lambda tried: None) if as_json else table.tried
            found = await sweep(profile, one, _threads(), told)
    except CannotMeasure as error:
        raise Failed(str(error)) from None
    _propose(profile, found, as_json)


# -- what is measured ---------------------------------------------------------


async def _running(settings: "Settings", told: "Told") -> None:
    """The backend that runs, or one of our own; its queue is held meanwhile."""
    from backend.client import BackendUnavailable
    from backend.measure.bench import sizes_of
    from backend.models.profile import ProfileError, load
    from bot.cli.connect import profiles_folder, running_backend

    async with running_backend(settings) as backend, _sampled() as sampler:
        async for _ in backend.ready():
            pass
        place = await backend.endpoint()
        if not place.extras:
            raise BackendUnavailable("Only a llama-server can be measured: others give no timings.")
        try:
            profile = load(place.profile or "", profiles_folder())
            told.reference(profile)
            slots = profile.slots
        except ProfileError:
            slots = 1
        async with backend.acquire_gpu("bench"), _bench(backend, sampler) as bench:
            async for row in bench.rows(sizes_of(place.n_ctx, place.useful_context), slots):
                told.row(row)


@asynccontextmanager
async def _bench(backend: "BackendClient", sampler: "Sampler") -> AsyncIterator["Bench"]:
    from backend.measure.bench import Bench, setting
    from backend.measure.probe import open_probe
    from bot.cli.checks.server import driver

    place, status = await backend.endpoint(), await backend.status()
    argv = _argv(status.backend.pid)
    async with open_probe(place.url, place.api_key) as probe:
        version = await asyncio.to_thread(driver)
        named = setting(place.profile or place.model, await probe.build(), argv, version)
        yield Bench(probe, named, sampler)


def _argv(pid: int | None) -> list[str]:
    """The running server's own command line; its key is not on it."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return [part.decode("utf-8", "replace") for part in raw.split(b"\0") if part]


async def _compare(settings: "Settings", servers: Sequence[str], told: "Told") -> None:
    """Each binary in turn, twice over, so that heat and clocks weigh on all alike."""
    from backend.measure.bench import sizes_of

    await _nobody_runs(settings)
    profile = _profile(settings)
    told.reference(profile)
    async with _sampled() as sampler:
        for _ in range(2):
            for server in servers:
                async with _own(settings, profile, sampler, server) as bench:
                    for size in sizes_of(profile.context, profile.useful_context)[:2]:
                        told.row(await bench.at(size))


async def _row_of(
    settings: "Settings", profile: "Profile", sampler: "Sampler"
) -> "BenchRow | None":
    """One variant; None when it does not start."""
    from backend.measure.probe import CannotMeasure

    try:
        async with _own(settings, profile, sampler) as bench:
            return await bench.at(min(2048, profile.context // 2))
    except CannotMeasure:
        return None


@asynccontextmanager
async def _own(
    settings: "Settings", profile: "Profile", sampler: "Sampler", server: str = ""
) -> AsyncIterator["Bench"]:
    from dataclasses import replace

    from backend.measure.bench import bench_server
    from bot.cli.checks.server import driver
    from bot.cli.connect import backend_config

    config = backend_config(settings)
    config = replace(config, server=server) if server else config
    version = await asyncio.to_thread(driver)
    async with bench_server(config, profile, sampler, version) as bench:
        yield bench


async def _nobody_runs(settings: "Settings") -> None:
    from bot.cli.connect import backend_client
    from bot.state import make_private

    make_private(settings.state_dir)
    async with backend_client(settings) as backend:
        if await backend.answers():
            raise Failed("A backend runs and holds the card: stop it first, then measure again.")


def _profile(settings: "Settings") -> "Profile":
    from backend.models.profile import load
    from backend.server.launch import with_context
    from bot.cli.connect import backend_config, profiles_folder

    return with_context(backend_config(settings), load(settings.backend.profile, profiles_folder()))


def _sampled() -> Any:
    from backend.measure.bench import gpu_sampler

    return gpu_sampler()


def _threads() -> list[int]:
    cores = os.cpu_count() or 1
    return sorted({max(1, cores // 2), cores})


# -- what is said -------------------------------------------------------------


class Told:
    """Rows as they come: a table line each, or all of them as JSON at the end."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.rows: list[BenchRow] = []
        self._table = Table()
        self._reference: dict[str, Any] = {}

    def reference(self, profile: "Profile") -> None:
        known = profile.reference
        self._reference = known.model_dump()
        if known.decode_tok_s and not self.as_json:
            prefill = f", prefill {known.prefill_tok_s:g}" if known.prefill_tok_s else ""
            click.echo(f"Reference: {known.decode_tok_s:g} tokens/s{prefill} ({known.source})")

    def row(self, row: "BenchRow") -> None:
        if not self.as_json:
            self._table.row(row)
        self.rows.append(row)

    def end(self) -> None:
        from backend.measure.bench import UNDRAFTED
        from backend.measure.comparison import compare

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
        show_pairs(pairs)


def _propose(profile: "Profile", found: "SweepResult", as_json: bool) -> None:
    from backend.measure.sweep import changed_flags

    flags = changed_flags(profile, found.best.profile)
    if as_json:
        tried = [
            {
                "words": each.words,
                "again": each.again,
                "seconds": each.seconds,
                "row": asdict(each.row) if each.row else None,
            }
            for each in found.tried
        ]
        click.echo(json.dumps({"tried": tried, "flags": flags, "gain": found.gain}))
    elif not flags:
        click.echo("The profile's own flags are the fastest here.")
    else:
        _tell_flags(profile, found, flags)


def _tell_flags(profile: "Profile", found: "SweepResult", flags: dict[str, str]) -> None:
    """What to write where."""
    from backend.measure.sweep import READ, WRITE
    from bot.cli.connect import profiles_folder

    turn = f"a turn that reads {READ:,} tokens and writes {WRITE}"
    click.echo(f"{found.gain:.0%} faster here, for {turn}:")
    for name, value in flags.items():
        removed = profile.flag(name) is not None and not value
        click.echo(f"    without {name}" if removed else f'    "{name}" = "{value}"')
    click.echo(f"To keep it, put that under [flags.optional] of {profiles_folder()}/{profile.name}.toml")  # fmt: skip


async def _draw(rows: "Sequence[BenchRow]", picture: Path) -> None:
    from backend.measure.bench_picture import draw
    from backend.pictures import DrawFailed

    try:
        drawn = await draw([asdict(row) for row in rows])
    except DrawFailed as error:
        raise Failed(str(error)) from None
    await asyncio.to_thread(picture.write_bytes, drawn)
