"""voltaire eval: the task suite on the current model, our prompt beside a naive one."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bot.cli import Misused
from bot.cli.options import json_option, runs, settings_of

if TYPE_CHECKING:
    from agent.evaluate.play import Stage
    from agent.evaluate.scores import Score
    from agent.evaluate.task import Task
    from bot.compose import Agent

Round = tuple["Task", str, int]


@click.command("eval", help="Small real tasks with checked outcomes; resumes where it was stopped.")
@click.option(
    "--prompt", type=click.Choice(["ours", "naive", "both"]), default="both", show_default=True
)
@click.option("--only", multiple=True, metavar="TASK", help="Only this task; may be repeated.")
@click.option(
    "--said-before",
    multiple=True,
    type=int,
    metavar="TOKENS",
    help="Also with that much talk before each task; may be repeated.",
)
@click.option("--again", is_flag=True, help="Forget earlier scores of this model.")
@json_option
@click.pass_context
@runs
async def command(
    ctx: click.Context,
    prompt: str,
    only: tuple[str, ...],
    said_before: tuple[int, ...],
    again: bool,
    as_json: bool,
) -> int:
    from bot.compose import reach_backend, stored_agent

    settings = settings_of(ctx)
    async with reach_backend(settings) as backend, stored_agent(settings, backend) as agent:
        await agent.ready()
        name = (await backend.endpoint()).profile or "external"
        path = settings.state_dir / "eval" / f"{name}.jsonl"
        if again:
            path.unlink(missing_ok=True)
        rounds = list(_rounds(prompt, only, (0, *said_before)))
        scores = await _play(agent, path, rounds, quiet=as_json)
    _print(name, scores, as_json=as_json)
    return 0


def _rounds(prompt: str, only: Sequence[str], said_before: Sequence[int]) -> Iterator[Round]:
    from agent.evaluate.task import suite

    chosen = [task for task in suite() if not only or task.name in only]
    if missing := set(only) - {task.name for task in chosen}:
        raise Misused(f"There is no task named {sorted(missing)[0]}.")
    for before in dict.fromkeys(said_before):
        for each in ("ours", "naive") if prompt == "both" else (prompt,):
            yield from ((task, each, before) for task in chosen)


async def _play(
    agent: "Agent", path: Path, rounds: Sequence[Round], *, quiet: bool
) -> "list[Score]":
    from agent.evaluate.play import play
    from agent.evaluate.scores import save, saved

    known = {score.key: score for score in saved(path)}
    stage = _stage(agent)
    for number, (task, prompt, before) in enumerate(rounds, 1):
        key = (task.name, prompt, before)
        if key not in known:
            known[key] = await play(stage, task, prompt, before)  # type: ignore[arg-type]
            save(path, known[key])
        if not quiet:
            fault = known[key].fault
            click.echo(
                f"{number}/{len(rounds)} {prompt:5} {task.name}: {fault or 'done'}", err=True
            )
    return [known[task.name, prompt, before] for task, prompt, before in rounds]


def _stage(agent: "Agent") -> "Stage":
    from agent.evaluate.play import Stage
    from agent.lane import SCHEDULED, LanedModel

    async def watts() -> float | None:
        status = await agent.look()
        drawn = [gpu.power_w for gpu in status.gpus if gpu.power_w] if status else []
        return sum(drawn) if drawn else None

    return Stage(
        model=LanedModel(agent.model, agent.window.lane, "eval", SCHEDULED),
        sandboxes=agent.sandboxes,
        approvals=agent.store.approvals,
        tools=agent.tools,
        schemas=agent.schemas,
        zone=agent.settings.agent.timezone,
        ready=agent.ready,
        watts=watts,
    )


def _print(name: str, scores: "Sequence[Score]", *, as_json: bool) -> None:
    from agent.evaluate.scores import by

    groups: dict[str, Any] = {
        "prompt": by(scores, lambda score: score.prompt),
        "kind": by([s for s in scores if s.prompt == "ours"], lambda score: score.kind),
        "said before": by([s for s in scores if s.prompt == "ours"], lambda s: str(s.said_before)),
    }
    if as_json:
        rates = {by_: {k: asdict(v) for k, v in group.items()} for by_, group in groups.items()}
        rows = [asdict(score) for score in scores]
        click.echo(
            json.dumps({"profile": name, "rates": rates, "scores": rows}, ensure_ascii=False)
        )
        return
    click.echo(f"{name}: {'':22} tasks  done  valid calls  calls  tokens  seconds  joules")
    for title, group in groups.items():
        for label, rate in group.items():
            valid = "-" if rate.valid_calls is None else f"{rate.valid_calls:.0%}"
            joules = "-" if rate.joules is None else f"{rate.joules:.0f}"
            click.echo(
                f"{title:>12} {label:<18} {rate.tasks:>5}  {rate.completed:>4.0%}  {valid:>11}"
                f"  {rate.calls:>5.1f}  {rate.tokens:>6.0f}  {rate.seconds:>7.1f}  {joules:>6}"
            )
