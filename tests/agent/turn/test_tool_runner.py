"""The calls of one step: which are run, what the others are told, and what is remembered."""

import json
from collections.abc import Collection

import pytest

from agent.events import CallRefused, ToolCalled, ToolFinished
from agent.messages import Assistant, ToolCall, ToolResult
from agent.model import Completion
from agent.turn import texts
from agent.turn.conversation import Conversation, usage_of
from agent.turn.tool_runner import ToolRunner, described
from agent.turn.turn import TurnLimits
from fakes.model_scripted import ScriptedModel, says
from fakes.words import saying
from tests.agent.turn.conftest import Bench


def call(id: str, command: str = "", name: str = "bash") -> ToolCall:
    return ToolCall(id, name, json.dumps({"command": command or id}))


async def runner(bench: Bench, *calls: ToolCall) -> ToolRunner:
    """Over a turn whose last step made these calls."""
    bench.journal.messages.append(Assistant("", calls))
    bench.journal.own += 1
    turn = bench.turn(ScriptedModel.of(says("unused")))
    transcript = Conversation(turn.journal)
    await transcript.open()
    return ToolRunner(turn, transcript, bench.events.append, bench.journal.withhold)


async def ran(
    bench: Bench, *calls: ToolCall, unreadable: Collection[str] = (), interrupted: Collection[str] = ()
) -> tuple[ToolRunner, list[str]]:  # fmt: skip
    """The runner behind these calls, and the texts of their results."""
    tools = await runner(bench, *calls)
    await tools.run(calls, unreadable=unreadable, interrupted=interrupted)
    results = [m for m in bench.journal.messages if isinstance(m, ToolResult)]
    assert [(result.call, result.name) for result in results] == [(c.id, c.name) for c in calls]
    return tools, [result.text for result in results]


async def test_calls_are_run_in_order_and_what_each_came_to_is_kept(bench: Bench) -> None:
    tools, results = await ran(bench, call("a"), call("b", "fail"), call("c"))
    assert results == ["ran a", "exit code 1", "ran c"]
    assert (tools.calls, tools.done, tools.malformed) == (3, {"bash"}, 0)
    assert [(e.id, e.ok, e.output) for e in bench.of(ToolFinished) if isinstance(e, ToolFinished)] == [
        ("a", True, "ran a"),
        ("b", False, "exit code 1"),
        ("c", True, "ran c"),
    ]  # fmt: skip
    assert tools.report("Over.").splitlines() == [
        "Over.",
        texts.DONE_SO_FAR,
        "- bash a: ok",
        "- bash fail: failed",
        "- bash c: ok",
    ]


async def test_a_tool_that_only_failed_is_not_done(bench: Bench) -> None:
    tools, _ = await ran(bench, call("a", "fail"))
    assert (tools.calls, tools.done) == (1, set())


async def test_a_report_has_the_last_eight_calls_and_none_is_none(bench: Bench) -> None:
    tools = await runner(bench)
    assert tools.report("Over.") == "Over."
    for number in range(9):
        tools.remember(call(str(number)), "x")
    assert (tools.calls, tools.done) == (9, {"bash"})
    assert tools.report("Over.").splitlines()[2:] == [f"- bash {n}" for n in range(1, 9)]


async def test_calls_that_are_none_count_once_for_a_step(bench: Bench) -> None:
    calls = call("a", name="bsh"), call("b", name="teleport"), call("c"), call("d")
    tools, results = await ran(bench, *calls, unreadable={"c"})
    assert results == [
        saying("bsh", "bash"),
        saying("teleport", "bash, remember, git_commit"),
        saying("bash", "JSON"),
        "ran d",
    ]
    assert (tools.calls, tools.malformed) == (1, 1)
    assert [type(event) for event in bench.of(CallRefused, ToolCalled)] == [
        *[CallRefused] * 3,
        ToolCalled,
    ]


async def test_what_had_started_before_a_restart_is_told_as_interrupted(bench: Bench) -> None:
    tools, results = await ran(bench, call("a"), call("b"), interrupted={"a"})
    assert results == [texts.INTERRUPTED, "ran b"]
    assert tools.calls == 1
    assert bench.ran == [("bash", {"command": "b"})]


@pytest.mark.parametrize(("most", "run"), [(1, 1), (2, 2), (3, 3), (4, 3)])
async def test_at_the_limit_the_last_call_says_so_and_no_other_is_run(
    bench: Bench, most: int, run: int
) -> None:
    bench.limits = TurnLimits(max_tool_calls=most)
    tools, results = await ran(bench, call("a"), call("b"), call("c"))
    expected = [f"ran {id}" for id in "abc"]
    if most <= 3:
        expected[run - 1] += f"\n{texts.LAST_CALL}"
        expected[run:] = [texts.NOT_RUN_LIMIT.format(count=most)] * (3 - run)
    assert results == expected
    assert (tools.calls, len(bench.ran)) == (run, run)


@pytest.mark.parametrize(
    ("done", "next_call", "repeats"),
    [
        (["ls"], "ls", True),
        (["ls"], "df", False),
        (["ls", "df"], "ls", False),  # df may have changed what ls shows
        (["ls", "df", "ls"], "df", True),
        (["a", "b", "c", "a", "b"], "c", True),
        (["a", "b", "c", "d", "a", "b", "c"], "d", True),
        (["test", "edit 1", "test", "edit 2"], "test", False),
        ([], "ls", False),
    ],
)
async def test_a_call_that_completes_the_second_round_of_a_cycle_repeats(
    bench: Bench, done: list[str], next_call: str, repeats: bool
) -> None:
    made = [call(f"a{n}", command) for n, command in enumerate(done)]
    tools = await runner(bench, *made)
    await tools.run(made)
    assert tools.repeats(call("b", next_call)) == repeats


async def test_a_call_whose_result_changes_is_progress(bench: Bench) -> None:
    tools = await runner(bench)
    tools.remember(call("a", "ls"), "one")
    tools.remember(call("b", "date"), "noon")
    tools.remember(call("c", "ls"), "two")
    assert not tools.repeats(call("d", "date"))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ('{"command": "ls -l\\n  | head", "seconds": 5}', "bash ls -l | head 5"),
        ("{}", "bash"),
        ("no JSON", "bash"),
        (json.dumps({"command": "x" * 115}), "bash " + "x" * 115),
        (json.dumps({"command": "x" * 116}), "bash " + "x" * 114 + "…"),
    ],
    ids=["lines", "none", "unreadable", "just", "long"],
)
def test_a_call_in_a_line(arguments: str, line: str) -> None:
    assert described(ToolCall("a", "bash", arguments)) == line


@pytest.mark.parametrize(
    ("figures", "usage"),
    [
        ((100, 80, 10), (100, 80, 10)),
        ((None, None, None), (0, 0, 4)),
        ((100, None, 0), (100, 0, 0)),
    ],
)
def test_tokens_that_a_server_does_not_count_are_guessed(
    figures: tuple[int | None, ...], usage: tuple[int, ...]
) -> None:
    completion = Completion("five.", (ToolCall("a", "bash", "nine more"),), "", "stop", *figures)
    used = usage_of(completion)
    assert (used.prompt_tokens, used.cached_tokens, used.completion_tokens) == usage
