"""voltaire upgrade: the next version, tried before it is taken; --rollback: the one before."""

import signal
from contextlib import suppress
from pathlib import Path

import click

from bot.cli.command import Failed, Misused, Options, for_person, runs
from bot.cli.progress import sign_of_life
from bot.installed_program import (
    ROOT,
    Checkout,
    Environment,
    InstalledProgram,
    ProgramVersion,
)
from bot.settings import Settings, find_file
from bot.setup import units


@click.command(
    "upgrade", help="Install the next version: back up, try, switch, and return if it fails."
)
@click.option("--check", is_flag=True, help="Say what is new, and change nothing.")
@click.option("--rollback", is_flag=True, help="Return to the version before the last upgrade.")
@click.option(
    "--from",
    "wheel",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The new version's wheel, where this one was installed from a wheel.",
)
@runs
async def command(options: Options, check: bool, rollback: bool, wheel: Path | None) -> None:
    if rollback and (check or wheel):
        raise Misused("--rollback stands alone.")
    settings = options.settings_as_root  # units and program are root's, or the user's own
    installation: InstalledProgram = (
        Checkout() if (ROOT / ".git").exists() and wheel is None else Environment(wheel)
    )
    config = find_file(options.config)
    if rollback:
        await switch(settings, config, installation, None)
        return
    with sign_of_life("looking for a newer version"):
        before, release = await installation.current(), await installation.newest()
    if release is None:
        click.echo(f"Nothing new: {before.title} is the newest.")
        return
    click.echo(f"{before.title} → {release.title}")
    if release.changes:
        click.echo(f"\n{release.changes}\n")
    if not check:
        await switch(settings, config, installation, release)


async def switch(
    settings: Settings,
    config: Path | None,
    installation: InstalledProgram,
    release: ProgramVersion | None,
) -> None:
    """Switch to a release, or (None) back to the version before. Imports wait until here: mostly nothing is new."""
    with sign_of_life("working"):
        from bot.cli.connect import backend_client
        from bot.state import read_presence
        from bot.upgrade import SystemdServices, Upgrade

        services = SystemdServices(units.SystemdScope.here(), config)
        if not units.installed(services.scope):
            async with backend_client(settings) as backend:
                if read_presence(settings.state_dir) or await backend.answers():
                    raise Failed("Bot or backend run in the foreground; stop them first.")
        for_person(ValueError())  # loads what an error needs before any file is replaced
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a lost terminal ends no switch halfway
        upgrade = Upgrade(installation, services, settings.state_dir, config, say)
        await (upgrade.forward(release) if release else upgrade.rollback())


def say(line: str) -> None:
    with suppress(OSError):  # the terminal is gone
        click.echo(line)
