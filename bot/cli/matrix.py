"""voltaire matrix: verification by emoji, and export of the message keys."""

import asyncio
import sys
import tempfile
from functools import partial
from pathlib import Path

import click

from bot.backup import copy_keys
from bot.cli.command import Failed, Misused, Options, interruptible, runs
from bot.cli.holder_client import change
from bot.settings import Settings
from bot.state import MATRIX, read_presence

VERIFY_SECONDS = 600.0
HOW = """In your Matrix app open the bot's profile, choose its device and verify it (the app calls that
"Verify session", "Verify device" or "Start verification")."""


command = click.Group(
    "matrix", help="Verify the Matrix device by emoji; export the keys of messages."
)


@command.command("verify", help="Compare emoji with one of your apps.")
@runs
async def verify(options: Options) -> None:
    settings = configured(options)
    if read_presence(settings.state_dir) is None:
        raise Failed("The bot does not run: start it, then verify.")
    await verify_in_terminal(settings)


async def verify_in_terminal(settings: Settings) -> None:
    """Verify with a running bot. Raises Failed."""
    from bot.matrix.verification import verified_in_terminal

    click.echo(HOW)
    act = partial(change, settings)
    if why := await verified_in_terminal(act, VERIFY_SECONDS, click.echo, click.confirm):
        raise Failed(f"Not verified: {why}.")


@command.command("export-keys", help="Write the keys of all messages into a file for Matrix apps.")
@click.argument("file", type=click.Path(path_type=Path))
@runs
async def export(options: Options, file: Path) -> None:
    settings = configured(options)
    if not (settings.state_dir / MATRIX / "keys.db").exists():
        raise Failed("There are no keys yet: the bot has never logged in.")
    if file.exists():
        raise Failed(f"{file} exists already; choose another name.")
    asked = sys.stdin.isatty()
    with interruptible():
        passphrase = click.prompt("Passphrase", hide_input=asked, confirmation_prompt=asked)
    count = await asyncio.to_thread(export_copy, settings.state_dir / MATRIX, file, passphrase)
    click.echo(f"{count} keys are in {file}; Matrix apps import it with the passphrase.")


def export_copy(folder: Path, file: Path, passphrase: str) -> int:
    """Export from a copy, because the bot may write its keys meanwhile. Returns their number."""
    from bot.matrix.encryption import export_keys

    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="keys-") as copy:
        return export_keys(copy_keys(folder, Path(copy) / MATRIX), file, passphrase)


def configured(options: Options) -> Settings:
    """Settings with a homeserver. Raises Misused."""
    if not options.settings.matrix.homeserver:
        raise Misused("Matrix is not configured: voltaire setup --homeserver URL.")
    return options.settings
