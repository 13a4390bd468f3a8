"""voltaire jobs: the scheduled jobs of a chat. The process that holds the state carries them out."""

import json
from typing import Any

import click

from bot.channel import APP_PREFIXES
from bot.cli.command import Options, chat_option, confirmed, json_option, runs
from bot.cli.holder_client import change

command = click.Group(
    "jobs", help="The scheduled jobs of a chat. The running bot carries them out."
)


@command.command("list")
@chat_option
@json_option
@runs
async def list_jobs(options: Options, chat: str, as_json: bool) -> None:
    """Every job with its next times and how its last runs ended."""
    jobs: list[dict[str, Any]] = await change(options.settings, "jobs", chat=chat)
    if as_json:
        click.echo(json.dumps(jobs, ensure_ascii=False))
        return
    for job in jobs:
        last = next((f" [last {run['due_at']}: {run['state']}]" for run in job["runs"]), "")
        click.echo(f"{job['id']}  {job['told']}{last}")
    if not jobs:
        click.echo(f"No jobs in {chat}.")


@command.command("add")
@click.argument("words")
@chat_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@runs
async def add(options: Options, words: str, chat: str, yes: bool) -> int:
    """A job in words: "every weekday at 8 summarise the website repo"."""
    settings = options.settings
    proposal = await change(settings, "job-propose", chat=chat, words=words)
    click.echo(proposal["description"])
    if not yes and not confirmed("Make this job?", default=True):
        return 1
    number, runs_here = await change(settings, "job-add", spec=proposal["spec"])
    lines = [f"Job {number} made."]
    if not chat.startswith(APP_PREFIXES):
        # A terminal's chat has nobody to be delivered to until one is opened.
        lines.append(f"Its messages wait for `voltaire chat --chat {chat}`.")
    elif not runs_here:
        lines.append("It runs once the bot does.")
    click.echo(" ".join(lines))
    return 0


@command.command("edit")
@click.argument("number", type=int)
@click.argument("words", default="")
@click.option(
    "--catch-up", type=click.Choice(["once", "all", "missed"]), help="After the host was off."
)
@click.option("--tell/--silent", default=None, help="Say a line when there is nothing to say.")
@chat_option
@runs
async def edit(
    options: Options, number: int, words: str, catch_up: Any, tell: bool | None, chat: str
) -> None:
    """Another time, or time and task, in words; or what happens to missed times."""
    fields = {"chat": chat, "number": number, "words": words, "catch_up": catch_up, "tell": tell}
    click.echo("\n".join(await change(options.settings, "job-edit", **fields)))


@command.command("pause")
@click.argument("number", type=int)
@click.option("--off", is_flag=True, help="Go on with it.")
@chat_option
@runs
async def pause(options: Options, number: int, off: bool, chat: str) -> None:
    """Pause a job, or go on with it (--off)."""
    fields = {"chat": chat, "number": number, "paused": not off}
    click.echo(await change(options.settings, "job-pause", **fields))


@command.command("run")
@click.argument("number", type=int)
@chat_option
@runs
async def run(options: Options, number: int, chat: str) -> None:
    """Let the bot run a job now, besides its times."""
    if await change(options.settings, "job-run", chat=chat, number=number):
        click.echo(f"Job {number} is due now, and runs.")
    else:
        click.echo(f"Job {number} is due now: it runs once the bot or `voltaire chat` does.")


@command.command("rm")
@click.argument("number", type=int)
@chat_option
@runs
async def remove(options: Options, number: int, chat: str) -> None:
    """Delete a job."""
    await change(options.settings, "job-remove", chat=chat, number=number)
    click.echo(f"Job {number} deleted.")
