"""voltaire server build: a llama-server for this machine's cards."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import click

from backend.build.build import Sources, build
from backend.build.recipe import (
    BuildHost,
    CannotBuild,
    Capability,
    Kind,
    recipe,
    toolkits,
    usual_roots,
)
from backend.gpu.nvml import installed_gpus
from bot.cli.command import Failed, Misused, Options, pass_options, runs


@click.group("server", help="Build a llama-server for this machine.")
def command() -> None:
    pass


@command.command("build")
@click.option("--cuda", "kind", flag_value="cuda", help="For NVIDIA cards.")
@click.option("--vulkan", "kind", flag_value="vulkan", help="For any card with Vulkan.")
@click.option("--cpu", "kind", flag_value="cpu", help="For the processor.")
@click.option("--capability", multiple=True, metavar="X.Y", help="Of the card; 7.0 is a V100.")
@click.option("--engine", type=click.Choice(["llama.cpp", "ik"]), default="llama.cpp")
@click.option(
    "--source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A checkout of your own; ik_llama.cpp needs one.",
)
@click.option("--check", is_flag=True, help="Say how it would be built, and build nothing.")
@pass_options
@runs
async def build_server(
    options: Options,
    kind: Kind | None,
    capability: tuple[str, ...],
    engine: str,
    source: Path | None,
    check: bool,
) -> None:
    """Fetch the sources, compile, and use the result from the next start on."""
    if engine == "ik" and source is None:
        raise Misused("ik_llama.cpp is built from a checkout of yours: --engine ik --source DIR")
    try:
        here = await machine([parse_capability(text) for text in capability])
        chosen = kind or ("cuda" if here.cards else "cpu")
        how = await asyncio.to_thread(recipe, chosen, here)
        if check:
            click.echo("\n".join([how.title, f"PATH={how.path}", *how.arguments]))
            return
        built = await build(how, Sources(source, engine), options.settings.state_dir, click.echo)
    except CannotBuild as error:
        raise Failed(str(error)) from None
    click.echo(f"{built.version}\n{built.devices}")
    click.echo(
        f"{built.server}, {built.size / 1e6:.0f} MB, after {built.seconds / 60:.1f} min;"
        ' it is used from the backend\'s next start on (backend.server = "auto").'
    )


async def machine(named: Sequence[Capability] = ()) -> BuildHost:
    """This machine as a recipe needs to know it, with the cards that are here unless named."""
    path = os.environ.get("PATH", os.defpath)
    found = await asyncio.to_thread(toolkits, path, usual_roots())
    gpus = (await asyncio.to_thread(installed_gpus)).gpus
    return BuildHost(path, list(named) or [g.capability for g in gpus if g.capability], found)


def parse_capability(text: str) -> Capability:
    major, point, minor = text.partition(".")
    if not point or not major.isdigit() or not minor.isdigit():
        raise Misused(f"--capability looks like 7.0; {text!r} does not.")
    return int(major), int(minor)
