"""voltaire upgrade: the next version, tried before it is taken; --rollback: the one before."""

import asyncio
from dataclasses import dataclass
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
    UpgradeError,
    run,
)
from bot.settings import Settings, find_file
from bot.setup import SetupError, units

SETTLING_SECONDS = 5.0  # a service that fails soon after it was ready has failed


@click.command(
    "upgrade", help="The next version: backed up, tried, switched to, and back if it fails."
)
@click.option("--check", is_flag=True, help="Say what is new, and change nothing.")
@click.option("--rollback", is_flag=True, help="Back to the version before the last upgrade.")
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
        click.echo(f"Nothing new: {before.version} is the newest.")
        return
    click.echo(f"{before.version} → {release.version}")
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
        from bot.upgrade import Upgrade

        services = SystemdServices(units.SystemdScope.here(), config)
        if not services.names:
            async with backend_client(settings) as backend:
                if read_presence(settings.state_dir) or await backend.answers():
                    raise Failed("Bot or backend run in the foreground; stop them first.")
        for_person(ValueError())  # loads what an error needs before any file is replaced
        upgrade = Upgrade(installation, services, settings.state_dir, config, click.echo)
        await (upgrade.forward(release) if release else upgrade.rollback())


@dataclass(frozen=True)
class SystemdServices:
    """bot.upgrade.RestartableServices: the systemd units, where they are installed."""

    scope: units.SystemdScope
    config: Path | None

    @property
    def names(self) -> list[str]:
        return [
            name
            for name in units.SERVICES
            if units.systemd_runs() and (self.scope.folder / name).exists()
        ]

    async def stop(self) -> None:
        try:
            if self.names:
                await asyncio.to_thread(units.run_systemctl, self.scope, "stop", *self.names)
        except SetupError as error:
            raise UpgradeError(str(error)) from None

    async def start(self, command: Path) -> None:
        """Have the installed program renew and start its own units, and wait until they have settled."""
        if not self.names:
            return
        config = ("--config", str(self.config)) if self.config else ()
        await run(str(command), *config, "setup", "--upgrade")
        await asyncio.sleep(SETTLING_SECONDS)
        for name, state in (await asyncio.to_thread(units.unit_states, self.scope)).items():
            if state != "active":
                raise UpgradeError(
                    f"{name} is {state} ({units.journal(self.scope, name)} says why)."
                )
