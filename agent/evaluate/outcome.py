"""What a turn left behind besides files, and the checks of a task."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from agent.evaluate.tasks import EvalTask
from agent.events import CallRefused, Event, ModelFinished, ToolFinished
from agent.sandbox.sandbox import Sandbox
from agent.tools.context import RecallMatch

CHECK_SECONDS = 30.0


@dataclass
class TurnRecorder:
    """The tools' notes, jobs and file sender, and the turn's listener, all keeping what they get."""

    notes: list[str] = field(default_factory=list)
    planned: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    refused: int = 0
    asked: int = 0

    async def remember(self, note: str, source: str, stranger: str = "") -> str:
        self.notes.append(note)
        return f"Saved: {note}"

    async def recall(self, query: str, limit: int) -> Sequence[RecallMatch]:
        words = query.lower().split()
        hits = [n for n in self.notes if any(word in n.lower() for word in words)]
        return [RecallMatch(note, "2026-01-05") for note in hits[:limit]]

    async def schedule(
        self, when: str, task: str, kind: str, approve: Any, stranger: str = ""
    ) -> str:
        self.planned.append(f"{when} {task}")
        return f"Planned: {task} ({when})"

    async def send_file(self, file: BinaryIO, name: str, caption: str) -> None:
        self.sent.append(name)

    async def send_album(self, files: Sequence[tuple[BinaryIO, str]], caption: str) -> None:
        self.sent += [name for _, name in files]

    def on_event(self, event: Event) -> None:
        match event:
            case ToolFinished(name=name, ok=True):
                self.ran.append(name)
            case CallRefused():
                self.refused += 1
            case ModelFinished():
                self.asked += 1


async def failed_check(
    task: EvalTask, answer: str, recorder: TurnRecorder, sandbox: Sandbox
) -> str:
    """The first check that does not hold, in words; empty when the task is done."""
    return (
        wrong_answer(task, answer)
        or missing_effect(task, recorder)
        or await wrong_workspace(task, answer, sandbox)
    )


def wrong_answer(task: EvalTask, answer: str) -> str:
    for wanted in task.says:
        if not re.search(wanted, answer):
            return f"the answer has no {wanted}"
    for unwanted in task.never:
        if re.search(unwanted, answer):
            return f"the answer has {unwanted}"
    return ""


def missing_effect(task: EvalTask, recorder: TurnRecorder) -> str:
    if task.uses and not set(task.uses) & set(recorder.ran):
        return f"none of {', '.join(task.uses)} was used"
    left = (("remembered", task.kept, recorder.notes), ("planned", task.planned, recorder.planned))
    for what, wanted, found in (*left, ("sent", task.sent, recorder.sent)):
        if wanted and not any(re.search(wanted, one) for one in found):
            return f"nothing like {wanted} was {what}"
    return ""


async def wrong_workspace(task: EvalTask, answer: str, sandbox: Sandbox) -> str:
    if task.verify:
        ran = await sandbox.run(task.verify, seconds=CHECK_SECONDS)
        if ran.exit_code:
            return f"the outcome is not as asked: {task.verify}"
    if task.echoes:
        ran = await sandbox.run(task.echoes, seconds=CHECK_SECONDS)
        if ran.output.strip() not in answer:
            return f"the answer does not hold the output of {task.echoes}"
    return ""
