"""A turn that is stopped, killed, or taken up again."""

import asyncio
from collections.abc import Sequence

import pytest

from agent.errors import BackendAway
from agent.events import ToolCalled, TurnFinished
from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.turn import texts
from agent.turn.conversation import TurnState
from agent.turn.loop import run_turn
from fakes.model_scripted import Line, ScriptedModel, also, calls, says
from fakes.patience import SECONDS
from tests.agent.turn.conftest import Bench


async def test_stop_ends_a_stream_with_what_there_is(bench: Bench) -> None:
    streaming = asyncio.Event()

    async def hold() -> None:
        streaming.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(bench.run(says("Once upon a time", hold=hold)))
    await streaming.wait()
    bench.stop.set()
    finished = await asyncio.wait_for(running, SECONDS)
    assert finished.reason == "cancelled"
    assert finished.text == f"Once upon a time\n\n{texts.STOPPED}"
    assert bench.journal.messages[2:] == [Assistant(finished.text)]


async def test_stop_ends_a_tool_and_every_call_has_a_result(bench: Bench) -> None:
    both = also(calls("bash", id="a", command="wait"), calls("bash", id="b", command="2"))
    running = asyncio.create_task(bench.run(both))
    await bench.began.wait()
    bench.stop.set()
    finished = await asyncio.wait_for(running, SECONDS)
    assert finished == TurnFinished(texts.STOPPED, "cancelled", 1, finished.usage)
    assert bench.journal.messages[3:] == [
        ToolResult("a", "bash", texts.STOPPED_CALL),
        ToolResult("b", "bash", texts.NOT_RUN),
        Assistant(texts.STOPPED),
    ]


async def test_stop_of_a_turn_that_was_cut_off_before(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ToolCall("a", "bash", '{"command": "ls"}')
    bench.journal.messages = [System("s"), User("u"), Assistant("", (call,))]
    bench.journal.own = 2
    plain = bench.journal.open

    async def slow() -> TurnState:
        await asyncio.sleep(0.01)  # as a disk is
        return await plain()

    monkeypatch.setattr(bench.journal, "open", slow)
    bench.stop.set()
    await bench.run(says("Hello", hold=asyncio.Event().wait))
    results = [m for m in bench.journal.messages if isinstance(m, ToolResult)]
    assert len(results) == 1


async def test_stop_while_the_backend_is_away(bench: Bench) -> None:
    waiting = asyncio.Event()

    async def ready() -> None:
        waiting.set()
        await asyncio.Event().wait()

    bench.ready = ready
    running = asyncio.create_task(bench.run(BackendAway("gone")))
    await waiting.wait()
    bench.stop.set()
    assert (await asyncio.wait_for(running, SECONDS)).reason == "cancelled"


async def test_a_cancelled_task_leaves_the_turn_open(bench: Bench) -> None:
    running = asyncio.create_task(bench.run(calls("bash", id="a", command="wait")))
    await bench.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert bench.journal.finished == []
    assert bench.of(TurnFinished) == []
    assert bench.journal.running == {"a"}


async def resumed(bench: Bench, *lines: Line) -> TurnFinished:
    """A new program takes up the same journal."""
    bench.events.clear()
    bench.release.set()
    return await bench.run(*lines)


async def test_what_had_started_is_told_as_interrupted_and_the_rest_is_run(bench: Bench) -> None:
    three = also(
        calls("bash", id="a", command="1"),
        calls("bash", id="b", command="wait"),
        calls("bash", id="c", command="3"),
    )
    running = asyncio.create_task(bench.run(three))
    await bench.began.wait()
    running.cancel()
    await asyncio.wait([running])
    finished = await resumed(bench, says("Done."))
    assert finished == TurnFinished("Done.", "done", 2, finished.usage)
    assert [e.id for e in bench.of(ToolCalled)] == ["c"]
    assert bench.journal.messages[3:] == [
        ToolResult("a", "bash", "ran 1"),
        ToolResult("b", "bash", texts.INTERRUPTED),
        ToolResult("c", "bash", "ran 3"),
        Assistant("Done."),
    ]
    assert [run[1]["command"] for run in bench.ran] == ["1", "wait", "3"]


async def test_repetition_is_remembered_over_a_restart(bench: Bench) -> None:
    call = ToolCall("{}", "bash", '{"command": "ls"}')
    pairs = [
        (Assistant("", (ToolCall(id, "bash", call.arguments),)), ToolResult(id, "bash", "ran ls"))
        for id in "ab"
    ]
    bench.journal.messages = [System("s"), User("u"), *pairs[0], *pairs[1]]
    bench.journal.own = 5
    await bench.run(calls("bash", id="c", command="ls"), says("Done."))
    assert bench.ran == []
    assert bench.journal.messages[6:] == [Assistant("Done.")]


async def test_an_answer_without_its_note_is_asked_on(bench: Bench) -> None:
    bench.journal.messages = [System("s"), User("u"), Assistant("")]
    bench.journal.own = 2
    finished = await bench.run(says("Here."))
    assert finished.text == "Here."
    assert bench.journal.messages[3] == User(f"<context>\n{texts.GO_ON}\n</context>")


async def test_a_write_under_way_is_finished_before_a_stop(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing, go = asyncio.Event(), asyncio.Event()
    plain = bench.journal.add

    async def slow(message: Message, *, own: bool, strangers: Sequence[str] = ()) -> Message:
        if isinstance(message, ToolResult):
            writing.set()
            await go.wait()
        return await plain(message, own=own, strangers=strangers)

    monkeypatch.setattr(bench.journal, "add", slow)
    turn = bench.turn(ScriptedModel.of(calls("bash", id="a", command="1"), says("no")))
    running = asyncio.create_task(run_turn(turn, bench.events.append))
    await writing.wait()
    bench.stop.set()
    for _ in range(20):  # as often as a turn that did not wait would need to end
        await asyncio.sleep(0)
    assert not running.done()
    go.set()
    finished = await asyncio.wait_for(running, SECONDS)
    assert finished.reason == "cancelled"
    results = [m for m in bench.journal.messages if isinstance(m, ToolResult)]
    assert results == [ToolResult("a", "bash", "ran 1")]
