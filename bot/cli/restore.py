"""voltaire restore: the whole state back from a backup."""

import asyncio
import shlex
from pathlib import Path

import click

from agent.store import open_store
from bot import presence
from bot.backup import CONFIG, BackupError, holds_configuration, restore
from bot.cli.command import Failed, Options, pass_options, runs
from bot.cli.connect import backend_client
from bot.state import DATABASE
from bot.status import PRESENCE


@click.command(
    "restore", help="The whole state back from a backup; the present one is moved aside."
)
@click.argument("file", type=click.Path(path_type=Path))
@pass_options
@runs
async def command(options: Options, file: Path) -> None:
    settings = options.settings
    async with backend_client(settings) as backend:
        if presence.read(settings.state_dir / PRESENCE) or await backend.answers():
            raise Failed("Bot or backend still run on this state; stop them first.")
    try:
        aside = await asyncio.to_thread(restore, file, settings.state_dir)
        configured = await asyncio.to_thread(holds_configuration, file)
    except BackupError as error:
        raise Failed(str(error)) from None
    async with open_store(settings.state_dir / DATABASE):
        pass  # brings an older schema up to date, and shows that it opens
    click.echo("Restored." + (f" The state before is at {aside}." if aside else ""))
    if configured:
        show = shlex.join(["tar", "-xzOf", str(file), CONFIG])
        click.echo(f"The configuration stays as it is here; the backup's own is shown by: {show}")
