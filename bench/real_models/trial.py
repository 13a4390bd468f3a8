"""One task with one model: what came of it, how long a person waited, and what was read again.

A trial is a line of `trials.jsonl`, found again by its key, so that a run that was interrupted goes on.
"""

import asyncio
import hashlib
import json
import re
import subprocess
import time
import tomllib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from agent.agent import Agent
from agent.evaluate.runner import EvalSetup, Prompt, run_task
from agent.evaluate.stage import Stage, open_stage
from agent.evaluate.tasks import EvalTask, suite
from agent.events import Event, ModelFinished, TurnFinished
from agent.llm.openai import message_json
from agent.llm.queued_model import QueuedModel
from agent.messages import Message, System, User
from agent.model import Completion, Piece, Request, WrappedModel
from agent.prompt import system_text
from backend.protocol import EVAL, IDLE
from bench.real_models.weights import CACHE
from bot.agent_config import open_agent
from bot.cli.connect import running_backend
from bot.settings import (
    AgentSection,
    BackendSection,
    RepoSection,
    Settings,
    StateSection,
    machine_timezone,
)
from fakes.answer_faults import faults_of

TRIALS = CACHE / "trials.jsonl"
TRANSCRIPTS = CACHE / "transcripts"
TURN_SECONDS = 300  # of a trial: nobody waits longer
WISHES = "wishes"


@dataclass(frozen=True, slots=True)
class ModelCall:
    """Seconds to the first word, and tokens; None where the server does not tell."""

    seconds: float | None
    prompt: int | None
    cached: int | None
    written: int | None


@dataclass(frozen=True, slots=True)
class Trial:
    """`agent` is a prompt of ours, or a peer. `fault` is empty when the task was done; `reason` is how the
    turn ended; `calls` are those of tools."""

    model: str
    agent: str
    seed: int
    task: str
    revision: str
    fault: str
    reason: str
    answer_faults: tuple[str, ...]
    calls: int
    seconds: float
    model_calls: tuple[ModelCall, ...]
    transcript: str = ""

    @property
    def key(self) -> tuple[str, str, int, str, str]:
        return self.model, self.agent, self.seed, self.task, self.revision


@cache
def tasks() -> dict[str, EvalTask]:
    """The suite and the wishes, by name."""
    path = Path(__file__).with_name("wishes.toml")
    wishes = tomllib.loads(path.read_text("utf-8"))["task"]
    return {task.name: task for task in (*suite(), *(EvalTask(kind=WISHES, **w) for w in wishes))}


def half(name: str) -> str:
    """A: prompts are tuned on it; B: it only judges them."""
    return "AB"[hashlib.sha256(name.encode()).digest()[0] % 2]


@cache
def revision() -> str:
    """Of agent/ in git, with what was changed since, as this process began."""
    told = subprocess.run(["git", "rev-parse", "--short=10", "HEAD:agent"], capture_output=True, text=True, check=True)  # fmt: skip
    changed = subprocess.run(
        ["git", "diff", "HEAD", "--", "agent"], capture_output=True, check=True
    )
    mark = f"+{hashlib.sha256(changed.stdout).hexdigest()[:6]}" if changed.stdout else ""
    return told.stdout.strip() + mark


def load_trials() -> list[Trial]:
    """The newest of each key, without a line that was cut off."""
    found: dict[Any, Trial] = {}
    for line in TRIALS.read_text("utf-8").splitlines() if TRIALS.exists() else []:
        try:
            fields = json.loads(line)
            calls = tuple(ModelCall(**call) for call in fields.pop("model_calls"))
            trial = Trial(**fields, model_calls=calls)
        except (ValueError, TypeError, KeyError):
            continue
        found[trial.key] = trial
    return list(found.values())


def append_trial(trial: Trial) -> None:
    with TRIALS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(trial), ensure_ascii=False) + "\n")


# -- a model behind the product ------------------------------------------------


@dataclass(frozen=True)
class Bench:
    """A model that serves, with the product's agent over it and the stage of the tasks."""

    name: str
    agent: Agent
    stage: Stage

    @property
    def setup(self) -> EvalSetup:
        agent = self.agent
        limits = replace(agent.config.limits, seconds=TURN_SECONDS)
        return EvalSetup(
            model=QueuedModel(agent.model, agent.window.queue, EVAL, IDLE),
            stage=self.stage,
            approvals=agent.store.approvals,
            tools=agent.tools,
            schemas=agent.schemas,
            zone=agent.config.zone,
            limits=limits,
            ready=agent.ready,
            constrain=agent.constrain,
        )


