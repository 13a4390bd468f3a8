"""A sub-task in an inner turn."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agent.events import TokenUsage, ToolFinished
from agent.leaks import LeakDetector
from agent.messages import Assistant, System, ToolCall, ToolResult, User
from agent.prompt import system_text
from agent.tools.delegate import delegate
from agent.tools.tool import Tool
from agent.turn import texts
from agent.turn.delegate import TransientJournal
from agent.turn.turn import TurnLimits
from fakes.model_scripted import Line, ScriptedModel, calls, says
from fakes.words import saying
from tests.agent.turn.conftest import Bench


class DelegatingBench(Bench):
    def tools(self) -> list[Tool]:
        return [*super().tools(), delegate]


def by_depth(outer: Sequence[Line], inner: Sequence[Line]) -> Any:
    """Different lines for the outer and the inner turn, told apart by their first message."""
    lines = {True: list(inner), False: list(outer)}
    return lambda request: lines[request.messages[0] == System(system_text())].pop(0)


async def test_only_the_conclusion_comes_back() -> None:
    bench = DelegatingBench()
    outer = [calls("delegate", id="d", task="read all"), says("It says 42.")]
    inner = [calls("bash", id="i", command="cat *"), says("The answer is 42.")]
    model = ScriptedModel(by_depth(outer, inner))
    finished = await bench.run_with(model)
    assert finished.text == "It says 42."
    assert bench.journal.messages[3] == ToolResult("d", "delegate", "The answer is 42.")
    assert [e.name for e in bench.of(ToolFinished)] == ["delegate"]
    assert bench.ran == [("bash", {"command": "cat *"})]
    inside = model.requests[1]
    assert inside.tools == model.requests[0].tools
    assert inside.messages == (
        System(system_text()),
        User(f"<context>\n{texts.SUB_TASK}\n</context>\nread all"),
    )


async def test_an_inner_turn_cannot_delegate_further() -> None:
    bench = DelegatingBench()
    outer = [calls("delegate", task="a"), says("Done.")]
    inner = [calls("delegate", id="i", task="b"), says("I did it myself.")]
    model = ScriptedModel(by_depth(outer, inner))
    await bench.run_with(model)
    advice = "There is no tool delegate. The tools are: write_file, bash, remember, recall, schedule, git_commit, git_status, list_files, grep."
    assert model.requests[2].messages[3] == ToolResult("i", "delegate", advice)


async def test_a_failed_inner_turn_is_a_failed_tool() -> None:
    bench = DelegatingBench()
    outer = [calls("delegate", id="d", task="a"), says("It did not work.")]
    model = ScriptedModel(by_depth(outer, [says(""), says("")]))
    await bench.run_with(model)
    assert bench.journal.messages[3] == ToolResult("d", "delegate", texts.NO_ANSWER)


@pytest.mark.parametrize(("command", "commits"), [("curl", 0), ("ls", 1)])
async def test_what_a_sub_task_read_of_strangers_touches_the_chat(
    command: str, commits: int
) -> None:
    bench = DelegatingBench()
    bench.rows.grants.add(("cli", "commit:website"))
    commit = calls("git_commit", repo="website", message="Fix")
    outer = [calls("delegate", task="a"), commit, says("ok")]
    inner = [calls("bash", command=command), says("x")]
    await bench.run_with(ScriptedModel(by_depth(outer, inner)))
    assert [name for name, _ in bench.ran] == ["bash"] + ["git_commit"] * commits
    assert [taint.source for taint in bench.journal.held] == (
        [] if commits else ["page http://example.org/"]
    )


async def test_what_a_sub_task_uses_counts_in_the_outer_turn() -> None:
    bench = DelegatingBench()
    outer = [calls("delegate", task="a"), says("Done.")]
    inner = [calls("bash", id="i", command="ls"), says("x")]
    finished = await bench.run_with(ScriptedModel(by_depth(outer, inner)))
    assert finished.usage == TokenUsage(4 * 100, 4 * 80, 4 * 10)
    assert [c.text for c in bench.journal.completions] == ["", "Done."]
    assert [c.text for c in bench.journal.asides] == ["", "x"]


async def test_sub_tasks_may_not_exceed_the_tokens_of_the_turn() -> None:
    bench = DelegatingBench()
    bench.limits = TurnLimits(tokens=6000)
    outer = [calls("delegate", task="a"), says("That is all.")]
    inner = [replace(says("much"), tokens=(100, 0, 5500))]
    model = ScriptedModel(by_depth(outer, inner))
    finished = await bench.run_with(model)
    assert (finished.text, finished.reason) == ("That is all.", "tool_limit")
    assert model.requests[-1].tool_choice == "none"


async def test_a_full_window_shortens_old_results() -> None:
    long = "x" * 1000
    call = ToolCall("a", "bash", "{}")
    results = [ToolResult(id, "bash", long) for id in "abc"]
    journal = TransientJournal(
        "t.1", "cli", [System("s"), User("u"), Assistant("", (call,)), *results]
    )
    assert await journal.compact(journal.messages, lambda: None, full=False) is None
    opening = await journal.compact(journal.messages, lambda: None, full=True)
    assert opening is not None
    short = f"{'x' * 200} {texts.SHORTENED}"
    texts_after = [m.text for m in opening.messages if isinstance(m, ToolResult)]
    assert texts_after == [short, short, long]
    assert await journal.compact(journal.messages, lambda: None, full=True) is None


async def test_what_a_sub_task_did_not_let_out_is_told() -> None:
    secret = "7311804495:AAHk3-9xTqLr_0vBwZyE2mNcD8sUuPfGa1o"
    bench = DelegatingBench(leaks=LeakDetector({"telegram.token": secret}))
    outer = [calls("delegate", id="d", task="read all"), says("It says 42.")]
    inner = [calls("bash", id="i", command=f"echo {secret}"), says("The answer is 42.")]
    finished = await bench.run_with(ScriptedModel(by_depth(outer, inner)))
    assert finished.text == saying("It says 42.\n\n", "withheld: bash", "telegram.token")
    assert bench.journal.withheld == [saying("bash", "telegram.token")]
    assert secret not in finished.text + str(bench.journal.withheld)
