"""voltaire eval: how many small real tasks the model finishes here, and at what cost."""

import json
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from agent.agent import Agent
from agent.evaluate.runner import PROMPTS, EvalSetup, Prompt, gpu_power, run_task
from agent.evaluate.scores import Rates, Score, append_score, load_scores, rates_by
from agent.evaluate.stage import Stage, open_stage
from agent.evaluate.tasks import EvalTask, suite
from agent.llm.queued_model import QueuedModel
from agent.store import Store, open_store
from backend.protocol import EVAL, IDLE
from bot.cli.bench import number, share
from bot.cli.command import Misused, Options, json_option, runs
from bot.cli.connect import running_agent
from bot.cli.progress import sign_of_life
from bot.cli.tool import check_thawed
from bot.state import DATABASE, open_state_read_only

COLUMNS = ("", "tasks", "completed", "valid calls", "calls", "tokens", "seconds", "joules")


@click.command("eval")
@click.option("--task", "names", multiple=True, metavar="NAME", help="Only this task (repeatable).")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only this kind (repeatable).")
@click.option("--easy", is_flag=True, help="Only what the smallest models are expected to do.")
@click.option("--no-naive", is_flag=True, help="Leave the naive prompt out.")
@click.option("--fresh", is_flag=True, help="Forget the scores of an earlier run.")
@json_option
@runs
async def command(
    options: Options,
    names: tuple[str, ...],
    kinds: tuple[str, ...],
    easy: bool,
    no_naive: bool,
    fresh: bool,
    as_json: bool,
) -> None:
    """Run the task suite on the current model, with our prompt and a naive one of two sentences; it goes on where it
    was interrupted. The web of its tasks is made up.
    """
    tasks = chosen(names, kinds, easy=easy)
    prompts = PROMPTS[:1] if no_naive else PROMPTS
    wanted = [(task, prompt) for prompt in prompts for task in tasks]
    settings = options.settings
    if (settings.state_dir / DATABASE).exists():
        async with open_state_read_only(settings) as state:
            await check_thawed(state)
    async with (
        scratch_store() as store,  # its turns are no part of the state
        running_agent(settings, store=store) as agent,
    ):
        with sign_of_life("starting the model"):
            await agent.ready()
        place = await agent.backend.endpoint()
        model = place.model or (await agent.backend.status()).backend.profile
        path = settings.state_dir / "eval" / f"{file_name(model or 'model')}.jsonl"
        if fresh:
            path.unlink(missing_ok=True)
        limits, zone = agent.sandboxes.config.limits, agent.config.zone
        async with open_stage(path.parent, limits, zone=zone, report=agent.host.text) as stage:
            await run_missing(agent, stage, wanted, path, quiet=as_json)
    keys = {(task.name, prompt) for task, prompt in wanted}
    scores = [score for score in load_scores(path) if score.key in keys]
    if as_json:
        click.echo(json.dumps(report(str(model), scores), ensure_ascii=False, indent=1))
    else:
        print_table(str(model), scores)


@asynccontextmanager
async def scratch_store() -> AsyncIterator[Store]:
    """An empty database, deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="voltaire-eval-") as folder:
        async with open_store(Path(folder) / DATABASE) as store:
            yield store


def chosen(names: Sequence[str], kinds: Sequence[str], *, easy: bool) -> list[EvalTask]:
    every = suite()
    known_kinds = sorted({task.kind for task in every})
    if unknown := sorted({*names, *kinds} - {task.name for task in every} - {*known_kinds}):
        raise Misused(f"There is no task or kind {unknown[0]}; kinds: {', '.join(known_kinds)}.")
    return [
        task
        for task in every
        if (not names or task.name in names)
        and (not kinds or task.kind in kinds)
        and (task.easy or not easy)
    ]


async def run_missing(
    agent: Agent,
    stage: Stage,
    wanted: Sequence[tuple[EvalTask, Prompt]],
    path: Path,
    *,
    quiet: bool,
) -> None:
    """Run the tasks that have no score yet, and save each score at once."""
    setup = EvalSetup(
        model=QueuedModel(agent.model, agent.window.queue, EVAL, IDLE),
        stage=stage,
        approvals=agent.store.approvals,
        tools=agent.tools,
        schemas=agent.schemas,
        zone=agent.config.zone,
        limits=agent.config.limits,
        ready=agent.ready,
        power=partial(gpu_power, agent.backend),
        constrain=agent.constrain,
    )
    done = {score.key for score in load_scores(path)}
    todo = [(task, prompt) for task, prompt in wanted if (task.name, prompt) not in done]
    for nth, (task, prompt) in enumerate(todo, 1):
        with sign_of_life(f"{nth:>3}/{len(todo)} {task.name}"):
            score = await run_task(setup, task, prompt)
        append_score(path, score)
        if not quiet:
            mark = "no: " + score.fault if score.fault else "done"
            click.echo(
                f"{nth:>3}/{len(todo)} {score.prompt:<10}{score.task:<22}{score.seconds:7.1f} s  {mark}"
            )


def file_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in ".-_" else "-" for c in name.split("/")[-1]) or "model"


def groups(scores: list[Score]) -> Iterator[tuple[str, dict[str, Rates]]]:
    yield "prompt", rates_by(scores, lambda score: score.prompt)
    ours = [score for score in scores if score.prompt == "ours"]
    yield "kind", rates_by(ours, lambda score: score.kind)
    if len(ours) < len(scores):
        each = sorted(scores, key=lambda score: score.kind)
        yield "kind and prompt", rates_by(each, lambda score: f"{score.kind}, {score.prompt}")


def report(model: str, scores: list[Score]) -> dict[str, Any]:
    rates = {
        group: {name: asdict(each) for name, each in members.items()}
        for group, members in groups(scores)
    }
    return {"model": model, **rates, "scores": [asdict(score) for score in scores]}


def print_table(model: str, scores: list[Score]) -> None:
    table = Table(title=f"{model}: {len(scores)} runs")
    for column in COLUMNS:
        table.add_column(column, justify="right" if column else "left", no_wrap=not column)
    for group, members in groups(scores):
        for name, rates in members.items():
            table.add_row(f"{group} {name}", *cells(rates))
        table.add_section()
    Console().print(table)


def cells(rates: Rates) -> list[str]:
    return [
        str(rates.tasks),
        share(rates.completed),
        share(rates.valid_calls),
        f"{rates.calls:.1f}",
        f"{rates.tokens:,.0f}",
        f"{rates.seconds:.1f}",
        number(rates.joules),
    ]
