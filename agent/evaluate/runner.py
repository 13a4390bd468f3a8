"""One task, from a fresh workspace to a score. Its energy is measured by sampling the GPUs' power."""

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

from agent.aio import BackgroundTasks
from agent.approvals import ApprovalRows, Approvals
from agent.evaluate.scores import Score
from agent.evaluate.stage import Stage
from agent.evaluate.tasks import EvalTask, TurnRecorder, failed_check
from agent.events import Emit, Event
from agent.messages import System, User
from agent.model import Model
from agent.prompt import context_block, system_text
from agent.sandbox.sandbox import Sandbox
from agent.tools.tool import Tool
from agent.turn.conversation import TurnState
from agent.turn.delegate import TransientJournal
from agent.turn.loop import run_turn
from agent.turn.turn import Constrain, Turn, TurnLimits, at_once, never
from backend.client import BackendClient, BackendUnavailable

SETUP_SECONDS = 60.0
SAMPLE_SECONDS = 1.0

Prompt = Literal["ours", "naive"]
PROMPTS: tuple[Prompt, ...] = get_args(Prompt)
NAIVE = """You are a helpful AI assistant. You have access to tools. Current time: {now}.
Use the tools when they are needed to help the user."""

Power = Callable[[], Awaitable[float | None]]
"""What all GPUs draw together, in watts; None where none reports it."""


async def unmeasured() -> float | None:
    """The `Power` of a machine where no GPU reports any."""
    return None


def unwatched(event: Event) -> None:
    """The `listen` of a run whose events nobody needs."""


@dataclass(frozen=True)
class EvalSetup:
    """What all tasks run with. `ready` is agent.turn.turn.Turn's, `zone` an IANA name, `listen` takes the
    events of their turns."""

    model: Model
    stage: Stage
    approvals: ApprovalRows
    tools: Sequence[Tool]
    schemas: Sequence[Mapping[str, Any]]
    zone: str = "UTC"
    limits: TurnLimits = field(default_factory=TurnLimits)
    ready: Any = at_once
    power: Power = unmeasured
    listen: Emit = unwatched
    constrain: Callable[[], Awaitable[Constrain]] = never


def opening_messages(prompt: Prompt, ask: str, now: datetime, zone: str) -> list[System | User]:
    """The messages when the task is asked: with our prompt, or with two sentences and the time in the system text."""
    if prompt == "naive":
        return [System(NAIVE.format(now=now.isoformat(timespec="seconds"))), User(ask)]
    return [System(system_text()), User(context_block(now, zone) + ask)]


async def run_task(setup: EvalSetup, task: EvalTask, prompt: Prompt = "ours") -> Score:
    """The score of one task. Raises what is no fault of the model's, such as BackendAway."""
    async with prepared_sandbox(setup.stage, task) as sandbox:
        return await score_of(setup, sandbox, task, prompt)


@asynccontextmanager
async def prepared_sandbox(stage: Stage, task: EvalTask) -> AsyncIterator[Sandbox]:
    """A new workspace with the task's files, its setup done; deleted when the block ends."""
    sandbox = await stage.sandboxes.of(f"eval-{secrets.token_hex(4)}")
    try:
        for path, text in task.files.items():
            await sandbox.files.write(path, text.encode())
        if task.setup:
            ran = await sandbox.run(task.setup, seconds=SETUP_SECONDS)
            if ran.exit_code:
                raise RuntimeError(f"the setup of {task.name} failed: {ran.output}")
        yield sandbox
    finally:
        await stage.clear(task)
        await delete_workspace(sandbox)


async def delete_workspace(sandbox: Sandbox) -> None:
    """Delete a workspace with what lies beside it; what other users own in it is deleted from inside."""
    await sandbox.run(["/usr/bin/find", "/workspace", "-mindepth", "1", "-delete"])
    await asyncio.to_thread(shutil.rmtree, sandbox.workspace.parent, ignore_errors=True)


async def score_of(setup: EvalSetup, sandbox: Sandbox, task: EvalTask, prompt: Prompt) -> Score:
    """Run the turn in a prepared workspace, and check its outcome."""
    now = datetime.now(UTC).astimezone(ZoneInfo(setup.zone))
    recorder = TurnRecorder(now, notes=list(task.notes))
    context = await setup.stage.context(task, sandbox, recorder)
    messages = opening_messages(prompt, task.ask, now, setup.zone)
    journal = TaskJournal("eval", sandbox.chat, [*messages], before=1, recorder=recorder)
    turn = Turn(
        model=setup.model,
        journal=journal,
        tools=setup.tools,
        schemas=setup.schemas,
        context=context,
        approvals=Approvals(setup.approvals, None),
        limits=setup.limits,
        ready=setup.ready,
        constrain=setup.constrain,
    )

    def emit(event: Event) -> None:
        recorder.on_event(event)
        setup.listen(event)

    began = asyncio.get_running_loop().time()
    async with measured_energy(setup.power) as energy:
        finished = await run_turn(turn, emit)
    seconds = asyncio.get_running_loop().time() - began
    return Score(
        task=task.name,
        kind=task.kind,
        prompt=prompt,
        fault=await failed_check(task, finished.text, recorder, sandbox),
        reason=finished.reason,
        calls=finished.tool_calls,
        refused=recorder.refused,
        asked=recorder.asked,
        prompt_tokens=finished.usage.prompt_tokens,
        completion_tokens=finished.usage.completion_tokens,
        seconds=round(seconds, 3),
        joules=energy.joules,
    )


@dataclass
class TaskJournal(TransientJournal):
    """A journal that keeps the task's plan when its messages are compacted."""

    recorder: TurnRecorder = field(default_factory=TurnRecorder)

    async def open(self) -> TurnState:
        return replace(await super().open(), plan=self.recorder.plan)


@dataclass
class Energy:
    joules: float | None = None


@asynccontextmanager
async def measured_energy(power: Power, energy: Energy | None = None) -> AsyncIterator[Energy]:
    """The energy that the GPUs use while the block runs, added to `energy`; None where they do not report it."""
    energy = energy or Energy()
    async with BackgroundTasks() as tasks:
        tasks.start(sample(power, energy), "energy")
        yield energy


async def sample(power: Power, energy: Energy) -> None:
    now = asyncio.get_running_loop().time
    while (watts := await power()) is not None:
        began = now()
        try:
            await asyncio.sleep(SAMPLE_SECONDS)
        finally:
            energy.joules = (energy.joules or 0.0) + watts * (now() - began)


async def gpu_power(backend: BackendClient) -> float | None:
    """The power of all GPUs, in watts; None while none reports it, or the backend is away."""
    powers: list[float | None] = []
    with suppress(BackendUnavailable):
        powers = [gpu.power_w for gpu in (await backend.status()).gpus]
    known = [power for power in powers if power is not None]
    return sum(known) if known else None
