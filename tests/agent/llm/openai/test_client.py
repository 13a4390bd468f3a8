"""The model behind an OpenAI-compatible server, as that server's bytes come."""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from agent.errors import BackendAway, ContextFull
from agent.llm.openai import OpenAIModel
from agent.messages import Assistant, System, ToolCall, ToolResult, User
from agent.model import (
    Completion,
    ModelRefused,
    Piece,
    PrefillProgress,
    ReasoningPiece,
    Request,
    TextPiece,
)
from backend.client import BackendUnavailable
from backend.protocol import Endpoint
from fakes.model_scripted import ModelServer, Refusal, refused, says
from fakes.patience import SECONDS

TOOL = {"type": "function", "function": {"name": "bash", "description": "d", "parameters": {}}}
ASKED = Request((System("s"), User("hello é")), (TOOL,), max_tokens=50)


async def pieces_of(server: ModelServer, request: Request = ASKED) -> list[Piece]:
    async with OpenAIModel(server.endpoint) as model:
        return [piece async for piece in model.stream(request)]


def completion(pieces: list[Piece]) -> Completion:
    last = pieces[-1]
    assert isinstance(last, Completion)
    return last


async def raw_completion(*blocks: bytes) -> Completion:
    async with ModelServer(says("", raw=blocks)) as server:
        return completion(await pieces_of(server))


def chunk(delta: dict[str, Any], **more: Any) -> bytes:
    value = {"choices": [{"index": 0, "delta": delta, **more}]}
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


async def test_a_request_in_the_form_of_openai_alone() -> None:
    async with ModelServer(says("Hello")) as server:
        pieces = await pieces_of(server)
    assert [p for p in pieces if isinstance(p, TextPiece)] == [TextPiece("Hel"), TextPiece("lo")]
    last = completion(pieces)
    assert (last.text, last.finish_reason) == ("Hello", "stop")
    assert (last.prompt_tokens, last.cached_tokens, last.completion_tokens) == (100, 80, 10)
    assert last.ttft_ms is not None
    assert server.bodies == [
        '{"model":"scripted","messages":[{"role":"system","content":"s"},'
        '{"role":"user","content":"hello é"}],"tools":[{"type":"function","function":'
        '{"name":"bash","description":"d","parameters":{}}}],"stream":true,'
        '"stream_options":{"include_usage":true},"tool_choice":"auto","max_tokens":50}'.encode()
    ]


async def test_extras_only_where_the_server_has_them() -> None:
    async with ModelServer(says("Hello"), extras=True) as server:
        pieces = await pieces_of(server)
    assert pieces[0] == PrefillProgress(100, 100, 80)
    last = completion(pieces)
    assert (last.prefill_tok_s, last.decode_tok_s) == (1000.0, 50.0)
    [request] = server.requests
    assert request["cache_prompt"] is request["return_progress"] is True


async def test_thinking_has_a_budget_beside_the_answers() -> None:
    async with ModelServer(says("Hello", reasoning="Well."), extras=True) as server:
        plain = await server.endpoint()
        template = {"enable_thinking": False, "x": 1}

        async def endpoint() -> Endpoint:
            return plain.model_copy(update={"template": template})

        async with OpenAIModel(endpoint) as model:
            pieces = [p async for p in model.stream(replace(ASKED, thinking=512))]
            async for _ in model.stream(ASKED):
                pass
    thinking, off = server.requests
    changed = {key: value for key, value in thinking.items() if off.get(key) != value}
    assert changed == {
        "chat_template_kwargs": {"enable_thinking": True, "thinking": True, "x": 1},
        "thinking_budget_tokens": 512,
        "reasoning_budget_tokens": 512,
        "max_tokens": 562,
    }
    assert off["chat_template_kwargs"] == template
    assert set(off) == set(thinking) - {"thinking_budget_tokens", "reasoning_budget_tokens"}
    assert ReasoningPiece("Well.") in pieces


async def test_a_server_without_extras_is_not_told_of_thinking() -> None:
    async with ModelServer(says("Hello")) as server:
        await pieces_of(server, ASKED)
        await pieces_of(server, replace(ASKED, thinking=512))
    assert server.bodies[0] == server.bodies[1]


async def test_sampling_and_template_of_the_profile() -> None:
    async with ModelServer(says("Hello"), extras=True) as server:

        async def endpoint() -> Endpoint:
            plain = await server.endpoint()
            sampling = {"temperature": 0.2, "top_p": 0.9}
            return plain.model_copy(update={"sampling": sampling, "template": {"x": True}})

        async with OpenAIModel(endpoint) as model:
            async for _ in model.stream(Request((User("u"),), sampling={"top_p": 0.5})):
                pass
    [request] = server.requests
    assert (request["temperature"], request["top_p"]) == (0.2, 0.5)
    assert request["chat_template_kwargs"] == {"x": True}


