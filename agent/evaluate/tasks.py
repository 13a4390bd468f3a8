"""Tasks as data, and the checks of what a turn left behind."""

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, BinaryIO
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from agent.events import CallRefused, Event, ModelFinished, ToolFinished
from agent.plan import Plan, plan_lines
from agent.sandbox.sandbox import Sandbox
from agent.schedule.due_times import next_times
from agent.schedule.planner import asked_back, parse_meant
from agent.schedule.times.parser import parse
from agent.schedule.times.rule import Rule, describe
from agent.tools.context import RecallMatch


class TaskPage(BaseModel):
    """A page of the made-up web. A search finds it by its title and text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    title: str
    html: str

    @cached_property
    def plain(self) -> str:
        return " ".join(TAG.sub(" ", self.html).split())

    @property
    def words(self) -> set[str]:
        return set(re.findall(r"\w+", f"{self.title} {self.plain}".lower()))


TAG = re.compile(r"<[^>]*>")


class EvalTask(BaseModel):
    """What is asked in a fresh workspace, and what must hold afterwards: every check that is given.

    `says` and `never` are regular expressions over the answer. `verify` is bash
    that must end with 0 in the workspace, `echoes` bash whose output the answer
    must hold. `uses`: one of these tools must have run. `kept`, `planned` and `sent`
    (a file's name) are searched in what was remembered, scheduled and sent, `steps` in
    the lines of the plan; what is planned must be due as `due` says, in words. `documents`
    are files that were sent as such, `skills` SKILL.md texts by name, `pages` the web.
    `calls` is how many a good run takes; `easy` tasks are meant for the smallest models too.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: str
    ask: str
    files: dict[str, str] = Field(default_factory=dict)
    setup: str = ""
    notes: tuple[str, ...] = ()
    calls: int = 1
    easy: bool = False
    documents: tuple[str, ...] = ()
    skills: dict[str, str] = Field(default_factory=dict)
    pages: tuple[TaskPage, ...] = ()
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    verify: str = ""
    echoes: str = ""
    uses: tuple[str, ...] = ()
    kept: str = ""
    planned: str = ""
    due: str = ""
    sent: str = ""
    steps: tuple[str, ...] = ()


@cache
def suite() -> tuple[EvalTask, ...]:
    """All tasks; their kind is the name of the file that holds them."""
    folder = files("agent.evaluate").joinpath("tasks")
    return tuple(
        EvalTask(kind=file.name.removesuffix(".toml"), **task)
        for file in sorted(folder.iterdir(), key=lambda entry: entry.name)
        for task in tomllib.loads(file.read_text("utf-8"))["task"]
    )


CHECK_SECONDS = 30.0
CLOCK_TOLERANCE = timedelta(minutes=2)  # a model may count from when it was asked


@dataclass
class TurnRecorder:
    """Stands in for the tools' notes, jobs, plan and file sender, listens to the turn, and keeps what it gets."""

    now: datetime = field(default_factory=lambda: datetime.now(ZoneInfo("UTC")))
    notes: list[str] = field(default_factory=list)
    planned: list[tuple[Rule, str]] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    upload_limit: int = 50 << 20
    ran: list[str] = field(default_factory=list)
    plan: Plan = ()
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
        self,
        when: str,
        task: str,
        kind: str,
        approve: Any,
        stranger: str = "",
        asked: str = "",
    ) -> tuple[str, str]:
        with asked_back():
            rule = parse_meant(when, asked, self.now)
        self.planned.append((rule, task))
        shown = f"{task}, {describe(rule, str(self.now.tzinfo))}"
        return f"Planned as job {len(self.planned)}: {shown}.", shown

    async def of_turn(self, turn: str) -> Plan:
        return self.plan

    async def change(self, chat: str, correct: Callable[[Plan], Plan], turn: str = "") -> Plan:
        self.plan = correct(self.plan)
        return self.plan

    async def send_files(self, files: Sequence[tuple[BinaryIO, str]], caption: str) -> None:
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
    """The first check that does not hold, in words; "" when the task is done."""
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
    left = (
        ("remembered", task.kept, recorder.notes),
        ("planned", task.planned, [words for _, words in recorder.planned]),
        ("sent", task.sent, recorder.sent),
    )
    for what, wanted, found in left:
        if wanted and not any(re.search(wanted, one) for one in found):
            return f"nothing like {wanted} was {what}"
    if task.due and not due_as(task.due, recorder):
        return f"nothing is due {task.due}"
    for wanted in task.steps:
        if not any(re.search(wanted, line) for line in plan_lines(recorder.plan)):
            return f"the plan has no {wanted}"
    return ""


def due_as(words: str, recorder: TurnRecorder) -> bool:
    """Whether something was planned whose next times are those of `words`, within two minutes."""
    wanted = next_times(parse(words, recorder.now), recorder.now, 3)
    for rule, _ in recorder.planned:
        found = next_times(rule, recorder.now, 3)
        if len(found) == len(wanted) and all(
            abs(one - other) <= CLOCK_TOLERANCE for one, other in zip(found, wanted, strict=True)
        ):
            return True
    return False


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
