"""The checks of a task."""

import re

from agent.evaluate.task import Task
from agent.evaluate.traces import Traces
from agent.sandbox.sandbox import Sandbox

SECONDS = 30.0


async def fault(task: Task, answer: str, traces: Traces, sandbox: Sandbox) -> str:
    """The first check that does not hold, in words; empty when the task is done."""
    return (
        _in_words(task, answer)
        or _in_traces(task, traces)
        or await _in_workspace(task, answer, sandbox)
    )


def _in_words(task: Task, answer: str) -> str:
    for wanted in task.says:
        if not re.search(wanted, answer):
            return f"the answer has no {wanted}"
    for unwanted in task.never:
        if re.search(unwanted, answer):
            return f"the answer has {unwanted}"
    return ""


def _in_traces(task: Task, traces: Traces) -> str:
    if task.uses and not set(task.uses) & set(traces.ran):
        return f"none of {', '.join(task.uses)} was used"
    left = (("remembered", task.kept, traces.notes), ("planned", task.planned, traces.planned))
    for what, wanted, found in (*left, ("sent", task.sent, traces.sent)):
        if wanted and not any(re.search(wanted, one) for one in found):
            return f"nothing like {wanted} was {what}"
    return ""


async def _in_workspace(task: Task, answer: str, sandbox: Sandbox) -> str:
    if task.verify:
        ran = await sandbox.run(task.verify, seconds=SECONDS)
        if ran.exit_code:
            return f"the outcome is not as asked: {task.verify}"
    if task.echoes:
        ran = await sandbox.run(task.echoes, seconds=SECONDS)
        if ran.output.strip() not in answer:
            return f"the answer does not hold the output of {task.echoes}"
    return ""
