"""A turn whose model server is away, full, refusing or breaking off."""

import asyncio
from dataclasses import dataclass

import pytest

from agent.errors import BackendAway, ContextFull
from agent.events import GpuQueued, ModelFinished, Notice, TextDelta
from agent.messages import System, User
from agent.model import ModelRefused
from agent.plan import PlanStep
from agent.turn import texts
from agent.turn.turn import TurnLimits
from fakes.model_scripted import ScriptedModel, calls, refused, says
from fakes.words import saying
from tests.agent.turn.conftest import Bench


async def test_a_backend_that_comes_back_costs_a_notice_and_nothing_else(bench: Bench) -> None:
    back = asyncio.Event()

    async def ready() -> None:
        await back.wait()

    bench.ready = ready
    away = BackendAway("The model server is loading.")
    running = asyncio.create_task(bench.run(away, says("Here I am.")))
    while not bench.of(Notice):
        await asyncio.sleep(0)
    assert not running.done()
    back.set()
    finished = await running
    assert (finished.text, finished.reason) == ("Here I am.", "done")
    assert bench.of(Notice) == [Notice(saying("loading", "go on"))]


async def test_a_stream_that_breaks_is_asked_again_and_its_step_forgotten(bench: Bench) -> None:
    broken = calls("bash", command="ls")
    cut = says("I will ru", finish_reason="cut")
    finished = await bench.run(cut, broken, says("Done."))
    assert finished.text == "Done."
    assert len(bench.of(ModelFinished)) == 2
    assert len(bench.journal.completions) == 2
    assert bench.model.requests[0] == bench.model.requests[1]


async def test_an_answer_that_the_server_cannot_parse_is_read_from_its_text(bench: Bench) -> None:
    unparsed = ModelRefused(500, "does not match the expected peg-native format", unparsed=True)
    call = '<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>'
    finished = await bench.run(unparsed, says(call), says("Done."))
    assert finished.text == "Done."
    assert bench.ran == [("bash", {"command": "ls"})]
    assert [request.raw for request in bench.model.requests] == [False, True, False]
    assert bench.of(Notice) == []


async def test_a_call_in_a_broken_stream_is_not_run(bench: Bench) -> None:
    broken = says('{"name": "bash", "arguments": {"command": "ls"}}', finish_reason="cut")
    await bench.run(broken, says("Done."))
    assert bench.ran == []


async def test_a_server_that_always_breaks_off_ends_the_turn(bench: Bench) -> None:
    finished = await bench.run(says("I", finish_reason="cut"))
    assert finished.reason == "backend"
    assert len(bench.model.requests) == 3
    assert [type(event) for event in bench.of(Notice, TextDelta)] == [
        TextDelta,
        Notice,
        TextDelta,
        Notice,
        TextDelta,
    ]


async def test_a_backend_that_has_failed_ends_it_with_its_reason(bench: Bench) -> None:
    async def failed() -> None:
        raise BackendAway("The model file is damaged.")

    bench.ready = failed
    finished = await bench.run(BackendAway("gone"))
    assert finished.text == saying("did not come back", "The model file is damaged.")


FORMS = [("auto", True), ("auto", True), ("none", True), ("none", False)]


def forms(bench: Bench) -> list[tuple[str, bool]]:
    return [(r.tool_choice, bool(r.tools)) for r in bench.model.requests]


async def test_two_identical_errors_change_the_request(bench: Bench) -> None:
    error = refused(500, "Failed to parse input")
    finished = await bench.run(error, error, error, says("Fine."))
    assert forms(bench) == FORMS
    why = "The model server refused my request, so I answer without tools: Failed to parse input"
    assert finished.text == f"{why}\n\nFine."
    assert bench.of(Notice, TextDelta)[0] == Notice(why)
    assert len(bench.of(Notice)) == 1


