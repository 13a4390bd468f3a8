"""voltaire model try: the owner's last turns rehearsed on another model, with tool results from the record."""

import asyncio
import difflib
import json
import shlex
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from agent.agent import Agent
from agent.evaluate.rehearsal import RehearsalSetup, Rehearsed, Summary, rehearse, summary
from agent.evaluate.runner import gpu_power
from agent.llm.queued_model import GpuQueue, backend_queue
from agent.sandbox.output_buffer import clean, visible
from agent.store.turns import RecordedTurn
from backend.client import BackendUnavailable
from backend.config import BackendConfig
from backend.protocol import EVAL
from bot.cli.backend_config import backend_config, model_named, profile_of
from bot.cli.bench import number
from bot.cli.command import Failed, Options, json_option, runs
from bot.cli.connect import backend_client, running_agent
from bot.cli.progress import sign_of_life
from bot.settings import Settings, StateSection
from bot.state import DATABASE, open_state_read_only

CONTEXT_END = "</context>\n"  # in front of the words, agent.prompt.context_block
COLUMNS = ("turn", "same calls", "broken", "seconds", "first word", "tokens/s", "ended")


@click.command("try")
@click.argument("model", default="")
@click.option("--turns", default=50, show_default=True, type=click.IntRange(1), help="How many.")
@click.option("--turn", "only", default="", help="Only this turn; show all that differs.")
@click.option("--disliked", is_flag=True, help="Turns whose answers got 👎.")
@click.option("--list", "listing", is_flag=True, help="List the turns; ask no model.")
@click.option("--chat", default="", help="Turns of this chat; the default is all.")
@click.option("--server", default="", help="Path of another llama-server to run it by.")
@json_option
@runs
async def command(
    options: Options,
    model: str,
    turns: int,
    only: str,
    disliked: bool,
    listing: bool,
    chat: str,
    server: str,
    as_json: bool,
) -> None:
    """Run your last turns once more by a profile or a GGUF file. Without a name: by the model that serves.

    Tool results come from the record; nothing is executed, sent or kept, and whoever writes meanwhile goes first.
    """
    settings, recorded = options.settings, list[RecordedTurn]()
    if (settings.state_dir / DATABASE).exists():
        async with open_state_read_only(settings) as store:
            ids = [only] if only else await store.turns.newest(turns, chat)
            if disliked:
                ids = [each.id for each in await store.turns.disliked(turns)]
            found = [await store.turns.record(id) for id in ids]
        recorded = [turn for turn in found if turn and turn.own]
    if not recorded:
        raise Failed(f"There is no turn {only}." if only else "There is no such turn yet.")
    if listing:
        for turn in recorded:
            click.echo(
                json.dumps({"turn": turn.id, "chat": turn.chat}) if as_json else listed(turn)
            )
        return
    done: list[Rehearsed] = []
    async with (
        trial_agent(settings, model, server) as agent,
        people_first(settings, agent) as queue,
    ):
        with sign_of_life("starting the model"):
            await agent.ready()
        await agent.refresh_status()  # `constrain` goes by the model that serves
        setup = RehearsalSetup(
            model=agent.model,
            queue=queue,
            tools=agent.tools,
            schemas=agent.schemas,
            approvals=agent.store.approvals,
            sandbox=await agent.sandboxes.of(EVAL),
            power=partial(gpu_power, agent.backend),
            limits=agent.config.limits,
            ready=agent.ready,
            constrain=agent.constrain,
        )
        for turn in recorded:
            with sign_of_life(f"turn {len(done) + 1} of {len(recorded)}"):
                done.append(await rehearse(setup, turn))
            click.echo(f"{len(done)} of {len(recorded)} turns", err=True)
    if as_json:
        rows = [asdict(each) for each in done]
        click.echo(json.dumps({"turns": rows, "all": asdict(summary(done))}, ensure_ascii=False))
    elif only:
        click.echo(difference(done[0]))
    else:
        print_table(model, done, recorded)


