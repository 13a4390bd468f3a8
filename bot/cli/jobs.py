"""voltaire jobs: the scheduled jobs of a chat. The running bot carries them out."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click

from agent.schedule.planner import Planner
from agent.store import Store
from agent.store.jobs import Job
from agent.timezones import local_time
from backend.models.profile import names
from bot.cli.backend_config import profiles_folder
from bot.cli.command import Options, chat_option, confirmed, json_option, runs
from bot.composition import planner as make_planner
from bot.composition import zone_of
from bot.state import open_state

command = click.Group(
    "jobs", help="The scheduled jobs of a chat. The running bot carries them out."
)


@command.command("list")
@chat_option
@json_option
@runs
async def list_jobs(options: Options, chat: str, as_json: bool) -> None:
    """Every job with its next times and how its last runs ended."""
    async with open_planner(options, chat) as (store, planner):
        jobs = await planner.jobs()
        if as_json:
            fields = [await job_fields(store, planner, job) for job in jobs]
            click.echo(json.dumps(fields, ensure_ascii=False))
            return
        for job in jobs:
            runs_of = await store.occurrences.of_job(job.id, 1)
            last = f" [last {iso(runs_of[0].due_at)}: {runs_of[0].state}]" if runs_of else ""
            click.echo(f"{job.id}  {planner.describe(job)}{last}")
        if not jobs:
            click.echo(f"No jobs in {chat}.")


@command.command("add")
@click.argument("words")
@chat_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@runs
async def add(options: Options, words: str, chat: str, yes: bool) -> int:
    """A job in words: "every weekday at 8 summarise the website repo"."""
    async with open_planner(options, chat) as (_, planner):
        proposal = await planner.propose_text(words)
        click.echo(proposal.description)
        if not yes and not confirmed("Make this job?", default=True):
            return 1
        job = await planner.add(proposal.spec)
    # A terminal's chat has nobody to be delivered to until one is opened.
    later = f" Its messages wait for `voltaire chat --chat {chat}`."
    click.echo(f"Job {job.id} made.{'' if chat.startswith('tg:') else later}")
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
    async with open_planner(options, chat) as (_, planner):
        if words:
            await planner.edit(number, words)
        job = await planner.adjust(number, catch_up, tell)
        click.echo("\n".join([planner.describe(job), *await planner.history(job)]))


@command.command("pause")
@click.argument("number", type=int)
@click.option("--off", is_flag=True, help="Go on with it.")
@chat_option
@runs
async def pause(options: Options, number: int, off: bool, chat: str) -> None:
    """Pause a job, or go on with it (--off)."""
    async with open_planner(options, chat) as (_, planner):
        click.echo(planner.describe(await planner.pause(number, paused=not off)))


@command.command("run")
@click.argument("number", type=int)
@chat_option
@runs
async def run(options: Options, number: int, chat: str) -> None:
    """Let the bot run a job now, besides its times."""
    async with open_planner(options, chat) as (_, planner):
        await planner.run_now(number)
        click.echo(f"Job {number} is due now; the running bot takes it up within half a minute.")


@command.command("rm")
@click.argument("number", type=int)
@chat_option
@runs
async def remove(options: Options, number: int, chat: str) -> None:
    """Delete a job."""
    async with open_planner(options, chat) as (_, planner):
        await planner.remove(number)
        click.echo(f"Job {number} deleted.")


@asynccontextmanager
async def open_planner(options: Options, chat: str) -> AsyncIterator[tuple[Store, Planner]]:
    async def profiles() -> list[str]:
        return names(profiles_folder())

    settings = options.settings
    async with open_state(settings) as store:
        zone = zone_of(await store.chats.get(chat), settings)
        yield store, make_planner(settings, store, chat, zone, profiles)


async def job_fields(store: Store, planner: Planner, job: Job) -> dict[str, Any]:
    ended = await store.occurrences.of_job(job.id, 5)
    return {
        "id": job.id,
        "kind": job.spec.kind,
        "task": job.spec.task,
        "when": job.spec.when,
        "state": job.spec.state,
        "told": planner.describe(job),
        "next_at": iso(job.spec.next_at),
        "runs": [{"due_at": iso(r.due_at), "state": r.state, "detail": r.detail} for r in ended],
    }


def iso(at: int | None) -> str | None:
    return None if at is None else local_time(at, "UTC").isoformat()
