"""What a turn does with what a model says."""

import asyncio
from dataclasses import replace

import pytest

from agent import texts
from agent.events import (
    CallRefused,
    ModelFinished,
    ModelProgress,
    TextDelta,
    ToolCalled,
    ToolFinished,
    ToolProgress,
    TurnFinished,
    TurnStarted,
    Usage,
)
from agent.limits import Limits
from agent.messages import Assistant, System, ToolCall, ToolResult, User
from tests.agent.loop.conftest import Bench
from tests.fakes.model_scripted import also, calls, says


async def test_an_answer_is_shown_as_it_comes_and_kept_as_it_was(bench: Bench) -> None:
    finished = await bench.run(says("Hello there."))
    assert finished == TurnFinished("Hello there.", "done", 0, Usage(100, 80, 10))
    assert bench.events == [
        TurnStarted("t1", "cli"),
        ModelProgress(100, 100, 80),
        *(TextDelta(part) for part in ("Hel", "lo", " the", "re.")),
        ModelFinished(100, 80, 10, None, None, None, "stop"),
        finished,
    ]
    assert bench.journal.messages == [System("You help."), User("hello"), Assistant("Hello there.")]


async def test_a_call_is_run_and_its_result_goes_back(bench: Bench) -> None:
    finished = await bench.run(calls("bash", id="a1", command="ls"), says("Two files."))
    assert finished == TurnFinished("Two files.", "done", 1, Usage(200, 160, 20))
    assert bench.of(ToolCalled, ToolProgress, ToolFinished)[:2] == [
        ToolCalled("a1", "bash", {"command": "ls"}),
        ToolProgress("a1", "half"),
    ]
    assert bench.journal.messages[2:] == [
        Assistant("", (ToolCall("a1", "bash", '{"command": "ls"}'),)),
        ToolResult("a1", "bash", "ran ls"),
        Assistant("Two files."),
    ]
    assert bench.model.requests[1].messages == tuple(bench.journal.messages[:4])
    assert bench.model.requests[0].tools is not None
    assert bench.model.requests[0].tools == bench.model.requests[1].tools


async def test_a_call_as_text_is_run_hidden_and_replayed_as_text(bench: Bench) -> None:
    text = 'I look.\n<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
    await bench.run(says(text), says("Two files."))
    assert bench.shown == "I look.Two files."
    assert bench.journal.messages[2:] == [
        Assistant("I look.", (ToolCall("call1", "bash", '{"command": "ls"}'),), raw=text),
        ToolResult("call1", "bash", "ran ls"),
        Assistant("Two files."),
    ]
