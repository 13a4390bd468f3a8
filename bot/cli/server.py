"""voltaire server: a llama-server for this machine's cards, released (`get`) or compiled (`build`)."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import click

from agent.files import bytes_below
from backend.build.build import BuiltServer, Sources, build, use_server, used_server
from backend.build.recipe import BuildHost, Capability, Kind, Recipe, recipe, toolkits, usual_roots
from backend.build.release import (
    ReleaseKind,
    get_release,
    get_suitable_release,
    glibc_version,
)
from backend.client import BackendClient, BackendRefused, BackendUnavailable
from backend.gpu.nvml import Sampler, installed_gpus
from backend.measure.bench import BenchRow, gpu_sampler
from backend.measure.probe import CannotMeasure
from backend.measure.sweep import choose
from backend.models.profile import ProfileError
from backend.server.launch import with_context
from bot.cli.backend_config import backend_config, next_profile
from bot.cli.bench import bench_running, own_server
from bot.cli.command import Failed, Misused, NoBackend, Options, runs
from bot.cli.connect import backend_client
from bot.cli.progress import sign_of_life
from bot.settings import Settings
from bot.state import make_private

MEASURED = 2048  # tokens in the context at most, when two servers are compared


command = click.Group("server", help="Fetch a llama-server for this machine, or compile one.")


@command.command("get")
@click.option("--cuda", "kind", flag_value="cuda", help="For NVIDIA cards.")
@click.option("--vulkan", "kind", flag_value="vulkan", help="For any card with Vulkan.")
@click.option("--cpu", "kind", flag_value="cpu", help="For the processor.")
@runs
async def get_server(options: Options, kind: ReleaseKind | None) -> None:
    """Fetch the newest server that llama.cpp released, and check it. It is used from the next start on.

    Without a kind, the one that suits the cards, their driver and the C library.
    """
    got = await fetch_server(kind, options.settings.state_dir)
    click.echo(f"{got.version}\n{got.devices}")
    click.echo(
        f"{got.server}, release {got.release}, after {got.seconds:.0f} s;"
        ' it is used from the backend\'s next start on (backend.server = "auto").'
    )


@command.command("build")
@click.option("--cuda", "kind", flag_value="cuda", help="For NVIDIA cards.")
@click.option("--cpu", "kind", flag_value="cpu", help="For the processor.")
@click.option("--capability", multiple=True, metavar="X.Y", help="Compute capability, such as 7.0.")
@click.option("--engine", type=click.Choice(["llama.cpp", "ik"]), default="llama.cpp")
@click.option(
    "--source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A checkout of your own, which --engine ik (ik_llama.cpp) needs.",
)
@click.option("--check", is_flag=True, help="Say how it would be built, and build nothing.")
@click.option(
    "--keep-faster",
    is_flag=True,
    help="Measure it against the one in use, and use the faster; a running backend is restarted for that, between turns.",
)
@runs
async def build_server(
    options: Options,
    kind: Kind | None,
    capability: tuple[str, ...],
    engine: str,
    source: Path | None,
    check: bool,
    keep_faster: bool,
) -> None:
    """Fetch the sources, and compile a server. It is used from the next start on."""
    if engine == "ik" and source is None:
        raise Misused("ik_llama.cpp is built from a checkout of yours: --engine ik --source DIR")
    sources = Sources(source, engine)
    here = await machine([parse_capability(text) for text in capability])
    chosen = kind or ("cuda" if here.cards else "cpu")
    how = await asyncio.to_thread(recipe, chosen, here)
    if check:
        given = (*how.arguments, *sources.arguments)
        click.echo("\n".join([how.title, f"PATH={how.path}", *given]))
        return
    state = options.settings.state_dir
    used = used_server(state / "servers") if keep_faster else None
    built = await compile_server(how, sources, state, use=used is None)
    click.echo("\n".join(filter(None, [built.version, built.devices])))
    if used and used != built.server:
        await use_faster(options.settings, used, built.server)
        return
    click.echo(
        f"{built.server}, {built.size / 1e6:.0f} MB, after {built.seconds / 60:.1f} min;"
        ' it is used from the backend\'s next start on (backend.server = "auto").'
    )


async def fetch_server(kind: ReleaseKind | None, state: Path) -> BuiltServer:
    """Fetch a released server, the one that suits this machine for None, and show how far it is."""
    folder = state / "servers" / "downloads"
    with sign_of_life(lambda: f"downloading, {bytes_below(folder) / 1e6:,.0f} MB"):
        if kind:
            return await get_release(kind, state, click.echo)
        found = await asyncio.to_thread(installed_gpus)
        return await get_suitable_release(found, glibc_version(), state, click.echo)


async def compile_server(
    how: Recipe, sources: Sources, state: Path, *, use: bool = True
) -> BuiltServer:
    """Build a server, and show on a terminal that it goes on between the lines that it prints."""
    with sign_of_life("working"):
        return await build(how, sources, state, click.echo, use=use)


# -- the faster of two ------------------------------------------------------------


async def use_faster(settings: Settings, used: Path, new: Path) -> None:
    """Measure both servers and let "auto" mean the faster one."""
    servers, chosen = settings.state_dir / "servers", used
    make_private(settings.state_dir)
    async with gpu_sampler() as sampler, backend_client(settings) as backend:
        live = await backend.answers()

        async def measure(server: Path) -> BenchRow:
            if live:
                return await measure_live(backend, servers, server, sampler)
            profile = with_context(backend_config(settings), next_profile(settings))
            async with own_server(settings, profile, sampler, str(server)) as bench:
                return await bench.at(min(MEASURED, profile.context // 2))

        try:
            with sign_of_life("measuring both"):
                chosen, why = await choose(used, new, measure)
            click.echo(why)
        except (BackendUnavailable, ProfileError) as error:
            raise Failed(f"They could not be compared ({error}); {used} stays.") from None
        finally:
            use_server(servers, chosen)
        if live:
            try:
                await start_again(backend)
            except (BackendRefused, BackendUnavailable) as error:
                click.echo(f"It does not serve now: {error}")
    click.echo(f"In use: {chosen}")


async def measure_live(
    backend: BackendClient, servers: Path, server: Path, sampler: Sampler
) -> BenchRow:
    """Have the running backend start this server between turns, and measure it while it holds the GPU queue."""
    use_server(servers, server)
    try:
        await start_again(backend)
    except BackendRefused as error:
        raise CannotMeasure(str(error)) from None
    async with backend.acquire_gpu("bench"), bench_running(backend, sampler) as bench:
        return await bench.at(min(MEASURED, (await backend.endpoint()).n_ctx // 2))


async def start_again(backend: BackendClient) -> None:
    """Start the same profile with the server that "auto" means now. Raises BackendRefused."""
    profile = (await backend.status()).backend.profile
    if not profile:
        raise NoBackend("The backend has no profile.")
    async for _ in backend.use_profile(profile):
        pass


async def machine(named: Sequence[Capability] = ()) -> BuildHost:
    """Describe this machine for a build recipe, with its own GPUs unless others are `named`."""
    path = os.environ.get("PATH", os.defpath)
    found = await asyncio.to_thread(toolkits, path, usual_roots())
    gpus = (await asyncio.to_thread(installed_gpus)).gpus
    return BuildHost(path, list(named) or [g.capability for g in gpus if g.capability], found)


def parse_capability(text: str) -> Capability:
    major, point, minor = text.partition(".")
    if not point or not major.isdigit() or not minor.isdigit():
        raise Misused(f"--capability looks like 7.0; {text!r} does not.")
    return int(major), int(minor)
