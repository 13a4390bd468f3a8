"""One task, from a fresh workspace to a score."""

import asyncio
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from agent.approvals import ApprovalRows, Approvals
from agent.evaluate.energy import Energy, Watts, metered, unmeasured
from agent.evaluate.judge import fault
from agent.evaluate.prompts import Prompt, opening
from agent.evaluate.scores import Score
from agent.evaluate.task import Task
from agent.evaluate.traces import Traces
from agent.events import TurnFinished
from agent.model import Model
from agent.sandbox.sandbox import Sandbox
from agent.sandbox.sandboxes import Sandboxes
from agent.tools.context import ToolContext
from agent.tools.tool import Tool
from agent.turn.delegate import TransientJournal
from agent.turn.loop import run_turn
from agent.turn.turn import Turn, TurnLimits, at_once

SETUP_SECONDS = 60.0


@dataclass(frozen=True)
class Stage:
    """What all tasks are played with. `ready` is agent.turn.turn.Turn's, `zone` an IANA name."""

    model: Model
    sandboxes: Sandboxes
    approvals: ApprovalRows
    tools: Sequence[Tool]
    schemas: Sequence[Mapping[str, Any]]
    zone: str = "UTC"
    limits: TurnLimits = field(default_factory=TurnLimits)
    ready: Any = at_once
    watts: Watts = unmeasured


async def play(stage: Stage, task: Task, prompt: Prompt = "ours", said_before: int = 0) -> Score:
    """Raises what only the program or the machine can be blamed for, such as BackendAway."""
    sandbox = await stage.sandboxes.of(f"eval-{secrets.token_hex(4)}")
    try:
        await _set_up(sandbox, task)
        return await _played(stage, sandbox, task, prompt, said_before)
    finally:
        await _clear(sandbox)


async def _set_up(sandbox: Sandbox, task: Task) -> None:
    for path, text in task.files.items():
        await sandbox.files.write(path, text.encode())
    if task.setup:
        ran = await sandbox.run(task.setup, seconds=SETUP_SECONDS)
        if ran.exit_code:
            raise RuntimeError(f"the setup of {task.name} failed: {ran.output}")


async def _played(
    stage: Stage, sandbox: Sandbox, task: Task, prompt: Prompt, said_before: int
) -> Score:
    traces = Traces(notes=list(task.notes))
    now = datetime.now(UTC).astimezone(ZoneInfo(stage.zone))
    transcript = opening(prompt, task.ask, now, stage.zone, said_before)
    journal = TransientJournal("eval", sandbox.chat, transcript, before=len(transcript) - 1)
    context = ToolContext(sandbox=sandbox, notes=traces, jobs=traces, file_sender=traces)
    turn = Turn(
        model=stage.model,
        journal=journal,
        tools=stage.tools,
        schemas=stage.schemas,
        context=context,
        approvals=Approvals(stage.approvals, None),
        limits=stage.limits,
        ready=stage.ready,
    )
    began = asyncio.get_running_loop().time()
    async with metered(stage.watts) as energy:
        finished = await run_turn(turn, traces.hear)
    seconds = asyncio.get_running_loop().time() - began
    why = await fault(task, finished.text, traces, sandbox)
    return _score(task, prompt, said_before, why, finished, traces, seconds, energy)


def _score(
    task: Task,
    prompt: Prompt,
    said_before: int,
    why: str,
    finished: TurnFinished,
    traces: Traces,
    seconds: float,
    energy: Energy,
) -> Score:
    return Score(
        task=task.name,
        kind=task.kind,
        prompt=prompt,
        said_before=said_before,
        fault=why,
        reason=finished.reason,
        calls=finished.tool_calls,
        refused=traces.refused,
        asked=traces.asked,
        prompt_tokens=finished.usage.prompt_tokens,
        completion_tokens=finished.usage.completion_tokens,
        seconds=round(seconds, 3),
        joules=energy.joules,
    )


async def _clear(sandbox: Sandbox) -> None:
    """The workspace is gone afterwards; what others own in it goes from inside."""
    await sandbox.run(["/usr/bin/find", "/workspace", "-mindepth", "1", "-delete"])
    await asyncio.to_thread(shutil.rmtree, sandbox.workspace.parent, ignore_errors=True)
