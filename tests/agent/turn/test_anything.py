"""Whatever a model or its server sends, a turn ends once, within its budgets, and runs only calls."""

import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.errors import BackendAway, ContextFull
from agent.events import ToolCalled
from agent.llm.openai import OpenAIModel
from agent.messages import Assistant, ToolCall, ToolResult
from agent.turn.turn import TurnLimits
from fakes.model_scripted import Line, ModelServer, Reply, ScriptedModel, refused
from tests.agent.turn.conftest import Bench

LIMITS = TurnLimits(max_tool_calls=5, seconds=20, away_seconds=0.01, trouble_seconds=0.01)
COMMANDS = ["ls", "fail", "curl", "pwd"]

NAMES = st.sampled_from(["bash", "bash", "bash", "remember", "fly", "", "Bash", "functions.bash"])
ARGUMENTS = st.one_of(
    st.sampled_from(COMMANDS).map(lambda command: json.dumps({"command": command})),
    st.sampled_from(['{"command": "ls', '{"command": 5}', "[]", "null", "", "{{}}", '{"x": 1}']),
    st.text(max_size=30),
)
CALLS = st.lists(st.builds(ToolCall, st.sampled_from(["", "a", "b"]), NAMES, ARGUMENTS), max_size=3)
TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            "Fine.",
            "I have saved that.",
            "I'll remind you.",
            "<think>hm",
            '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>',
            '{"name": "fly", "arguments": {}}',
            '{"name": "bash", "arguments": {"command": "rm -rf /workspace/buil',
        ]
    ),
    st.text(max_size=40),
)
REPLIES = st.builds(
    Reply,
    text=TEXTS,
    calls=CALLS.map(tuple),
    finish_reason=st.sampled_from([None, None, None, "stop", "length", "cut"]),
    tokens=st.sampled_from([None, (100, 50, 10), (10**6, 0, 30_000)]),
)
FAILURES = st.sampled_from(
    [BackendAway("gone"), ContextFull("full"), refused(500, "no"), refused(400, "bad")]
)
LINES: st.SearchStrategy[Line] = st.one_of(REPLIES, REPLIES, REPLIES, FAILURES)


def sound(bench: Bench) -> bool:
    """Every call in the transcript has exactly one result, behind it."""
    calls: list[str] = []
    results: list[str] = []
    for message in bench.journal.messages:
        if isinstance(message, Assistant):
            calls += [call.id for call in message.calls]
        if isinstance(message, ToolResult):
            assert message.call in calls
            results.append(message.call)
    return calls == results and len(set(calls)) == len(calls)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(LINES, min_size=1, max_size=12))
async def test_a_turn_ends_once_within_its_budgets(lines: list[Line]) -> None:
    bench = Bench(limits=LIMITS)
    finished = await bench.run_with(ScriptedModel.of(*lines))
    assert finished.tool_calls <= 5
    assert len(bench.ran) <= 5
    assert len(bench.journal.finished) == 1
    assert bench.journal.messages[-1] == bench.journal.finished[0][0]
    assert sound(bench)
    assert all(run[1].get("command") != "rm -rf /workspace/buil" for run in bench.ran)
    assert len(bench.of(ToolCalled)) == finished.tool_calls


GARBAGE = [b"\xff\xfe", b"\x00", b'{"', b"}", b"[1e999]", b"data: ", b"\n\n", b": ping\n", b"\r"]
SHAPES: list[Any] = [None, 5, "x", [], {}, True, [[]], {"a": {}}, -1, 1e308]


def fuzzed_reply(chance: random.Random) -> bytes:
    """A stream of one call or text, damaged in one of the ways that servers and wires do."""
    command = chance.choice(COMMANDS)
    if chance.random() < 0.02:
        command = "x" * 1_000_000
    arguments = json.dumps({"command": command})
    events = list(_call_events(arguments, chance) if chance.random() < 0.7 else _text(chance))
    events.append({"choices": [{"delta": {}, "finish_reason": chance.choice(["stop", "length"])}]})
    chance.choice([_truncated, _shuffled, _wrong_types, _noise, _undamaged])(events, chance)
    stream = b"".join(_encoded(event) for event in events) + b"data: [DONE]\n\n"
    if chance.random() < 0.3:
        stream = stream[: chance.randrange(len(stream))]
    return stream


def _encoded(event: Any) -> bytes:
    return event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n"


def _call_events(arguments: str, chance: random.Random) -> list[Any]:
    size = max(1, len(arguments) // chance.randint(1, 5))
    head = {"index": 0, "id": "x", "function": {"name": chance.choice(["bash", "fly", "remember"])}}
    rest = [arguments[i : i + size] for i in range(0, len(arguments), size)]
    deltas = [head, *({"index": 0, "function": {"arguments": part}} for part in rest)]
    return [{"choices": [{"delta": {"tool_calls": [delta]}}]} for delta in deltas]


def _text(chance: random.Random) -> list[Any]:
    call = '{"name": "bash", "arguments": {"command": "ls"}}'
    text = chance.choice(["Fine.", "", f"<tool_call>{call}", f"```json\n{call}", call[:-5], "<"])
    return [{"choices": [{"delta": {"content": letter}}]} for letter in text]


def _undamaged(events: list[Any], chance: random.Random) -> None:
    """As it should be."""


def _truncated(events: list[Any], chance: random.Random) -> None:
    del events[chance.randrange(len(events)) :]


def _shuffled(events: list[Any], chance: random.Random) -> None:
    chance.shuffle(events)


def _wrong_types(events: list[Any], chance: random.Random) -> None:
    event = chance.choice(events)
    while isinstance(event, dict | list) and event and chance.random() < 0.8:
        key = chance.choice(list(event)) if isinstance(event, dict) else 0
        if not isinstance(event[key], dict | list) or chance.random() < 0.4:
            event[key] = chance.choice(SHAPES)
            return
        event = event[key]


def _noise(events: list[Any], chance: random.Random) -> None:
    for _ in range(3):
        events.insert(chance.randrange(len(events) + 1), chance.choice(GARBAGE))


@pytest.mark.thorough
@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.slow)])
async def test_fuzzed_replies_run_nothing_but_whole_calls(count: int) -> None:
    chance = random.Random(6)  # the same ones each time
    ends: dict[str, int] = {}
    served = 0

    def script(request: Any) -> Line:
        nonlocal served
        served += 1
        return Reply(raw=[fuzzed_reply(chance)])

    async with ModelServer(script=script) as server, OpenAIModel(server.endpoint) as model:
        while served < count:
            bench = Bench(limits=LIMITS)
            finished = await bench.run_with(model)
            ends[finished.reason] = ends.get(finished.reason, 0) + 1
            assert sound(bench)
            for name, arguments in bench.ran:
                assert (name, set(arguments)) == ("bash", {"command"})
                assert arguments["command"] in COMMANDS or set(arguments["command"]) == {"x"}
                assert arguments["command"] in COMMANDS or len(arguments["command"]) == 1_000_000
    assert set(ends) >= {"done", "error", "backend"}
