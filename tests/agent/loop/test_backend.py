"""A turn whose model server is away, full, refusing or breaking off."""

import asyncio

from agent import texts
from agent.errors import BackendAway, ContextFull
from agent.events import ModelFinished, Notice
from agent.limits import Limits
from agent.messages import System, User
from tests.agent.loop.conftest import Bench
from tests.fakes.model_scripted import calls, refused, says


async def test_a_backend_that_comes_back_costs_a_notice_and_nothing_else(bench: Bench) -> None:
    back = asyncio.Event()

    async def ready() -> None:
        await back.wait()

    bench.ready = ready
    running = asyncio.create_task(bench.run(BackendAway("gone"), says("Here I am.")))
    while not bench.of(Notice):
        await asyncio.sleep(0)
    assert not running.done()
    back.set()
    finished = await running
    assert (finished.text, finished.reason) == ("Here I am.", "done")
    assert bench.of(Notice) == [Notice(texts.RESTARTING)]


async def test_a_stream_that_breaks_is_asked_again_and_its_step_forgotten(bench: Bench) -> None:
    broken = calls("bash", command="ls")
    cut = says("I will ru", finish_reason="cut")
    finished = await bench.run(cut, broken, says("Done."))
    assert finished.text == "Done."
    assert len(bench.of(ModelFinished)) == 2
    assert len(bench.journal.completions) == 2
    assert bench.model.requests[0] == bench.model.requests[1]


async def test_a_call_in_a_broken_stream_is_not_run(bench: Bench) -> None:
    broken = says('{"name": "bash", "arguments": {"command": "ls"}}', finish_reason="cut")
    await bench.run(broken, says("Done."))
    assert bench.ran == []


async def test_a_server_that_always_breaks_off_ends_the_turn(bench: Bench) -> None:
    finished = await bench.run(says("I", finish_reason="cut"))
    assert finished.reason == "backend"
    assert len(bench.model.requests) == 3


async def test_a_backend_that_stays_away_ends_the_turn(bench: Bench) -> None:
    bench.limits = Limits(away_seconds=0.3)
    finished = await bench.run(BackendAway("No model backend is running."))
    assert finished.reason == "backend"
    assert finished.text == "The model server did not come back: No model backend is running."


async def test_a_backend_that_has_failed_ends_it_with_its_reason(bench: Bench) -> None:
    async def failed() -> None:
        raise BackendAway("The model file is damaged.")

    bench.ready = failed
    finished = await bench.run(BackendAway("gone"))
    assert finished.text == "The model server did not come back: The model file is damaged."


async def test_two_identical_errors_change_the_request(bench: Bench) -> None:
    error = refused(500, "Failed to parse input")
    finished = await bench.run(error, error, error, error, says("Fine."))
    assert finished.text == "Fine."
    forms = [(r.tool_choice, bool(r.tools)) for r in bench.model.requests]
    assert forms == [
        ("auto", True),
        ("auto", True),
        ("none", True),
        ("none", True),
        ("none", False),
    ]


async def test_and_never_for_ever(bench: Bench) -> None:
    finished = await bench.run(refused(500, "Failed to parse input"))
    assert finished.reason == "error"
    assert finished.text == "The model server refused the request: Failed to parse input"
    assert len(bench.model.requests) == 6


async def test_a_wrong_key_is_said_at_once(bench: Bench) -> None:
    finished = await bench.run(refused(401, "Invalid API Key"))
    assert finished.text == "The model server refused the request: Invalid API Key"
    assert len(bench.model.requests) == 1


async def test_a_full_window_is_compacted_and_asked_again(bench: Bench) -> None:
    bench.journal.shorter = [System("You help."), User("short")]
    finished = await bench.run(ContextFull("9000 of 8192"), says("Fine."))
    assert finished.text == "Fine."
    assert bench.model.requests[1].messages == (System("You help."), User("short"))


async def test_a_window_that_cannot_be_compacted_is_said(bench: Bench) -> None:
    finished = await bench.run(ContextFull("The conversation needs 9000 tokens."))
    assert (finished.text, finished.reason) == ("The conversation needs 9000 tokens.", "context")
