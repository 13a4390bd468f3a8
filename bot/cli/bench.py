"""voltaire bench: what this machine does with its model; `sweep` looks for better flags."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path

import click

from backend.client import BackendClient, BackendUnavailable
from backend.gpu.nvml import Sampler, installed_gpus
from backend.measure.bench import (
    Bench,
    BenchRow,
    bench_server,
    gpu_sampler,
    setting,
    sizes_of,
)
from backend.measure.probe import CannotMeasure, open_probe
from backend.measure.sweep import sweep
from backend.models.profile import Profile, ProfileError
from backend.pictures import DrawFailed, draw_bench
from backend.server.launch import with_context
from bot.cli.bench_output import BenchOutput, Table, print_sweep
from bot.cli.command import Failed, Misused, Options, json_option, pass_options, runs
from bot.cli.connect import backend_client, backend_config, profile_of, running_backend
from bot.settings import Settings
from bot.state import make_private


@click.group("bench", invoke_without_command=True)
@click.option("--server", "servers", multiple=True, metavar="PATH", help="Compare two binaries.")
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw a PNG.")
@json_option
@click.pass_context
def command(
    ctx: click.Context, servers: tuple[str, ...], picture: Path | None, as_json: bool
) -> int:
    """Measure this machine: speeds, first token, cache, drafting, watts."""
    return 0 if ctx.invoked_subcommand else measure(ctx.obj.settings, servers, picture, as_json)


@runs
async def measure(
    settings: Settings, servers: Sequence[str], picture: Path | None, as_json: bool
) -> None:
    if len(servers) == 1:
        raise Misused("--server is given twice, to compare two: --server A --server B")
    output = BenchOutput(as_json)
    try:
        if servers:
            await compare(settings, servers, output)
        else:
            await measure_running(settings, output)
    except CannotMeasure as error:
        raise Failed(str(error)) from None
    output.end()
    if picture:
        try:
            drawn = await draw_bench([asdict(row) for row in output.rows])
        except DrawFailed as error:
            raise Failed(str(error)) from None
        await asyncio.to_thread(picture.write_bytes, drawn)


@command.command("sweep")
@json_option
@pass_options
@runs
async def sweep_flags(options: Options, as_json: bool) -> None:
    """Try -ub, threads, KV type and drafting on a server of its own; propose the fastest."""
    settings = options.settings
    profile = await profile_to_start(settings)
    cores = os.cpu_count() or 1
    threads = sorted({max(1, cores // 2), cores})
    table = Table(shares=False, turns=True)
    try:
        async with gpu_sampler() as sampler:

            async def try_variant(variant: Profile) -> BenchRow | None:
                """None when it does not start."""
                try:
                    async with own_server(settings, variant, sampler) as bench:
                        return await bench.at(min(2048, variant.context // 2))
                except CannotMeasure:
                    return None

            print_tried = (lambda tried: None) if as_json else table.tried
            result = await sweep(profile, try_variant, threads, print_tried)
    except CannotMeasure as error:
        raise Failed(str(error)) from None
    print_sweep(profile, result, as_json)


async def measure_running(settings: Settings, output: BenchOutput) -> None:
    """The backend that runs, or one of our own; its queue is held meanwhile."""
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
            pass  # the backend's folder of profiles is not ours
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


async def compare(settings: Settings, servers: Sequence[str], output: BenchOutput) -> None:
    """Each binary in turn, twice over, so that heat and clocks weigh on all alike."""
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
    """The configured profile; Failed where a backend runs, which holds the card."""
    make_private(settings.state_dir)
    async with backend_client(settings) as backend:
        if await backend.answers():
            raise Failed("A backend runs and holds the card: stop it first, then measure again.")
    return with_context(backend_config(settings), profile_of(settings.backend.profile))
