"""Every task can be done, and is not done by doing nothing."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.evaluate.runner import EvalSetup, run_task
from agent.evaluate.tasks import suite
from agent.messages import ToolResult
from agent.tools.registry import chosen
from fakes.journal_memory import MemoryApprovals
from fakes.model_scripted import Line, ScriptedModel, calls, says
from fakes.sandbox_box import opened
from tests.agent.evaluate.solutions import SOLUTIONS

TOOLS = chosen(())


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Any]:
    async with opened(tmp_path / "state") as sandboxes:

        def make(model: ScriptedModel) -> EvalSetup:
            schemas = [tool.schema for tool in TOOLS]
            return EvalSetup(model, sandboxes, MemoryApprovals(), TOOLS, schemas)

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


def test_at_least_forty_tasks_with_names_of_their_own() -> None:
    names = [task.name for task in suite()]
    assert len(names) == len(set(names)) >= 40
    assert set(names) == set(SOLUTIONS)
    assert sum(task.easy for task in suite()) >= 15
    assert max(task.calls for task in suite()) == 12


async def test_every_task_can_be_done(stage: Any) -> None:
    faults = {}
    for task in suite():
        score = await run_task(stage(solving(task.name)), task)
        if score.fault or score.reason != "done":
            faults[task.name] = (score.fault, score.reason)
    assert faults == {}


async def test_none_is_done_by_doing_nothing(stage: Any) -> None:
    done = [
        task.name
        for task in suite()
        if not (await run_task(stage(ScriptedModel.of(says("All is well."))), task)).fault
    ]
    assert done == []


async def test_nothing_is_left_of_a_task(stage: Any, tmp_path: Path) -> None:
    task = suite()[0]
    await run_task(stage(solving(task.name)), task)
    assert list((tmp_path / "state" / "chats").iterdir()) == []


async def test_what_a_score_tells(stage: Any) -> None:
    task = next(task for task in suite() if task.name == "find-word")
    score = await run_task(stage(solving("find-word")), task, "naive", 300)
    assert (score.calls, score.refused, score.asked) == (1, 0, 2)
    assert (score.prompt_tokens, score.completion_tokens, score.joules) == (200, 20, None)
    assert score.key == ("find-word", "naive", 300)