@asynccontextmanager
async def trial_agent(settings: Settings, model: str, server: str) -> AsyncIterator[Agent]:
    """The agent over the model that is tried: where that serves already, over the running backend, else over one of
    its own, in a state folder that is deleted afterwards."""
    if not model and not server:
        async with running_agent(settings) as agent:
            yield agent
        return
    config = backend_config(settings)
    if settings.backend.kind == "managed":
        name = config.profile
        if model:
            name = await model_named(model, config, partial(click.echo, err=True))
        model = name
        wanted = (await asyncio.to_thread(profile_of, model)).name
        async with backend_client(settings) as backend:
            serves = None
            with suppress(BackendUnavailable):
                serves = (await backend.status()).backend.profile
        if serves == wanted and not server:
            async with running_agent(settings) as agent:
                yield agent
            return
    with tempfile.TemporaryDirectory(prefix="trial-", dir=settings.state_dir) as folder:
        own = Path(folder)
        BackendConfig(own).models_folder.symlink_to(config.models_folder)
        changes = {"socket": "", "schedule": [], "embedding": "", "local_port": 0}
        backend_section = settings.backend.model_copy(
            update={**changes, **({"server": server} if server else {})}
        )
        trial = settings.model_copy(
            update={
                "backend": backend_section,
                "state": StateSection(dir=own),
                "agent": settings.agent.model_copy(update={"mcp": {}, "mail": {}}),
            }
        )
        async with running_agent(trial, model) as agent:
            yield agent


@asynccontextmanager
async def people_first(settings: Settings, agent: Agent) -> AsyncIterator[GpuQueue]:
    """The GPU queue of the backend that serves people, or else the agent's own."""
    async with backend_client(settings) as backend:
        yield backend_queue(backend) if await backend.answers() else agent.window.queue


def listed(turn: RecordedTurn) -> str:
    """Format a turn in three lines: time and number, question, answer."""
    asked, answered = (
        " ".join(visible(turn.own[n].text).rpartition(CONTEXT_END)[2].split()) for n in (0, -1)
    )
    return f"{format_start(turn)} turn {turn.id} of {turn.chat}\n  {asked}\n  {answered}"


def format_start(turn: RecordedTurn) -> str:
    return f"{datetime.fromtimestamp(turn.started_at).astimezone():%Y-%m-%d %H:%M}"


def difference(turn: Rehearsed) -> str:
    lines = difflib.unified_diff(turn.then, turn.now, "then", "now", lineterm="", n=99)
    shown = "\n".join(line for line in lines if not line.startswith("@@"))
    return clean(shown) or "It does the same."


def print_table(model: str, turns: Sequence[Rehearsed], recorded: Sequence[RecordedTurn]) -> None:
    table = Table(title=model or "the model that serves")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in COLUMNS[::6] else "right")
    for each, turn in zip(turns, recorded, strict=True):
        table.add_row(
            f"{format_start(turn)} {turn.chat}",
            f"{each.same} of {each.recorded}",
            str(each.broken),
            number(each.seconds, 1),
            number(each.first_word_s, 2),
            number(each.decode_tok_s, 1),
            "loop" if each.circled else each.reason,
        )
    Console().print(table)
    click.echo(format_totals(summary(turns)))
    if model:
        click.echo(f"To use it: voltaire model use {shlex.quote(model)}")


def format_totals(all: Summary) -> str:
    parts = [
        f"{all.same} of {all.recorded} calls are the same, {all.broken} broken",
        f"{all.looped} of {all.turns} turns went in circles, {all.failed} failed",
        all.decode_tok_s and f"{all.decode_tok_s:.1f} tokens/s",
        all.first_word_s and f"{all.first_word_s:.2f} s to the first word",
        all.watt_hours is not None and f"{all.watt_hours:.3f} Wh",
    ]
    return "; ".join(part for part in parts if part)
