"""Everything that goes wrong with a model server, against a stand-in that does it on demand."""

import asyncio
import os
import re
import signal
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from agent.events import Event, ModelFinished, ModelProgress, Notice, TextDelta
from agent.llm.openai import OpenAIModel
from agent.llm.queued_model import QueuedModel, backend_queue
from agent.llm.tool_call_parser import KnownTools
from agent.messages import System, User
from agent.model import Request
from agent.turn.model_caller import ModelCaller
from agent.turn.turn import TurnLimits
from backend import proc
from backend.client import BackendUnavailable
from backend.config import BackendConfig
from backend.server.launch import free_port
from fakes import llama_server
from fakes.words import saying
from tests.backend.conftest import QUICK, SYSTEM, running, with_server


def stand_in(
    config: BackendConfig,
    plan: list[str],
    *,
    gpu: bool = False,
    engine: str = "llama.cpp",
    prefill: float = 100000,
    silent: float = 3.0,
) -> BackendConfig:
    """The same backend on the stand-in, with a profile of its own."""
    folder = config.state_dir / "fake"
    program = llama_server.install(folder, plan, silent)
    llama_server.profile(folder, gpu=gpu, engine=engine, prefill=prefill)
    return with_server(config, program, profile="fake", profiles=folder)


async def test_a_turn_outlives_a_hang_that_ignores_sigterm_while_health_is_green(
    config: BackendConfig,
) -> None:
    async with running(stand_in(config, ["stall", ""])) as it:
        answer = await it.ask("a", "hello")
        status = (await it.client.status()).backend
    assert answer["predicted_n"] == 20
    assert status.restarts == 1
    assert status.last_restart is not None
    sentence = r"The model server hung: no token and no progress for \d+ s\."
    assert re.match(sentence, status.last_restart.cause)


async def test_a_request_of_another_program_that_hangs_is_ended_when_a_chat_comes(
    config: BackendConfig,
) -> None:
    port = free_port()
    faulty = replace(stand_in(config, ["stall", ""]), proxy_port=port, proxy_key="sesame")
    url, key = f"http://127.0.0.1:{port}/v1/chat/completions", {"Authorization": "Bearer sesame"}
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    async with running(faulty) as it, aiohttp.ClientSession() as session:
        await it.ready()
        async with session.post(url, json=body, headers=key) as answer:
            await answer.content.readline()
            await asyncio.sleep(2 * QUICK.stall)  # in which nothing must happen
            hung = (await it.client.status()).backend
            served = await it.ask("a", "hello")
        after = (await it.client.status()).backend
    assert (hung.restarts, after.restarts, served["predicted_n"]) == (0, 1, 20)


async def test_a_stopped_server_goes_on_where_it_stood(config: BackendConfig) -> None:
    async with running(stand_in(config, [""])) as it:
        await it.ready()
        pid = (await it.client.status()).backend.pid
        assert pid
        os.kill(pid, signal.SIGSTOP)
        answer = await it.ask("a", "hello")
        status = (await it.client.status()).backend
    assert answer["predicted_n"] == 20
    assert (status.pid, status.restarts) == (pid, 0)


async def test_the_agent_goes_on_with_its_tools_after_a_streak_of_errors(
    config: BackendConfig,
) -> None:
    """It asks in every form, all refused; the watch restarts the server, and it asks anew."""
    events: list[Event] = []
    tool = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
    request = Request((System("You are a test."), User("Go on.")), (tool,), max_tokens=20)
    async with (
        running(stand_in(config, ["errors", ""])) as it,
        OpenAIModel(it.client.endpoint) as model,
    ):
        await it.ready()
        queued = QueuedModel(model, backend_queue(it.client), "a")
        caller = ModelCaller(queued, KnownTools.of((tool,)), TurnLimits(), it.ready, events.append)
        completion, _ = await caller.complete(request)
        status = (await it.client.status()).backend
    assert completion.text == "fine " * 20
    assert [type(event) for event in events if not isinstance(event, TextDelta)] == [
        Notice,
        ModelProgress,
        ModelFinished,
    ]
    assert status.last_restart
    assert status.last_restart.cause == saying("in a row", "error")


async def test_a_crash_in_the_middle_of_an_answer(config: BackendConfig) -> None:
    async with running(stand_in(config, ["dies", ""])) as it:
        answer = await it.ask("a", "hello")
        status = (await it.client.status()).backend
    assert answer["predicted_n"] == 20
    assert status.last_restart is not None
    assert status.last_restart.cause == saying("killed by someone")


@pytest.mark.parametrize(("says", "window"), [(6144, 6144), (0, 8192)], ids=["less", "none"])
async def test_the_window_is_what_the_server_says_or_else_the_profile(
    config: BackendConfig, says: int, window: int
) -> None:
    async with running(stand_in(config, [f"window {says}"])) as it:
        await it.ready()
        status, endpoint = (await it.client.status()).backend, await it.client.endpoint()
    assert (status.n_ctx, endpoint.n_ctx) == (window, window)


