"""The calls of one step: which are run, what the others are told, and what is remembered."""

import json
from collections.abc import Collection

import pytest

from agent.errors import ToolError
from agent.events import CallRefused, ToolCalled, ToolFinished
from agent.messages import Assistant, ToolCall, ToolResult, User
from agent.tools.registry import chosen
from agent.turn import texts
from agent.turn.conversation import Conversation
from agent.turn.tool_runner import ToolRunner, known_tool
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
        "- bash fail: exit code 1",
        "- bash c: ok",
    ]


async def test_what_a_model_was_advised_against_is_not_told_as_done(bench: Bench) -> None:
    bench.contents["a.txt"] = b"one\n"
    bench.journal.messages[-1] = User("what is in a.txt?")
    write = ToolCall("w", "write_file", json.dumps({"path": "a.txt", "content": "two"}))
    tools = await runner(bench, write, call("b"))
    tools.careful = True
    await tools.run((write, call("b")))
    results = [m.text for m in bench.journal.messages if isinstance(m, ToolResult)]
    assert results == [texts.ONLY_ASKED.format(path="a.txt"), "ran b"]
    assert tools.report("Over.").splitlines()[1:] == [texts.DONE_SO_FAR, "- bash b: ok"]


@pytest.mark.parametrize(
    "command",
    [
        'remember(note="tea")',
        "remember('tea')",
        '{"name": "remember", "arguments": {"note": "tea"}}',
        "functions.remember(note='tea')\n",
    ],
)
async def test_a_call_that_is_typed_as_a_command_is_made(bench: Bench, command: str) -> None:
    tools, results = await ran(bench, call("a", command))
    assert (results, bench.ran, tools.done) == (
        ["saved"],
        [("remember", {"note": "tea"})],
        {"remember"},
    )
    assert tools.repeats(call("b", command))


@pytest.mark.parametrize(
    "command",
    ["remember tea", "recall() { ls; }", "recall()\n{ ls; }", "echo 'grep(\"x\")'", "[ -f a ]"],
)
async def test_what_is_no_call_is_a_command(bench: Bench, command: str) -> None:
    await ran(bench, call("a", command))
    assert bench.ran == [("bash", {"command": command})]


async def test_a_report_has_the_last_eight_calls_and_none_is_none(bench: Bench) -> None:
    tools = await runner(bench)
    assert tools.report("Over.") == "Over."
    for number in range(9):
        tools.remember(call(str(number)), "x")
    assert (tools.calls, tools.done) == (9, {"bash"})
    assert tools.report("Over.").splitlines()[2:] == [f"- bash {n}" for n in range(1, 9)]


async def test_a_report_names_the_exit_code_of_what_failed_without_a_word(bench: Bench) -> None:
    bench.failures["grep x"] = "exit code: 1"
    tools, _ = await ran(bench, call("b", "grep x"))
    assert tools.report().splitlines()[1:] == ["- bash grep x: exit code: 1"]


@pytest.mark.parametrize(
    ("name", "does"),
    [
        *(("rename_file", "bash"), ("delete_file", "bash"), ("move_file", "bash"), ("disk_free", "bash")),
        *(("run_command", "bash"), ("create_file", "write_file"), ("search_files", "grep")),
        *(("save_note", "remember"), ("commit", "git_commit"), ("copy_file", ""), ("fly", "")),
    ],
)  # fmt: skip
def test_of_an_unknown_tool_it_is_told_which_does_the_job(name: str, does: str) -> None:
    tools = {tool.name: tool for tool in chosen(())}
    told = texts.UNKNOWN_TOOL.format(name=name, tools=", ".join(tools))
    with pytest.raises(ToolError) as caught:
        known_tool(name, list(tools.values()))
    assert str(caught.value) == (f"{told} {tools[does].signature}" if does else told)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("remembr", "remember"), ("ReadFile", "read_file"), ("read_files", "read_file"), ("Grep", "grep")],
)  # fmt: skip
def test_of_a_slip_the_tool_that_is_meant(name: str, meant: str) -> None:
    tools = {tool.name: tool for tool in chosen(())}
    with pytest.raises(ToolError) as caught:
        known_tool(name, list(tools.values()))
    assert str(caught.value) == texts.NO_TOOL.format(name=name, form=tools[meant].signature)


async def test_calls_that_are_none_count_once_for_a_step(bench: Bench) -> None:
    calls = call("a", name="bsh"), call("b", name="teleport"), call("c"), call("d")
    tools, results = await ran(bench, *calls, unreadable={"c"})
    assert results == [
        saying("bsh", "bash"),
        saying("teleport", "bash, remember, recall, schedule, git_commit"),
        saying("bash", "JSON"),
        "ran d",
    ]
    assert (tools.calls, tools.malformed) == (1, 1)
    assert [type(event) for event in bench.of(CallRefused, ToolCalled)] == [
        *[CallRefused] * 3,
        ToolCalled,
    ]


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
