"""Tools within the day's budget of their chat, beyond it after a question, and frozen not at all."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.approvals import DENIED
from agent.budgets import DailyBudgets
from agent.errors import ToolError
from agent.events import ApprovalAsked
from agent.messages import ToolResult
from agent.store import Store, open_store
from agent.store.usage import Used
from agent.tools.tool import Call, Output, Tool, tool
from agent.turn.loop import run_turn
from agent.turn.texts import NEEDS_TOOL
from fakes.model_scripted import ScriptedModel, calls, says
from tests.agent.turn.conftest import Bench
from tests.agent.turn.test_approvals import answering

NONE = {"calls": 0, "bytes": 0, "hosts": 0, "files": 0, "jobs": 0}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "v.db") as store:
        yield store


async def run(bench: Bench, store: Store, *commands: str, frozen: str = "", **limits: int) -> str:
    lines = [calls("bash", command=command) for command in commands]
    bench.model = ScriptedModel.of(*lines, says("Done."))
    turn = bench.turn(bench.model)
    budgets = DailyBudgets(store.budgets, {**NONE, **limits})
    turn = replace(turn, budgets=budgets, frozen=frozen)
    return (await run_turn(turn, bench.events.append)).text


def results(bench: Bench) -> list[str]:
    return [m.text for m in bench.journal.messages if isinstance(m, ToolResult)]


async def used(store: Store) -> list[Used]:
    return await store.budgets.used("cli", DailyBudgets(store.budgets, NONE).today())


async def test_beyond_the_budget_an_owner_is_asked_for_a_tenth_more(
    bench: Bench, store: Store
) -> None:
    bench.ask = answering("once", [])
    assert await run(bench, store, "1", "2", "3", "4", calls=2) == "Done."
    asked = [event.what for event in bench.of(ApprovalAsked) if isinstance(event, ApprovalAsked)]
    assert results(bench) == ["ran 1", "ran 2", "ran 3", "ran 4"]
    assert [("2 tool calls" in what, "bash 3" in what) for what in asked[:1]] == [(True, True)]
    assert ("3 tool calls" in asked[1], "Allow 4" in asked[1]) == (True, True)
    assert await used(store) == [Used("calls", 4, 2)]


async def test_frozen_from_the_start_a_call_ends_the_turn_and_is_named(
    bench: Bench, store: Store
) -> None:
    assert await run(bench, store, "df", frozen="❄") == "❄\n\n" + NEEDS_TOOL.format(call="bash df")
    assert (results(bench), bench.events[-1].tool_calls) == ([], 0)  # type: ignore[union-attr]


async def test_frozen_in_the_middle_of_a_turn(bench: Bench, store: Store) -> None:
    @tool
    async def bash(call: Call, command: str) -> Output:
        """Run."""
        await store.freeze.freeze("ann")
        return Output("ran")

    bench.tools = lambda: [bash]  # type: ignore[method-assign]
    await run(bench, store, "1", "2", calls=10)
    assert results(bench)[0] == "ran"
    assert "frozen" in results(bench)[1]


class PlanningBench(Bench):
    """Its tool `schedule` fails where it is told to."""

    def tools(self) -> list[Tool]:
        async def schedule(call: Call, when: str) -> Output:
            """Plan."""
            if when == "never":
                raise ToolError("When?")
            self.ran.append(("schedule", {"when": when}))
            return Output("planned")

        return [tool(schedule)]


async def test_jobs_are_counted_before_and_given_back_where_none_was_made(store: Store) -> None:
    bench = PlanningBench()
    bench.ask = answering("denied", [])
    lines = [calls("schedule", when=when) for when in ("8", "never", "9", "10")]
    bench.model = ScriptedModel.of(*lines, says("Done."))
    budgets = DailyBudgets(store.budgets, {**NONE, "jobs": 2})
    await run_turn(replace(bench.turn(bench.model), budgets=budgets), bench.events.append)
    assert results(bench) == ["planned", "When?", "planned", DENIED]
    assert await used(store) == [Used("jobs", 2, 0)]
    [asked] = [event.what for event in bench.of(ApprovalAsked) if isinstance(event, ApprovalAsked)]
    assert "2 jobs planned" in asked and "schedule 10" in asked
