"""Every task can be done, and is not done by doing nothing."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.errors import ToolError
from agent.evaluate.runner import EvalSetup, run_task
from agent.evaluate.stage import open_stage
from agent.evaluate.tasks import EvalTask, TurnRecorder, missing_effect, suite
from agent.messages import ToolResult
from agent.tools.registry import chosen
from agent.turn.turn import Constrain
from fakes.journal_memory import MemoryApprovals
from fakes.model_scripted import Line, ScriptedModel, calls, says
from fakes.sandbox_box import LIMITS
from fakes.task_solutions import SOLUTIONS
from fakes.words import saying

TOOLS = chosen(())


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Any]:
    async with open_stage(tmp_path / "state", LIMITS) as played:

        def make(model: ScriptedModel) -> EvalSetup:
            schemas = [tool.schema for tool in TOOLS]
            return EvalSetup(model, played, MemoryApprovals(), TOOLS, schemas)

        yield make


def solving(name: str) -> ScriptedModel:
    """A model that takes the known way."""
    steps, answer = SOLUTIONS[name]
    left = [calls(tool, **arguments) for tool, arguments in steps]

    def script(request: Any) -> Line:
        if left:
            return left.pop(0)
        last = request.messages[-1]
        assert isinstance(last, ToolResult)
        return says(f"It is: {last.text}" if answer is None else answer)

    return ScriptedModel(script)


some_or_all = pytest.mark.parametrize(
    "step", [pytest.param(8, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)]
)


@some_or_all
async def test_every_task_can_be_done(stage: Any, step: int) -> None:
    faults = {}
    for task in suite()[::step]:
        score = await run_task(stage(solving(task.name)), task)
        if score.fault or score.reason != "done":
            faults[task.name] = (score.fault, score.reason)
    assert faults == {}


async def test_a_small_model_replaces_no_file_that_it_has_not_seen(stage: Any) -> None:
    task = next(task for task in suite() if task.name == "append-line")
    over = calls("write_file", path="shopping.txt", content="eggs\n")
    add = calls("write_file", path="/workspace/shopping.txt", content="eggs\n", append=True)
    read = calls("read_file", path="shopping.txt")
    again = calls("write_file", path="shopping.txt", content="eggs")
    whole = calls("write_file", path="shopping.txt", content="milk\nbread\neggs\n")
    for steps in (
        (over, add),
        (read, whole),
        (over, again, add),
        (over, over, says("No."), calls("bash", command="echo eggs >> *.txt")),
    ):
        model = ScriptedModel.of(*steps, says(""), says("Added."))
        setup = replace(stage(model), constrain=always)
        score = await run_task(setup, task)
        assert (score.fault, score.reason) == ("", "done"), steps


ASKED = [
    ("What is the code in parcel.txt, as we write it?", True),
    ("Could you put the street into parcel.txt?", False),
    ("Wie schwer ist das Paket in parcel.txt?", True),
    ("What is in parcel.txt? Replace it by what I told you.", False),
]
ASKED_BY_NIGHT = [
    ("Who sent parcel.txt?", True),
    ("how heavy is it, by parcel.txt?", True),
    ("¿Qué número está en parcel.txt?", True),
    ("Add the street to parcel.txt.", False),
    ("Would you put the street into parcel.txt?", False),
    ("Quickly put the street into parcel.txt, please?", False),
    ("Welches Gewicht hat parcel.txt?", True),
    ("What is its street, and can you write it to parcel.txt?", False),
    ("Is parcel.txt there? Please add the street, will you?", False),
]


@pytest.mark.parametrize(
    ("ask", "kept"),
    [*ASKED, *(pytest.param(*each, marks=pytest.mark.slow) for each in ASKED_BY_NIGHT)],
)
async def test_a_small_model_that_is_asked_of_a_file_does_not_write_to_it(
    stage: Any, ask: str, kept: bool
) -> None:
    same = "printf 'number 42\\n' | cmp -s - parcel.txt"
    fields = {"files": {"parcel.txt": "number 42\n"}, "verify": same}
    task = EvalTask(name="parcel", kind="own", ask=ask, **fields)
    read = calls("read_file", path="parcel.txt")
    for write in (
        calls("write_file", path="parcel.txt", content="street 1\n"),
        calls("write_file", path="/workspace/parcel.txt", content="number 42, street", append=True),
        calls("edit_file", path="parcel.txt", old="number 42", new="street 1"),
    ):
        model = ScriptedModel.of(read, write, says("Number 42."), says("Number 42."))
        score = await run_task(replace(stage(model), constrain=always), task)
        assert (score.fault == "") is kept, write


async def always() -> Constrain:
    return "always"


async def test_the_made_up_web_has_what_a_task_says_and_nothing_else(stage: Any) -> None:
    task = next(task for task in suite() if task.name == "search-and-read")
    model = ScriptedModel.of(
        calls("bash", command="web search volcano"),
        calls("bash", command="web search Marlow hotels; web read https://hotels.example/marlow"),
        calls("bash", command="web read https://other.example/"),
        says("Nothing."),
    )
    await run_task(stage(model), task)
    none, both, other = [m.text for m in model.requests[-1].messages if isinstance(m, ToolResult)]
    assert none == "Nothing was found."
    assert both == saying("1. Hotels in Marlow", "2. Harbour Museum", "The Anchor has twelve rooms")
    assert (
        other == saying("exit code: 1") and "approve" in other.lower()
    ) or "ask" in other.lower()


async def test_skills_of_a_task_are_not_there_in_the_next(stage: Any) -> None:
    named = {task.name: task for task in suite()}
    await run_task(stage(solving("skill-that-fits")), named["skill-that-fits"])
    model = ScriptedModel.of(calls("bash", command="cat /commands.txt; ls /skills"), says("."))
    await run_task(stage(model), named["skill-of-the-house"])
    (listed,) = [m.text for m in model.requests[-1].messages if isinstance(m, ToolResult)]
    assert "shift-note  How a shift note" in listed and "parcel-code" not in listed


@some_or_all
async def test_none_is_done_by_doing_nothing(stage: Any, step: int) -> None:
    done = [
        task.name
        for task in suite()[::step]
        if not (await run_task(stage(ScriptedModel.of(says("All is well."))), task)).fault
    ]
    assert done == []


async def test_nothing_is_left_of_a_task(stage: Any, tmp_path: Path) -> None:
    task = suite()[0]
    await run_task(stage(solving(task.name)), task)
    (folder,) = (tmp_path / "state").iterdir()
    assert list((folder / "chats").iterdir()) == []


async def test_what_a_score_tells(stage: Any) -> None:
    task = next(task for task in suite() if task.name == "find-word")
    score = await run_task(stage(solving("find-word")), task, "naive")
    assert (score.calls, score.refused, score.asked) == (1, 0, 2)
    assert (score.prompt_tokens, score.completion_tokens, score.joules) == (200, 20, None)
    assert score.key == ("find-word", "naive")


@pytest.mark.parametrize(
    ("when", "right"),
    [
        ("in 20 minutes", True),
        ("20 min", True),
        ("2026-03-02T10:20:00", True),
        ("2026-03-02 10:20", True),
        ("at 10:21", True),
        ("in 2 hours", False),
        ("every 20 minutes", False),
        ("tomorrow at 10:20", False),
    ],
)
async def test_a_time_is_judged_by_when_it_comes(when: str, right: bool) -> None:
    (task,) = (task for task in suite() if task.name == "remind-once")
    recorder = TurnRecorder(datetime(2026, 3, 2, 10, 0, tzinfo=ZoneInfo("Europe/Berlin")))
    await recorder.schedule(when, "turn off the oven", "remind", approve=None)
    assert (missing_effect(task, recorder) == "") is right


async def test_a_time_that_is_not_understood_is_asked_back() -> None:
    with pytest.raises(ToolError):
        await TurnRecorder().schedule("soonish", "turn off the oven", "remind", approve=None)