@pytest.mark.parametrize("extras", [False, True])
async def test_a_model_that_does_not_see_is_sent_no_picture(extras: bool) -> None:
    shown = User("u", images=("data:image/png;base64,AA==",) * 2)
    async with ModelServer(says("Hello"), extras=extras) as server:
        server.sees = False
        await pieces_of(server, Request((System("s"), shown)))
    line = "[a picture, which this model cannot see]"
    assert server.requests[0]["messages"][1] == {"role": "user", "content": f"u\n{line}\n{line}"}


async def test_every_kind_of_message_has_one_form() -> None:
    call = ToolCall("c1", "bash", '{"command":  "ls"}')
    messages = (
        System("s"),
        User("u", images=("data:image/png;base64,AA==",)),
        Assistant("text", (call,)),
        ToolResult("c1", "bash", "r"),
        Assistant("visible", raw="visible <|im_end|>"),
        Assistant("", (call,), raw="<tool_call>x</tool_call>"),
        Assistant("text", (call,), words="text\n\n"),
    )
    async with ModelServer(says("Hello")) as server:
        await pieces_of(server, Request(messages))
    function = {"name": "bash", "arguments": '{"command":  "ls"}'}
    wire_call = {"id": "c1", "type": "function", "function": function}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    assert server.requests[0]["messages"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "u"}, image]},
        {"role": "assistant", "content": "text", "tool_calls": [wire_call]},
        {"role": "tool", "tool_call_id": "c1", "name": "bash", "content": "r"},
        {"role": "assistant", "content": "visible"},
        # A call that came as text goes back in the template's own form.
        {"role": "assistant", "content": "", "tool_calls": [wire_call]},
        # One that cannot show what it writes behind words gets them without white space.
        {"role": "assistant", "content": "text", "tool_calls": [wire_call]},
    ]


async def test_each_request_begins_with_the_bytes_of_the_one_before() -> None:
    more = (Assistant("a"), User("next"))
    async with ModelServer(says("a")) as server:
        await pieces_of(server)
        await pieces_of(server, Request((*ASKED.messages, *more), (TOOL,), max_tokens=9))
    first, second = (body.split(b"]", 1)[0] for body in server.bodies)
    assert second.startswith(first)


async def test_bytes_split_anywhere_comments_carriage_returns_and_noise() -> None:
    stream = (
        b": keep-alive\r\n\r\nevent: message\r\nid: 1\r\n"
        + chunk({"content": "h\u00e9 \U0001f600"}).replace(b"\n\n", b"\r\n\r\n")
        + b"data: not json\n\ndata: 5\n\ndata: []\n\nretry: 10\n\n"
        + chunk({"content": "!"}, finish_reason="stop")
        + b"data: [DONE]\n\n"
    )
    last = await raw_completion(*(stream[i : i + 1] for i in range(len(stream))))
    assert (last.text, last.finish_reason) == ("hé \U0001f600!", "stop")


async def test_what_ik_llama_cpp_did_not_read_was_in_its_cache() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 4}
    last = await raw_completion(
        chunk({"content": "a"}, finish_reason="stop"),
        b"data: " + json.dumps({"usage": usage, "timings": {"prompt_n": 1}}).encode() + b"\n\n",
    )
    assert (last.prompt_tokens, last.cached_tokens, last.completion_tokens) == (30, 29, 4)


async def test_an_answer_that_is_not_streamed() -> None:
    whole = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}
    async with ModelServer(says("", whole=whole)) as server:
        last = completion(await pieces_of(server))
    assert (last.text, last.finish_reason) == ("Hi", "stop")


@pytest.mark.parametrize("blocks", [[], [b"data: {"], [chunk({"content": "Hel"})]])
async def test_a_stream_that_ends_without_a_word_is_cut(blocks: list[bytes]) -> None:
    last = await raw_completion(*blocks)
    assert last.finish_reason == "cut"


async def test_a_connection_that_breaks_is_cut() -> None:
    async with ModelServer(says("Hello there", finish_reason="cut")) as server:
        last = completion(await pieces_of(server))
    assert last.finish_reason == "cut"