async def test_out_of_memory_steps_down_where_most_is_won_and_says_so(
    config: BackendConfig,
) -> None:
    async with running(stand_in(config, ["oom load", "oom use", ""], gpu=True)) as it:
        await it.ask("a", "hello")
        status = (await it.client.status()).backend
        alerts = [alert.text for alert in it.backend.state.alerts.kept if alert.name == "memory"]
        await it.client.restart()
        full = await it.until(
            lambda status: status.backend.restarts == 3 and status.backend.serving
        )
    assert status.less_memory == ["a window of 6,144 tokens", "a window of 4,608 tokens"]
    assert alerts == [
        saying("out of memory", "6,144 tokens"),
        saying("out of memory", "4,608 tokens"),
    ]
    assert status.n_ctx == 4608
    assert full.backend.less_memory == []
    assert full.backend.n_ctx == 8192


async def test_a_server_that_loads_for_ever_is_started_again(config: BackendConfig) -> None:
    hasty = replace(QUICK, load_stall=1.0)
    async with running(stand_in(config, ["load for ever", ""]), hasty) as it:
        # On a busy machine the next start may seem to load for ever, too.
        status = (await it.until(lambda status: status.backend.state == "ready")).backend
    assert status.last_restart is not None
    assert status.last_restart.cause == saying("did not finish loading")


async def test_a_server_that_still_loads_is_given_to_nobody(config: BackendConfig) -> None:
    async with running(stand_in(config, ["load for ever"])) as it:
        await it.until(lambda status: status.backend.state == "loading")
        assert it.backend.state.status.current.pid
        with pytest.raises(BackendUnavailable, match=r"^The model server is loading\.$"):
            await it.client.endpoint()


async def test_a_server_for_which_the_driver_compiles_is_left_alone(config: BackendConfig) -> None:
    compiling = stand_in(config, ["compiles"], prefill=1000, silent=2 * QUICK.stall)
    async with running(compiling) as it:
        told = await it.until(lambda status: status.backend.reason is not None)
        assert told.backend.state == "loading"
        assert told.backend.reason == "The driver compiles the model server for this card. It takes minutes, once."  # fmt: skip
        answer = await it.ask("a", "hello")
        status = (await it.client.status()).backend
    assert (answer["predicted_n"], status.restarts, status.reason) == (20, 0, None)
    assert (config.state_dir / "cuda" / "compiled").exists()


async def test_it_came_up_on_the_processor(config: BackendConfig) -> None:
    async with running(stand_in(config, ["cpu"], gpu=True)) as it:
        await it.ready()
        status = (await it.client.status()).backend
        names = [alert.name for alert in it.backend.state.alerts.kept]
    assert status.restarts == 1
    assert status.reason == saying("processor", "slower")
    assert "cpu fallback" in names


async def test_a_missing_model_fails_at_once(config: BackendConfig) -> None:
    async with running(replace(config, model="/nowhere/model.gguf")) as it:
        with pytest.raises(
            BackendUnavailable, match=r"^The model file is missing: /nowhere/model\.gguf\.$"
        ):
            await it.ready()


async def test_a_model_that_is_not_downloaded_says_how_to_get_it(
    config: BackendConfig,
) -> None:
    async with running(replace(config, profile="qwen2.5-3b", model="")) as it:
        with pytest.raises(BackendUnavailable) as raised:
            await it.ready()
    path = config.state_dir / "models" / "qwen2.5-3b-instruct-q4_k_m.gguf"
    assert str(raised.value) == saying("missing", str(path), "voltaire model pull qwen2.5-3b")


async def test_a_damaged_model_fails_at_once(config: BackendConfig, state: Path) -> None:
    damaged = state / "damaged.gguf"
    damaged.write_bytes(b"GGUF" + b"\0" * 40)
    async with running(replace(config, model=str(damaged))) as it:
        with pytest.raises(BackendUnavailable, match="damaged"):
            await it.ready()


async def test_a_flag_that_the_binary_lacks_is_named_and_left_out(config: BackendConfig) -> None:
    async with running(stand_in(config, [""])) as it:
        await it.ready()
        texts = [alert.text for alert in it.backend.state.alerts.kept]
    assert texts == [saying("--unheard-of", "left out")]


async def test_a_server_that_cannot_be_noted_serves_all_the_same(config: BackendConfig) -> None:
    record = config.state_dir / "run" / "server.json"
    record.mkdir(parents=True)  # stands for a disk without state
    async with running(stand_in(config, [""])) as it:
        await it.ready()
        assert it.backend.state.status.current.restarts == 0


async def test_nothing_is_left_when_it_ends(config: BackendConfig) -> None:
    async with running(config) as it:
        await it.ready()
        pid = (await it.client.status()).backend.pid
        assert pid
    assert proc.started(pid) is None
    assert not (config.state_dir / "run" / "server.json").exists()
    assert not (config.state_dir / "run" / "backend.sock").exists()


async def test_the_first_turn_after_a_kill_is_warm(config: BackendConfig) -> None:
    async with running(config) as it:
        await it.client.warm([{"role": "system", "content": SYSTEM}])
        await it.until(lambda status: status.backend.warm is not None and status.backend.serving)
        pid = (await it.client.status()).backend.pid
        assert pid
        os.kill(pid, signal.SIGKILL)
        await it.until(lambda status: status.backend.restarts == 1 and status.backend.serving)
        warm = (await it.client.status()).backend.warm
        answer = await it.ask("a", "hello")
    assert warm is not None
    assert warm.cached_tokens == warm.tokens > 400
    assert answer["cache_n"] == warm.tokens
