"""voltaire backup: the whole state into one file, while everything runs."""

from pathlib import Path

import click

from bot.backup import backup
from bot.cli.command import Failed, Options, pass_options, runs
from bot.restore import BackupError
from bot.settings import find_file


@click.command("backup", help="The whole state into one file, consistent, while everything runs.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--secrets", is_flag=True, help="Keep token and keys in it, and files that hold them."
)
@pass_options
@runs
async def command(options: Options, file: Path, secrets: bool) -> None:
    state, config = options.settings.state_dir, find_file(options.config)
    try:
        manifest = await backup(state, file, config, secrets=secrets)
    except BackupError as error:
        raise Failed(str(error)) from None
    note = "with secrets: keep it safe" if manifest.secrets else "without secrets"
    click.echo(f"{file}: {file.stat().st_size / 2**20:.1f} MiB, {note}.")