@asynccontextmanager
async def open_bench(name: str, model: Path, state: Path, context: int = 0) -> AsyncIterator[Bench]:
    """The model as `voltaire demo --model` runs it, its self-test made, with the tools for a repository."""
    repos = {"here": RepoSection(path=Path.cwd())}
    settings = Settings.model_construct(
        agent=AgentSection(timezone=machine_timezone(), repos=repos),
        backend=BackendSection(context=context),
        state=StateSection(dir=state),
    )
    async with (
        running_backend(settings, str(model.resolve())) as backend,
        open_agent(settings, backend) as agent,
        open_stage(
            state / "eval",
            agent.sandboxes.config.limits,
            zone=agent.config.zone,
            report=agent.host.text,
        ) as stage,
    ):
        await agent.ready()
        await agent.refresh_status()
        await agent.selftests.of((await backend.status()).backend)
        yield Bench(name, agent, stage)


async def cold_seconds(bench: Bench) -> float:
    """To the first word of a first message, of which nothing was read before."""
    unread = f"{time.time_ns()}\n{system_text()}"  # begins as nothing that the server keeps
    messages = (System(unread), User("how much disk space is free?"))
    request = Request(messages, bench.agent.schemas, max_tokens=8)
    began = time.monotonic()
    async for piece in bench.setup.model.stream(request):
        if isinstance(piece, Completion) and piece.ttft_ms:
            return piece.ttft_ms / 1000
    return time.monotonic() - began


@dataclass(frozen=True)
class SeededModel(WrappedModel):
    """Samples by a seed, and keeps the last request's messages and all that was generated."""

    seed: int = 0
    asked: list[Sequence[Message]] = field(default_factory=list)
    generated: list[Completion] = field(default_factory=list)

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        self.asked[:] = [request.messages]
        seeded = replace(request, sampling={**request.sampling, "seed": self.seed})
        async for piece in self.model.stream(seeded):
            if isinstance(piece, Completion):
                self.generated.append(piece)
            yield piece


async def product_trial(bench: Bench, task: EvalTask, prompt: Prompt, seed: int) -> Trial:
    """The task through the product's turn, with one of its prompts."""
    calls: list[ModelCall] = []
    answers: list[str] = []

    def listen(event: Event) -> None:
        match event:
            case ModelFinished(prompt, cached, written, ttft_ms):
                seconds = None if ttft_ms is None else ttft_ms / 1000
                calls.append(ModelCall(seconds, prompt, cached, written))
            case TurnFinished():
                answers.append(event.text)

    setup = bench.setup
    model = SeededModel(setup.model, seed)
    score = await run_task(replace(setup, model=model, listen=listen), task, prompt)
    trial = Trial(
        model=bench.name,
        agent=prompt,
        seed=seed,
        task=task.name,
        revision=revision(),
        fault=score.fault,
        reason=score.reason,
        answer_faults=faults_of(answers[-1], [tool.name for tool in bench.agent.tools]),
        calls=score.calls,
        seconds=score.seconds,
        model_calls=tuple(calls),
    )
    return await asyncio.to_thread(with_transcript, trial, task, transcript(model, answers[-1]))


def transcript(model: SeededModel, answer: str) -> str:
    """The last request's messages without the system text, what was generated as it came, and the answer."""
    lines: list[str] = []
    for message in model.asked[-1] if model.asked else ():
        if not isinstance(message, System):
            wire = dict(message_json(message))
            lines.append(f"== {wire.pop('role')}\n{wire.pop('content', None) or ''}".rstrip())
            lines += [f"{key}: {json.dumps(value)}" for key, value in wire.items()]
    for completion in model.generated:
        lines.append(f"== GENERATED, {completion.finish_reason}\n{completion.text}".rstrip())
        lines += [f"call {call.name} {call.arguments}" for call in completion.calls]
    return "\n".join([*lines, f"== ANSWER\n{answer}"])


def with_transcript(trial: Trial, task: EvalTask, text: str) -> Trial:
    """Keep the transcript of a trial that failed, or whose answer has a fault."""
    if not trial.fault and not trial.answer_faults:
        return trial
    name = re.sub(r"[^\w.-]", "_", f"{trial.model}-{trial.agent}-{task.name}-{trial.seed}.txt")
    path = TRANSCRIPTS / trial.revision / name
    path.parent.mkdir(parents=True, exist_ok=True)
    faults = ", ".join(filter(None, (trial.fault, trial.reason, *trial.answer_faults)))
    path.write_text(f"{task.ask}\n{faults}\n\n{text}\n", encoding="utf-8")
    return replace(trial, transcript=str(path))
