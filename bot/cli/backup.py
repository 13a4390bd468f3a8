"""voltaire backup: the whole state into one file, while everything runs."""

from pathlib import Path

import click

from bot.cli import Failed
from bot.cli.options import runs, settings_of
from bot.settings import find_file


@click.command("backup", help="The whole state into one file, consistent, while everything runs.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--secrets", is_flag=True, help="Keep token and keys of the configuration in it.")
@click.pass_context
@runs
async def command(ctx: click.Context, file: Path, secrets: bool) -> None:
    from bot.backup import BackupError, backup

    settings = settings_of(ctx)
    try:
        manifest = await backup(
            settings.state_dir, file, find_file(ctx.obj.config), secrets=secrets
        )
    except BackupError as error:
        raise Failed(str(error)) from None
    note = "with secrets: keep it safe" if manifest.secrets else "without secrets"
    click.echo(f"{file}: {file.stat().st_size / 2**20:.1f} MiB, {note}.")
