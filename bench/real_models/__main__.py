"""Real models through the product: python -m bench.real_models --help

It goes on where it was interrupted: a trial that was made with this agent/ is not made again.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.real_models.long_talk import CONTEXT, long_talk
from bench.real_models.peers import PEERS, peer_trial
from bench.real_models.plain_loop import plain_trial
from bench.real_models.table import failures, markdown, tables
from bench.real_models.trial import (
    TRANSCRIPTS,
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
AGENTS = ("ours", "naive", "plain", *PEERS)
COLD = CACHE / "cold.json"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.real_models", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", action="append", choices=MODELS, help="repeatable; default: 1.5b and 0.5b"
    )
    parser.add_argument("--agent", action="append", choices=AGENTS, help="repeatable; default: all")
    parser.add_argument("--tasks", choices=SETS, default="all", help="easy: of the suite")
    parser.add_argument(
        "--half", choices=("A", "B"), help="A: what prompts are tuned on; B: what judges them"
    )
    parser.add_argument(
        "--minutes", type=float, help="begin no trial after that; default: 120, short: 10"
    )
    parser.add_argument(
        "--long-talk", action="store_true", help="40 messages, notes, a summary; no tasks"
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
    models = asked.model or (["1.5b"] if asked.short else ["1.5b", "0.5b"])
    agents = asked.agent or (["ours"] if asked.short else AGENTS)
    names = list(chosen(asked))
    ends = time.monotonic() + 60 * (asked.minutes or (10 if asked.short else 120))
    try:
        if asked.long_talk:
            return asyncio.run(talk(models))
        if not asked.table:
            asyncio.run(run(models, agents, names, asked.seeds, ends, fresh=asked.fresh))
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
    models: Sequence[str],
    agents: Sequence[str],
    names: Sequence[str],
    seeds: int,
    ends: float,
    *,
    fresh: bool,
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
            if (model, agent, seed, name, version(agent, now)) not in done
            and (agent in ("ours", "naive") or tasks()[name].kind == WISHES)
        ]
        if todo and time.monotonic() < ends:
            print(f"{MODELS[model].title}: {len(todo)} trials, agent/ {now}", flush=True)
            with tempfile.TemporaryDirectory(prefix="state-", dir=CACHE) as state:
                async with open_bench(model, fetch(model), Path(state).resolve()) as bench:
                    keep_cold(model, await cold_seconds(bench))
                    for number, (agent, seed, name) in enumerate(todo, 1):
                        if time.monotonic() > ends:
                            print("the time is over; the same command goes on from here")
                            return
                        trial = await trial_of(bench, agent, seed, name)
                        append_trial(trial)
                        told = (
                            ", ".join(filter(None, (trial.fault, *trial.answer_faults))) or "done"
                        )
                        print(
                            f"{number:>4}/{len(todo)} {agent} {seed} {name}: {trial.seconds:.1f} s  {told}",
                            flush=True,
                        )


async def talk(models: Sequence[str]) -> int:
    """The long talk of each model; all that was said is kept."""
    for model in models:
        with tempfile.TemporaryDirectory(prefix="state-", dir=CACHE) as state:
            async with open_bench(model, fetch(model), Path(state).resolve(), CONTEXT) as bench:
                transcript = TRANSCRIPTS / revision() / f"{model}-long-talk.txt"
                transcript.parent.mkdir(parents=True, exist_ok=True)
                transcript.unlink(missing_ok=True)
                found = await long_talk(bench, str(transcript))
        print(f"\n{MODELS[model].title}: {transcript}\n\n{markdown(['long talk', model], found)}")
    return 0


async def trial_of(bench: Bench, agent: str, seed: int, name: str) -> Trial:
    match agent:
        case "ours" | "naive":
            return await product_trial(bench, tasks()[name], agent, seed)
        case "plain":
            return await plain_trial(bench, tasks()[name], seed)
    return await peer_trial(bench, tasks()[name], agent, seed)


def version(agent: str, now: str) -> str:
    """What a trial is kept for: this agent/, or a peer's version."""
    return PEERS[agent].version if agent in PEERS else now


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
        and trial.revision == version(trial.agent, now)
    ]
    trials.sort(
        key=lambda t: (models.index(t.model), agents.index(t.agent), t.seed, names.index(t.task))
    )
    print(
        f"\n{failures(trials)}\n\n{tables(trials, json.loads(COLD.read_text()) if COLD.exists() else {})}"
    )
    cores = len(os.sched_getaffinity(0))
    print(
        f"\nplain, {', '.join(f'{n} {p.version}' for n, p in PEERS.items())}: the wishes alone; see peers.py."
    )
    print(f"agent/ {now}, {cores} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    raise SystemExit(main())
