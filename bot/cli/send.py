"""voltaire send: a script's words or file into a chat; voltaire trigger: a job now, with data from outside."""

import asyncio
import secrets
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import click

from bot.acts import MOST_DATA
from bot.channel import OUTGOING
from bot.cli.command import Failed, Misused, Options, checked_chat, runs
from bot.cli.holder_client import HolderEnded, change

FORGOTTEN_SECONDS = 30 * 86_400.0  # after which a file that nobody sent is deleted
SENT = "sent:"  # what keeps a message from being put in twice


@click.command("send")
@click.argument("text", default="")
@click.option(
    "--chat",
    default=None,
    callback=lambda *given: given[2] and checked_chat(*given),
    help="Which chat; an owner's, unless given.",
)
@click.option("--silent", is_flag=True, help="Without a sound.")
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Send this file; the text stands under it.",
)
@runs
async def command(
    options: Options, text: str, chat: str | None, silent: bool, file: Path | None
) -> None:
    """Put a text (Markdown; - reads it from standard input) or a file into a chat, to be delivered once."""
    settings = options.settings
    text = (sys.stdin.read() if text == "-" else text).strip()
    if not text and not file:
        raise Misused("There is nothing to send: the text is empty.")
    copy = await asyncio.to_thread(keep, file, settings.state_dir / OUTGOING) if file else None
    key = SENT + secrets.token_hex(8)
    fields = {"chat": chat, "text": text, "silent": silent, "file": str(copy or ""), "key": key}
    try:
        while True:
            try:
                sent_to = await change(settings, "send", **fields)
                break
            except HolderEnded:  # the next one knows by the key whether it was put in
                continue
        await change(settings, "forget-fact", key=key)
    except Failed:
        if copy:
            shutil.rmtree(copy.parent)
        raise
    click.echo(f"It goes to {sent_to}.")


def keep(file: Path, folder: Path) -> Path:
    """Copy the file to where the bot finds it when it sends it; deletes what nobody sent."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.stat().st_mtime < time.time() - FORGOTTEN_SECONDS:
            shutil.rmtree(old, ignore_errors=True)
    own = folder / secrets.token_hex(8)
    own.mkdir(mode=0o700)
    try:
        return Path(shutil.copyfile(file, own / file.name))
    except OSError:
        shutil.rmtree(own)
        raise


@click.command("trigger")
@click.argument("job", type=click.IntRange(1, (1 << 63) - 1))
@click.option("--data", default="", help="Data for it; - reads standard input.")
@runs
async def trigger(options: Options, job: int, data: str) -> None:
    """Run a job now, with data from outside. To the agent the data are a stranger's words."""
    data = sys.stdin.buffer.read(MOST_DATA + 1).decode("utf-8", "replace") if data == "-" else data
    if len(data.encode("utf-8", "replace")) > MOST_DATA:
        raise Misused(f"The data have more than {MOST_DATA >> 10} KiB.")
    pressed: dict[str, Any] = {"number": job, "data": data, "id": "terminal"}
    click.echo(await change(options.settings, "page", change="job-trigger", pressed=pressed))
