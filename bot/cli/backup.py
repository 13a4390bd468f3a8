"""voltaire backup: the whole state into one file, while everything runs; voltaire restore: back from it."""

import asyncio
import os
import shlex
from contextlib import nullcontext
from pathlib import Path

import click

from agent.aio import complete
from backend.client import BackendClient, default_socket
from backend.models.outlook import size_text
from bot.backup import backup
from bot.cli.command import Failed, Options, confirmed, runs
from bot.cli.connect import backend_client
from bot.cli.holder_client import holding_state, record_act
from bot.cli.progress import sign_of_life
from bot.cli.setup import state_folder
from bot.restore import CONFIG, restore, unpack
from bot.settings import PREFIX, config_folder, exists, find_file
from bot.state import DATABASE


@click.command(
    "backup", help="Write the whole state into one file, consistent, while everything runs."
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--secrets", is_flag=True, help="Include the token, keys, and files that hold them.")
@runs
async def command(options: Options, file: Path, secrets: bool) -> None:
    settings, config = options.settings_as_root, find_file(options.config)
    state = settings.state_dir
    with sign_of_life("copying and checking the copy"):
        manifest = await backup(state, file, config, secrets=secrets)
    await record_act(settings, act="backup", file=str(file), secrets=secrets)
    note = "with secrets: keep it safe" if manifest.secrets else "without secrets"
    click.echo(f"{file}: {size_text(file.stat().st_size)}, {note}.")


@click.command("restore", help="Replace the state by a backup; the present one is moved aside.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@runs
async def restore_command(options: Options, file: Path, yes: bool) -> None:
    config = options.config or find_file(None) or config_folder() / "config.toml"
    if options.config and not exists(config):  # it is to be made, for a state of its own
        state = Path(os.environ.get(f"{PREFIX}STATE__DIR") or state_folder(config))
        client = BackendClient(default_socket(state))
    else:
        settings = options.settings_as_root
        state, client = settings.state_dir, backend_client(settings)
    configured = config.exists() or state.exists()
    running = "Bot or backend still run on this state; stop them first."
    async with client as backend:
        if await backend.answers():
            raise Failed(running)
    question = f"Replace the state in {state} by that of {file}? The present one is moved aside."
    if (state / DATABASE).exists() and not yes:
        with sign_of_life("reading the backup"):
            await asyncio.to_thread(unpack, file, state.parent, ())
        if not confirmed(question):
            raise Failed("Nothing was changed.")
    try:
        held = holding_state(state) if state.exists() else nullcontext()
        with held, sign_of_life("unpacking and checking"):
            # An interruption must not hide where the old state is.
            aside = await complete(restore(file, state, None if configured else config))
    except BlockingIOError:
        raise Failed(running) from None
    click.echo("Restored." + (f" The state before is at {aside}." if aside else ""))
    if configured:
        show = shlex.join(["tar", "-xzOf", str(file), CONFIG])
        click.echo(f"The configuration stays as it is here; the backup's own is shown by: {show}")
    else:
        click.echo(
            f"State: {state}. Configuration: {config}. Look through it, then: voltaire setup"
        )