async def test_an_error_in_the_stream() -> None:
    error = b'data: {"error":{"code":500,"message":"decode failed"}}\n\n'
    async with ModelServer(says("", raw=[chunk({"content": "Hel"}), error])) as server:
        with pytest.raises(ModelRefused, match="decode failed"):
            await pieces_of(server)


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        (
            refused(400, "too long", type="exceed_context_size_error", n_prompt_tokens=9, n_ctx=8),
            ContextFull,
            "The conversation needs 9 tokens and the window holds 8.",
        ),
        (
            Refusal(400, {"message": "maximum context length is 8", "code": "x"}),
            ContextFull,
            "maximum context length is 8",
        ),
        (refused(503, "Loading model"), BackendAway, "Loading model"),
        (refused(429, "slow down"), BackendAway, "slow down"),
        (refused(500, "bad\n  grammar"), ModelRefused, "bad grammar"),
        (
            refused(500, "litellm.InternalServerError: OpenAIException - Connection error."),
            BackendAway,
            "litellm.InternalServerError: OpenAIException - Connection error.",
        ),
        (
            refused(500, "litellm.APIConnectionError: Response payload is not completed"),
            BackendAway,
            "litellm.APIConnectionError: Response payload is not completed",
        ),
        (refused(400, "connection error is no tool"), ModelRefused, "connection error is no tool"),
        (refused(401, "Invalid API Key"), ModelRefused, "Invalid API Key"),
    ],
)
async def test_errors_by_who_must_act(line: Refusal, kind: type[Exception], message: str) -> None:
    async with ModelServer(line) as server:
        with pytest.raises(kind) as raised:
            await pieces_of(server)
    assert str(raised.value) == message


async def test_a_key_that_a_server_repeats_is_not_told() -> None:
    async with ModelServer(refused(401, "Received key sk-secret is wrong")) as server:

        async def endpoint() -> Endpoint:
            return (await server.endpoint()).model_copy(update={"api_key": "sk-secret"})

        with pytest.raises(ModelRefused, match=r"^Received key \[key\] is wrong$"):
            async with OpenAIModel(endpoint) as model:
                async for _ in model.stream(ASKED):
                    pass


async def test_nobody_there() -> None:
    async with ModelServer(says("x")) as server:
        gone = server.endpoint
    with pytest.raises(BackendAway, match=r"^The model server cannot be reached\.$"):
        async with OpenAIModel(gone) as model:
            async for _ in model.stream(ASKED):
                pass


async def test_no_backend_to_ask() -> None:
    async def endpoint() -> Endpoint:
        raise BackendUnavailable("No model backend is running.")

    with pytest.raises(BackendAway, match=r"^No model backend is running\.$"):
        async with OpenAIModel(endpoint) as model:
            await model.window()


async def test_where_the_model_is_is_asked_once_a_moment_and_anew_when_a_call_fails() -> None:
    cut, no = says("x", raw=[b"data: "]), refused(500, "no")
    async with ModelServer(says("x"), cut, no, says("x")) as server:
        asked: list[str] = []

        async def endpoint() -> Endpoint:
            asked.append(server.url)
            return await server.endpoint()

        counts = []
        async with OpenAIModel(endpoint) as model:
            for _ in range(4):
                await model.window()
                with suppress(ModelRefused):
                    async for _ in model.stream(ASKED):
                        pass
                counts.append(len(asked))
    assert counts == [1, 1, 2, 3]


async def test_silence_is_no_sign_of_life() -> None:
    server = ModelServer(says("Hel", hold=asyncio.Event().wait))
    async with server, OpenAIModel(server.endpoint, silence_seconds=1.0) as model:
        pieces = [piece async for piece in model.stream(ASKED)]
    assert completion(pieces).finish_reason == "cut"


async def test_leaving_closes_the_connection_at_once() -> None:
    server = ModelServer(says("Hello", hold=asyncio.Event().wait))
    async with server, OpenAIModel(server.endpoint) as model:
        streaming = asyncio.Event()

        async def listen() -> None:
            async for _ in model.stream(ASKED):
                streaming.set()

        listening = asyncio.create_task(listen())
        await streaming.wait()
        listening.cancel()
        async with asyncio.timeout(SECONDS):
            await server.left.wait()
        await asyncio.wait([listening])


async def test_a_text_without_end_is_cut() -> None:
    last = await raw_completion(*(chunk({"content": "x" * 100_000}) for _ in range(60)))
    assert (last.finish_reason, len(last.text)) == ("cut", 41 * 100_000)


@pytest.mark.parametrize(
    ("url", "least", "most"),
    [("data:image/png;base64," + "A" * 4_000_000, 1_200, 1_300), ("data:audio/wav;base64," + "A" * 1_280_000, 750, 850)],
    ids=["picture", "half-a-minute-of-sound"],
)  # fmt: skip
async def test_a_server_that_does_not_count_is_told_media_by_what_they_show(
    url: str, least: int, most: int
) -> None:
    async with ModelServer(says("x")) as server:
        server.extras = False
        async with OpenAIModel(server.endpoint) as model:
            assert least < await model.count(Request((System("s"), User("see", (url,))))) < most
