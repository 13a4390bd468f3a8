"""Several servers of others: the first that answers, the next when it dies, and the plain form."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent.events import Event, ModelFinished, Notice, TextDelta
from agent.llm.openai import OpenAIModel
from agent.llm.queued_model import QueuedModel, backend_queue
from agent.llm.tool_call_parser import KnownTools
from agent.messages import System, User
from agent.model import Completion, Request, TextPiece
from agent.turn.model_caller import ModelCaller
from agent.turn.turn import TurnLimits
from backend.client import BackendUnavailable
from backend.config import BackendConfig
from backend.protocol import (
    CompletionReport,
)
from fakes.cases import cases
from fakes.gguf_chain import make_chain
from fakes.llama_embedded import serve
from fakes.model_scripted import ModelServer, says
from tests.backend.conftest import running

ASKED = Request((System("You are a test."), User("Go on.")), max_tokens=20)
SAID = "All is well."


async def answer(model: OpenAIModel) -> str:
    """The text of one completion."""
    pieces = [piece async for piece in model.stream(ASKED)]
    assert isinstance(pieces[-1], Completion)
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


async def test_the_next_server_takes_over_when_one_dies(state: Path, tmp_path: Path) -> None:
    model_file = make_chain(tmp_path / "m.gguf", SAID)
    async with AsyncExitStack() as dying, serve(model_file) as second:
        first = await dying.enter_async_context(serve(model_file))
        config = BackendConfig(
            state_dir=state,
            kind="external",
            urls=(f"{first.url}/v1", second.url),
            api_key="secret",
        )
        async with running(config) as it, OpenAIModel(it.client.endpoint) as model:
            assert (await it.client.endpoint()).url == first.url
            assert await answer(model) == SAID
            await dying.aclose()
            again = await answer(model)
            status = await it.client.status()
            assert (await it.client.endpoint()).url == second.url
    assert again == SAID
    assert status.backend.state == "ready"
    assert status.backend.reason == f"{first.url} does not answer; {second.url} is used."


async def test_a_box_that_hangs_costs_its_silence_once(state: Path) -> None:
    asked = 0

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await reader.read()  # never answers; ends when the other side hangs up
        writer.close()

    hanging = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{hanging.sockets[0].getsockname()[1]}"
    async with hanging, ModelServer(says("Hello.")) as other:
        config = BackendConfig(
            state_dir=state, kind="external", urls=(url, other.url), connect_seconds=5
        )
        async with running(config) as it:
            found = [(await it.client.endpoint()).url for _ in range(3)]
    assert found == [other.url] * 3
    assert asked == 2  # for its models and its properties, at once


async def asked_of(config: BackendConfig, *reports: CompletionReport) -> list[str]:
    """The server for each request, when `reports` come between them and each asker waits for ready."""
    async with running(config) as it:
        found = [(await it.client.endpoint()).url]
        for report in reports:
            await it.report(report)
            await it.ready()
            found.append((await it.client.endpoint()).url)
    return found


@pytest.mark.parametrize("status", [0, 500], ids=["broken", "error"])
async def test_a_server_whose_completions_fail_is_asked_last(state: Path, status: int) -> None:
    async with ModelServer(says("A.")) as first, ModelServer(says("B.")) as second:
        config = BackendConfig(state_dir=state, kind="external", urls=(first.url, second.url))
        found = await asked_of(
            config, CompletionReport(), CompletionReport(status=status), CompletionReport()
        )
        both = await asked_of(config, *[CompletionReport(status=status)] * 2)
    assert found == [first.url, first.url, second.url, second.url]
    assert both == [first.url, second.url, first.url]


async def test_a_turn_goes_on_at_the_next_server_when_one_dies_in_its_answer(state: Path) -> None:
    wrote, kept = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        wrote.set()
        await kept.wait()

    async with ModelServer(says("All is we", hold=hold)) as dying, ModelServer(says(SAID)) as other:
        config = BackendConfig(state_dir=state, kind="external", urls=(dying.url, other.url))
        async with running(config) as it, OpenAIModel(it.client.endpoint) as model:
            events: list[Event] = []
            queued = QueuedModel(model, backend_queue(it.client), "a")
            caller = ModelCaller(queued, KnownTools.of(()), TurnLimits(), it.ready, events.append)
            answering = asyncio.create_task(caller.complete(ASKED))
            await wrote.wait()
            await dying.__aexit__()
            completion, reader = await answering
    assert (completion.text, reader.visible) == (SAID, SAID)
    assert [type(event) for event in events if not isinstance(event, TextDelta)] == [
        Notice,
        ModelFinished,
    ]
    assert (len(dying.requests), len(other.requests)) == (1, 1)


async def test_the_plain_form_is_enough(state: Path) -> None:
    async with ModelServer(says("Hello.")) as plain:
        config = BackendConfig(state_dir=state, kind="external", urls=(plain.url,), context=4096)
        async with running(config) as it, OpenAIModel(it.client.endpoint) as model:
            endpoint = await it.client.endpoint()
            text = await answer(model)
    assert (endpoint.extras, endpoint.n_ctx, endpoint.model) == (False, 4096, "scripted")
    assert text == "Hello."


@asynccontextmanager
async def answering(status: int) -> AsyncIterator[str]:
    """A server that answers everything with this status; its URL."""

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "no"}}, status=status)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"


async def test_a_key_that_is_refused_is_said(state: Path) -> None:
    async with answering(401) as url:
        config = BackendConfig(state_dir=state, kind="external", urls=(url,), api_key="sk-wrong")
        async with running(config) as it:
            with pytest.raises(BackendUnavailable) as raised:
                await it.ready()
    assert str(raised.value) == f"The model server at {url} refuses the key: check backend.api_key."


async def test_a_server_without_a_list_of_models_serves_the_one_that_is_named(state: Path) -> None:
    async with answering(404) as url:
        config = BackendConfig(state_dir=state, kind="external", urls=(url,), model="qwen")
        async with running(config) as it:
            endpoint = await it.client.endpoint()
    assert (endpoint.model, endpoint.url, endpoint.extras) == ("qwen", url, False)


@asynccontextmanager
async def openai_server(routes: dict[str, Any]) -> AsyncIterator[str]:
    """A server with these GET routes; its URL."""

    async def answer(request: web.Request) -> web.Response:
        found = routes.get(request.path)
        return web.json_response(found, status=404 if found is None else 200)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"


async def test_the_first_external_server_that_answers_is_used(state: Path) -> None:
    models = {"/v1/models": {"data": [{"id": "big", "max_model_len": 65536}]}}
    async with openai_server(models) as url:
        config = BackendConfig(
            state_dir=state, kind="external", urls=("http://127.0.0.1:9", f"{url}/v1"), api_key="k"
        )
        async with running(config) as it:
            await it.ready()
            place, status = await it.client.endpoint(), await it.client.status()
    assert (place.url, place.model, place.n_ctx, place.extras, place.api_key) == (
        url,
        "big",
        65536,
        False,
        "k",
    )
    assert (status.backend.state, status.backend.kind, status.backend.model) == (
        "ready",
        "external",
        "big",
    )


async def test_no_external_server_is_one_sentence_in_time(state: Path) -> None:
    config = BackendConfig(
        state_dir=state, kind="external", urls=("http://127.0.0.1:9",), connect_seconds=1
    )
    async with running(config) as it:
        with pytest.raises(
            BackendUnavailable, match=r"^No model server can be reached at http://127\.0\.0\.1:9\.$"
        ):
            await it.ready(5)
        with pytest.raises(BackendUnavailable):
            await it.client.endpoint()


async def seen(config: BackendConfig, times: int = 1) -> list[bool | None]:
    """What the endpoint says of pictures, first unasked, then asked so often."""
    async with running(config) as it:
        found = [(await it.client.endpoint()).vision]
        for _ in range(times):
            found.append((await it.client.endpoint(vision=True)).vision)
        found.append((await it.client.endpoint()).vision)
    return found


async def test_a_server_that_does_not_say_whether_it_sees_is_tried_once(state: Path) -> None:
    async with ModelServer(says("Grey.")) as other:
        config = BackendConfig(state_dir=state, kind="external", urls=(other.url,))
        assert await seen(config, times=3) == [None, True, True, True, True]
        [request] = other.requests
    [message] = request["messages"]
    assert message["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert request["max_tokens"] == 1


@pytest.mark.parametrize(
    ("status", "vision"), [(400, False), (500, False), (429, None), (401, None), (503, None)]
)
async def test_only_an_answer_to_the_picture_counts(
    state: Path, status: int, vision: bool | None
) -> None:
    tried = 0

    async def refuse(request: web.Request) -> web.Response:
        nonlocal tried
        tried += 1
        return web.json_response({"error": {"message": "no"}}, status=status)

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m"}]})

    app = web.Application()
    app.add_routes([web.get("/v1/models", models), web.post("/v1/chat/completions", refuse)])
    async with TestServer(app) as server:
        url = f"http://127.0.0.1:{server.port}"
        config = BackendConfig(state_dir=state, kind="external", urls=(url,))
        assert await seen(config, times=2) == [None, vision, vision, vision]
    assert tried == (1 if vision is False else 2)


@cases("body", [b"Grey.", b"[" * 100_000, b'{"choices":' * 100_000])
async def test_an_answer_to_the_picture_need_not_be_json(tmp_path: Path, body: bytes) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body if request.method == "POST" else b'{"data": [{"id": "m"}]}')

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(app) as server:
        url = f"http://127.0.0.1:{server.port}"
        state = tmp_path / str(len(body))
        assert await seen(BackendConfig(state_dir=state, kind="external", urls=(url,))) == [
            None,
            True,
            True,
        ]


@pytest.mark.parametrize("configured", [True, False])
async def test_what_is_configured_about_pictures_is_not_tried(
    state: Path, configured: bool
) -> None:
    async with ModelServer(says("Grey.")) as other:
        config = BackendConfig(
            state_dir=state, kind="external", urls=(other.url,), vision=configured
        )
        assert await seen(config) == [configured] * 3
        assert other.requests == []