@pytest.mark.parametrize(
    ("answer", "limits", "reason"),
    [
        ("It is interrupted" + ": the program was stopped" * 1000, TurnLimits(), "loop"),
        ("As far as I came.", TurnLimits(max_tool_calls=0), "tool_limit"),
    ],
    ids=["loop", "tool_limit"],
)
async def test_an_answer_that_ends_early_says_that_it_is_without_tools(
    bench: Bench, answer: str, limits: TurnLimits, reason: str
) -> None:
    bench.limits = limits
    finished = await bench.run(*[refused(500, "Failed to parse input")] * 3, says(answer))
    assert finished.reason == reason
    why = "The model server refused my request, so I answer without tools: Failed to parse input"
    assert finished.text.startswith(f"{why}\n\n{answer[:17]}")


async def test_a_form_that_was_taken_is_kept_for_the_turn(bench: Bench) -> None:
    error = refused(400, "Failed to parse input")
    await bench.run(error, error, says(""), says("Fine."))
    assert forms(bench) == [("auto", True), ("auto", True), ("none", True), ("none", True)]


async def test_a_server_that_fails_with_everything_is_asked_anew_after_its_restart(
    bench: Bench,
) -> None:
    bench.limits = TurnLimits(trouble_seconds=0)
    error = refused(500, "the decoder is broken")
    finished = await bench.run(*[error] * 4, calls("bash", command="ls"), says("Fine."))
    assert (finished.text, finished.reason) == ("Fine.", "done")
    assert forms(bench) == [*FORMS, ("auto", True), ("auto", True)]
    assert bench.of(Notice) == [Notice(saying("failed", "the decoder is broken", "go on"))]
    assert bench.ran == [("bash", {"command": "ls"})]


async def test_a_request_that_is_at_fault_itself_is_not_asked_anew(bench: Bench) -> None:
    finished = await bench.run(refused(400, "Failed to parse input"))
    assert finished.text == saying("refused", "Failed to parse input")
    assert forms(bench) == FORMS


async def test_a_wrong_key_is_said_at_once(bench: Bench) -> None:
    finished = await bench.run(refused(401, "Invalid API Key"))
    assert finished.text == saying("refused", "Invalid API Key")
    assert len(bench.model.requests) == 1


async def test_a_full_window_is_compacted_and_asked_again(bench: Bench) -> None:
    bench.journal.shorter = [System("You help."), User("short")]
    finished = await bench.run(ContextFull("9000 of 8192"), says("Fine."))
    assert finished.text == "Fine."
    assert bench.model.requests[1].messages == (System("You help."), User("short"))
    assert bench.of(Notice, GpuQueued) == [Notice(texts.SHORTENING), GpuQueued(0)]


async def test_the_plan_stands_behind_what_a_compaction_left(bench: Bench) -> None:
    bench.journal.shorter = [System("You help."), User("short")]
    bench.journal.planned = (PlanStep("look", done=True), PlanStep("tell"))
    await bench.run(ContextFull("9000 of 8192"), says("Fine."))
    last = bench.model.requests[1].messages[-1]
    assert last == User("<context>\nplan:\n1. [x] look\n2. [ ] tell\n</context>")


async def test_a_window_that_cannot_be_compacted_is_said(bench: Bench) -> None:
    finished = await bench.run(ContextFull("The conversation needs 9000 tokens."))
    assert (finished.text, finished.reason) == ("The conversation needs 9000 tokens.", "context")


async def test_how_calls_are_kept_readable_is_asked_once_the_server_answers(bench: Bench) -> None:
    @dataclass
    class Loading(ScriptedModel):
        async def window(self) -> int:
            if bench.constrain == "never":  # as it is while nothing is known of the server
                raise BackendAway("The model server is loading.")
            return self.n_ctx

    async def ready() -> None:
        bench.constrain = "always"

    bench.ready = ready
    model = Loading.of(calls("bash", command="ls"), says("2 files."))
    bench.results["ls"] = "2 files"
    await bench.run_with(model)
    assert [request.constrained for request in model.requests] == [True, True]
