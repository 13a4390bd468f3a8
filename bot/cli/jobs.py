"""voltaire jobs: the scheduled jobs of a chat. The process that holds the state carries them out.

voltaire send: a script's words or file into a chat; voltaire trigger: a job now, with data from outside.
"""

import asyncio
import json
import secrets
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import click

from agent.errors import AgentError
from agent.sandbox.output_buffer import clean
from bot.acts import MOST_DATA, TERMINAL_CHAT
from bot.channel import APP_PREFIXES, OUTGOING
from bot.cli.command import (
    Failed,
    Misused,
    Options,
    chat_option,
    checked_chat,
    confirmed,
    interruptible,
    json_option,
    runs,
)
from bot.cli.holder_client import HolderEnded, change

command = click.Group(
    "jobs", help="Manage a chat's scheduled jobs. `voltaire bot` runs them, or `voltaire chat`."
)


@command.command("list")
@chat_option
@json_option
@runs
async def list_jobs(options: Options, chat: str, as_json: bool) -> None:
    """List jobs with times to come, and how the last run of each ended."""
    jobs: list[dict[str, Any]] = await change(options.settings, "jobs", chat=chat)
    if as_json:
        click.echo(json.dumps(jobs, ensure_ascii=False))
        return
    for job in jobs:
        last = f" [last {job['last']}]" if job["last"] else ""
        click.echo(clean(f"{job['id']}  {job['told']}{last}"))
    if not jobs:
        click.echo(f"No jobs in {chat_title(chat)}.")
        for other in await change(options.settings, "chats-with-jobs"):
            click.echo(f"There are some in {other}: voltaire jobs list --chat {other}")


def chat_title(chat: str) -> str:
    return "cli, the chat of this terminal" if chat == TERMINAL_CHAT else chat


@command.command("add")
@click.argument("words")
@chat_option
@click.option(
    "--watch",
    default="",
    metavar="WHAT",
    help='Look at this without the model, and tell what changes: "commits in website"; WORDS are the time alone.',
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@runs
async def add(options: Options, words: str, chat: str, watch: str, yes: bool) -> int:
    """Add a job in words. An example: "every weekday at 8 summarise the website repo"."""
    from agent.schedule.planner import NOTHING_RUNS

    settings = options.settings
    while True:
        try:
            proposal = await change(settings, "job-propose", chat=chat, words=words, watch=watch)
            break
        except (AgentError, Failed) as error:
            if "?" not in str(error) or yes or not sys.stdin.isatty():
                raise
            click.echo(str(error))
            with interruptible():
                words = click.prompt("The job once more, in clearer words")
    if watch and proposal["spec"]["kind"] != "watch":
        raise Failed("A watch looks again and again: say how often, such as every hour.")
    click.echo(clean(proposal["description"]))
    if not yes and not confirmed("Make this job?", default=True):
        return 1
    number, runs_here = await change(settings, "job-add", spec=proposal["spec"])
    click.echo(f"Job {number} made." if runs_here else f"Job {number} made. {NOTHING_RUNS}")
    if not chat.startswith(APP_PREFIXES):
        # A terminal's chat has nobody to be delivered to until one is opened.
        click.echo(f"Its messages wait for `voltaire chat --chat {chat}`.")
    return 0


@command.command("edit")
@click.argument("number", type=int)
@click.argument("words", default="")
@click.option(
    "--catch-up", type=click.Choice(["once", "all", "missed"]), help="Which missed times run."
)
@click.option("--tell/--silent", default=None, help="Whether a run that finds nothing says so.")
@chat_option
@runs
async def edit(
    options: Options, number: int, words: str, catch_up: Any, tell: bool | None, chat: str
) -> None:
    """Change a job, or what happens to missed times. WORDS are a time, or a time and a task."""
    fields = {"chat": chat, "number": number, "words": words, "catch_up": catch_up, "tell": tell}
    click.echo(clean("\n".join(await change(options.settings, "job-edit", **fields))))


@command.command("pause")
@click.argument("number", type=int)
@click.option("--off", is_flag=True, help="Resume it.")
@chat_option
@runs
async def pause(options: Options, number: int, off: bool, chat: str) -> None:
    """Pause a job, or resume it (--off)."""
    fields = {"chat": chat, "number": number, "paused": not off}
    click.echo(await change(options.settings, "job-pause", **fields))


@command.command("run")
@click.argument("number", type=int)
@chat_option
@runs
async def run(options: Options, number: int, chat: str) -> None:
    """Run a job now, in addition to its times."""
    pressed = {"number": number, "chat": chat, "id": "terminal"}
    click.echo(await change(options.settings, "page", change="job-run", pressed=pressed))


@command.command("rm")
@click.argument("number", type=int)
@chat_option
@runs
async def remove(options: Options, number: int, chat: str) -> None:
    """Delete a job."""
    pressed = {"chat": chat, "number": number}
    await change(options.settings, "page", change="job-remove", pressed=pressed)
    click.echo(f"Job {number} deleted.")


FORGOTTEN_SECONDS = 30 * 86_400.0  # after which a file that nobody sent is deleted
SENT = "sent:"  # what keeps a message from being put in twice


@click.command("send")
@click.argument("text", default="")
@click.option(
    "--chat",
    default=None,
    callback=lambda *given: given[2] and checked_chat(*given),
    help="A chat (tg:111); an owner's, unless given.",
)
@click.option("--silent", is_flag=True, help="Without a sound.")
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Send this file; the text stands under it.",
)
@runs
async def send(
    options: Options, text: str, chat: str | None, silent: bool, file: Path | None
) -> None:
    """Put a text (Markdown; - reads it from standard input) or a file into a chat, to be delivered once."""
    settings = options.settings
    text = (sys.stdin.buffer.read().decode("utf-8", "replace") if text == "-" else text).strip()
    if not text and not file:
        raise Misused("There is nothing to send: the text is empty.")
    if file and file.exists() and not (file.is_file() and file.stat().st_size):
        raise Misused(f"{file} is empty, or no regular file.")
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
    click.echo(f"It goes to {chat_title(sent_to)}.")


def keep(file: Path, folder: Path) -> Path:
    """Copy a file to the folder from which the bot sends it, and delete old files that were never sent."""
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
    click.echo(await change(options.settings, "page", change="job-run", pressed=pressed))
