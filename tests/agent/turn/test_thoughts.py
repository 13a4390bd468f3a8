"""What a model thinks: kept with its step, bounded, and ended when a person wants the answer."""

import asyncio
from dataclasses import replace

import pytest

from agent.events import Notice, TextDelta, ThoughtDelta
from agent.messages import Assistant
from agent.model import UNBOUNDED
from agent.turn import texts
from agent.turn.loop import run_turn
from fakes.model_scripted import Reply, ScriptedModel, calls, says
from fakes.patience import SECONDS
from tests.agent.turn.conftest import Bench

CIRCLE = "I should look at the file again. " * 200


def notices(bench: Bench) -> list[str]:
    return [event.text for event in bench.events if isinstance(event, Notice)]


def brief(bench: Bench) -> list[bool]:
    return [request.brief for request in bench.model.requests]


async def test_a_thought_is_kept_with_its_step_and_sent_with_the_next_call(bench: Bench) -> None:
    step = calls("bash", command="ls")
    reasoned = says("Done.", reasoning="Enough.")
    await bench.run(says("", calls=step.calls, reasoning="First the files."), reasoned)
    sent = bench.model.requests[1].messages
    assert [m.thought for m in sent if isinstance(m, Assistant)] == ["First the files."]
    assert bench.journal.messages[-1] == Assistant("Done.", thought="Enough.")


@pytest.mark.parametrize("thought", [says("never", reasoning=CIRCLE), says(f"<think>{CIRCLE}")])
async def test_a_circle_in_a_thought_ends_it_and_the_answer_comes_without(
    bench: Bench, thought: Reply
) -> None:
    finished = await bench.run(thought, says("Forty-two."))
    assert (finished.text, finished.reason) == ("Forty-two.", "done")
    assert brief(bench) == [False, True]
    assert notices(bench) == [texts.CIRCLING_THOUGHT]
    assert not any(isinstance(m, Assistant) and m.thought for m in bench.journal.messages)


@pytest.mark.parametrize(
    "thought",
    [says("", reasoning="And then"), says("<think>And then")],
    ids=["apart", "in-the-text"],
)
async def test_a_cap_spent_on_thought_asks_once_more_without(bench: Bench, thought: Reply) -> None:
    spent = replace(thought, finish_reason="length", tokens=(10, 0, 99))
    finished = await bench.run(spent, says("Forty-two."))
    assert (finished.text, finished.usage.completion_tokens) == ("Forty-two.", 109)
    assert brief(bench) == [False, True]
    assert notices(bench) == [texts.THOUGHT_ALONE]


async def test_a_model_that_thinks_all_the_same_is_asked_no_third_time(bench: Bench) -> None:
    finished = await bench.run(says("", reasoning="And then", finish_reason="length"))
    assert (finished.text, finished.reason) == (texts.NO_ANSWER, "error")
    assert len(bench.model.requests) == 4  # twice for the answer, twice after the advice


async def test_an_answer_that_was_cut_behind_its_thought_is_continued(bench: Bench) -> None:
    cut = says("One two", reasoning="Hm.", finish_reason="length")
    assert (await bench.run(cut, says("three."))).text == "One two three."
    assert brief(bench) == [False, False]


@pytest.mark.parametrize("chosen", [None, 512, UNBOUNDED])
async def test_answer_now_ends_the_thought_and_all_later_ones_of_the_turn(
    bench: Bench, chosen: int | None
) -> None:
    turn = bench.turn(
        ScriptedModel.of(
            says("never", reasoning="Well, on the one hand"),
            calls("bash", command="ls"),
            says("Forty-two."),
        )
    )
    model = turn.model
    assert isinstance(model, ScriptedModel)
    object.__setattr__(turn, "thinking", chosen)

    def press(event: object) -> None:
        if isinstance(event, ThoughtDelta):
            turn.answer_now.set()
        bench.events.append(event)  # type: ignore[arg-type]

    finished = await asyncio.wait_for(run_turn(turn, press), SECONDS)
    assert finished.text == "Forty-two."
    assert [request.brief for request in model.requests] == [False, True, True]
    assert {request.thinking for request in model.requests} == {chosen}
    assert notices(bench) == [texts.ANSWER_NOW]
    assert "never" not in "".join(e.text for e in bench.events if isinstance(e, TextDelta))


@pytest.mark.parametrize(
    ("thought", "kept"),
    [
        ('<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>', ""),
        ('I look.\n<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>\n', "I look."),
        ("Well.\n<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
         "Well."),
        ('Hm. {"name": "bash", "arguments": {"command": "ls"}}', "Hm."),
        ('<think>Hm. {"name": "bash", "arguments": {"command": "ls"}}', "Hm."),
        ('日本語で考える。\n\n```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```\n', "日本語で考える。"),
        ('[TOOL_CALLS][{"name": "bash", "arguments": {"command": "ls"}}]', ""),
        ('[TOOL_CALLS]bash[ARGS]{"command": "ls"}', ""),
        ('Über { und }.\n<|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}', "Über { und }."),
        ("<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>", ""),
        ('<|tool_call>call:bash{command:<|"|>ls<|"|>}<tool_call|>', ""),
        ('<function=bash>{"command": "ls"}</function>', ""),
        ('<|tool_call_start|>[bash(command="ls")]<|tool_call_end|>', ""),
    ],
)  # fmt: skip
async def test_a_whole_call_that_a_thought_ends_with_is_run(
    bench: Bench, thought: str, kept: str
) -> None:
    finished = await bench.run(says("", reasoning=thought), says("Done."))
    assert (finished.text, finished.tool_calls) == ("Done.", 1)
    called = next(m for m in bench.journal.messages if isinstance(m, Assistant))
    assert [(c.name, c.arguments) for c in called.calls] == [("bash", '{"command": "ls"}')]
    assert called.thought == kept


@pytest.mark.parametrize(
    "reply",
    [
        says("Here.", reasoning='<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>'),
        says("", reasoning='<tool_call>{"name": "bash", "arguments": {"comm'),
        says("", reasoning='<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call> or not?'),
        says("", reasoning='<tool_call>{"name": "nothing", "arguments": {}}</tool_call>'),
        says("", reasoning='<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>',
             finish_reason="length"),
    ],
)  # fmt: skip
async def test_other_calls_in_thoughts_are_thoughts(bench: Bench, reply: Reply) -> None:
    assert (await bench.run(reply, says("Done."))).tool_calls == 0
