"""Real models through the product: python -m bench.real_models --help

It goes on where it was interrupted: a trial that was made with this agent/ is not made again.
"""

import argparse
import asyncio
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent.evaluate.prompts import Prompt
from bench.real_models.table import failures, tables
from bench.real_models.trial import (
    WISHES,
    Bench,
    Trial,
    append_trial,
    cold_seconds,
    half,
    load_trials,
    open_bench,
    product_trial,
    revision,
    tasks,
)
from bench.real_models.weights import CACHE, MODELS, fetch

SETS = ("all", "easy", "suite", WISHES)
AGENTS = ("ours", "naive")
COLD = CACHE / "cold.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.real_models", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", action="append", choices=MODELS, help="repeatable; default: 0.5b and 1.5b"
    )
    parser.add_argument("--agent", action="append", choices=AGENTS, help="repeatable; default: all")
    parser.add_argument("--tasks", choices=SETS, default="all", help="easy: of the suite")
    parser.add_argument(
        "--half", choices=("A", "B"), help="A: what prompts are tuned on; B: what judges them"
    )
    parser.add_argument("--only", action="append", metavar="TASK", help="repeatable")
    parser.add_argument(
        "--seeds", type=int, default=1, metavar="N", help="runs of each task, with seeds 1 to N"
    )
    parser.add_argument(
        "--short",
        action="store_true",
        help="ten minutes: 1.5b, ours, the easy tasks and the wishes",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="make trials again that were made with this agent/"
    )
    parser.add_argument(
        "--table", action="store_true", help="print what was measured, and run nothing"
    )
    asked = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    models = asked.model or (["1.5b"] if asked.short else ["0.5b", "1.5b"])
    agents = asked.agent or (["ours"] if asked.short else AGENTS)
    names = list(chosen(asked))
    try:
        if not asked.table:
            asyncio.run(run(models, agents, names, asked.seeds, fresh=asked.fresh))
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here")
    report(models, agents, names, asked.seeds)
    return 0


def chosen(asked: argparse.Namespace) -> Iterator[str]:
    """The names of the tasks, the wishes and easy ones first."""
    order = sorted(tasks().values(), key=lambda t: (t.kind != WISHES, not t.easy))
    for task in order:
        wish = task.kind == WISHES
        inside = {"all": True, "suite": not wish, "easy": task.easy, WISHES: wish}[asked.tasks]
        if asked.short:
            inside = wish or task.easy
        if asked.only:
            inside = task.name in asked.only
        if inside and asked.half in (None, half(task.name)):
            yield task.name


async def run(
    models: Sequence[str], agents: Sequence[str], names: Sequence[str], seeds: int, *, fresh: bool
) -> None:
    """Make the trials that are missing, one model after another."""
    now = revision()
    done = set() if fresh else {trial.key for trial in load_trials()}
    for model in models:
        todo = [
            (agent, seed, name)
            for seed in range(1, seeds + 1)
            for agent in agents
            for name in names
            if (model, agent, seed, name, now) not in done
        ]
        if todo:
            print(f"{MODELS[model].title}: {len(todo)} trials, agent/ {now}", flush=True)
            with tempfile.TemporaryDirectory(prefix="state-", dir=CACHE) as state:
                async with open_bench(model, fetch(model), Path(state).resolve()) as bench:
                    keep_cold(model, await cold_seconds(bench))
                    for number, (agent, seed, name) in enumerate(todo, 1):
                        trial = await trial_of(bench, agent, seed, name)
                        append_trial(trial)
                        told = (
                            ", ".join(filter(None, (trial.fault, *trial.answer_faults))) or "done"
                        )
                        print(
                            f"{number:>4}/{len(todo)} {agent} {seed} {name}: {trial.seconds:.1f} s  {told}",
                            flush=True,
                        )


async def trial_of(bench: Bench, agent: str, seed: int, name: str) -> Trial:
    prompt: Prompt = "naive" if agent == "naive" else "ours"
    return await product_trial(bench, tasks()[name], prompt, seed)


def keep_cold(model: str, seconds: float) -> None:
    known = json.loads(COLD.read_text()) if COLD.exists() else {}
    COLD.write_text(json.dumps({**known, model: seconds}))


def report(models: Sequence[str], agents: Sequence[str], names: Sequence[str], seeds: int) -> None:
    now = revision()
    trials = [
        trial
        for trial in load_trials()
        if trial.model in models
        and trial.agent in agents
        and trial.task in names
        and trial.seed <= seeds
        and trial.revision == now
    ]
    trials.sort(
        key=lambda t: (models.index(t.model), agents.index(t.agent), t.seed, names.index(t.task))
    )
    print(
        f"\n{failures(trials)}\n\n{tables(trials, json.loads(COLD.read_text()) if COLD.exists() else {})}"
    )
    cores = len(os.sched_getaffinity(0))
    print(f"\nagent/ {now}, {cores} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    raise SystemExit(main())
