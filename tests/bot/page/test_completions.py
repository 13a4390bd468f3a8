"""Programs that talk to the agent in OpenAI's form: the official client, curl, and requests as Home Assistant and
Open WebUI send them."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk, ChatCompletionUserMessageParam

from agent.events import Event, TextDelta, TurnFinished
from backend.server.launch import free_port
from bot.page.completions import Asked, Completion, Refused, arriving, not_shown
from fakes.patience import soon
from tests.bot.cli.test_holder import House, house, words_of
from tests.bot.cli.test_send import curl

from .test_beside_bot import until_served

__all__ = ["house"]
KEY, OTHER = "a-key-of-thirty-characters-ha.", "a-key-of-thirty-characters-ui."
QUESTION: ChatCompletionUserMessageParam = {"role": "user", "content": "six times seven"}
SLOW: ChatCompletionUserMessageParam = {"role": "user", "content": "a slow one"}


def said(words: str) -> list[ChatCompletionUserMessageParam]:
    return [{"role": "user", "content": words}]


@pytest.fixture
async def address(house: House, tmp_path: Path) -> str:
    """Where the bot serves two clients, once it runs."""
    listen = f"127.0.0.1:{free_port()}"
    house.bot.configure(PAGE__LISTEN=listen)
    for name, key in (("voice", KEY), ("webui", OTHER)):
        file = tmp_path / f"{name}.key"
        file.write_text(f"{key}\n")
        file.chmod(0o600)
        house.bot.configure(**{f"PAGE__CLIENTS__{name}__KEY_FILE": str(file)})
    return f"http://{listen}/v1"


@pytest.fixture
async def client(address: str) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=address, api_key=KEY, max_retries=0) as client:
        yield client


async def serving(house: House, client: AsyncOpenAI) -> None:
    await house.listening()

    async def listed() -> bool:
        try:
            listed = [model async for model in client.models.list()]
            return listed == [await client.models.retrieve("voltaire")]
        except openai.APIConnectionError:
            return False

    while not await listed():
        await asyncio.sleep(0.05)


async def test_the_official_client_whole_and_streamed(house: House, client: AsyncOpenAI) -> None:
    async with house.bot.running():
        await serving(house, client)
        create = client.chat.completions.create
        whole = await create(model="voltaire", messages=[QUESTION])
        [choice] = whole.choices
        assert (choice.message.role, choice.message.content) == ("assistant", "Forty-two.")
        assert (choice.finish_reason, whole.object) == ("stop", "chat.completion")
        usage = whole.usage
        assert usage and usage.prompt_tokens_details
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (100, 10, 110)
        assert usage.prompt_tokens_details.cached_tokens == 80

        options: Any = {"include_usage": True}
        stream = await create(
            model="gpt-4o", messages=said("again"), stream=True, stream_options=options
        )
        chunks: list[ChatCompletionChunk] = [chunk async for chunk in stream]
        *worded, last = chunks
        assert last.choices == [] and last.usage and last.usage.total_tokens == 110
        deltas = [chunk.choices[0].delta for chunk in worded]
        assert (deltas[0].role, {chunk.id for chunk in chunks}) == ("assistant", {last.id})
        assert "".join(delta.content or "" for delta in deltas) == "Forty-two."
        assert len([delta for delta in deltas if delta.content]) > 2, "word by word"
        assert [chunk.choices[0].finish_reason for chunk in worded[-2:]] == [None, "stop"]
        assert {chunk.model for chunk in chunks} == {"gpt-4o"}
    assert house.rows("SELECT DISTINCT chat, source FROM inbox") == [("api:voice", "cli")]
    assert house.rows("SELECT DISTINCT facts ->> 'by' FROM ledger WHERE kind = 'message'") == [
        ("client voice",)
    ]
    assert KEY not in house.bot.log and "six times" not in house.bot.log


async def test_errors_have_openais_form_and_a_sentence(
    house: House, client: AsyncOpenAI, address: str
) -> None:
    async with house.bot.running():
        await serving(house, client)
        create = client.chat.completions.create
        with pytest.raises(openai.AuthenticationError, match="That is no key of a client") as wrong:
            await client.with_options(api_key="nonsense").models.list()
        assert wrong.value.code == "invalid_api_key"
        picture: Any = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
        assistant: Any = [QUESTION, {"role": "assistant", "content": "Forty"}]
        cases: list[tuple[Any, str]] = [
            ([{"role": "user", "content": picture}], "part of type image_url: only text"),
            (assistant, "The last message is not the user's"),
            ([{"role": "user", "content": "  "}], "last message is empty"),
            ([{"role": "system", "content": "x"}], "The last message is not the user's"),
            (
                [{"role": "user", "content": [{"type": "text", "text": None}]}],
                "0.text: Input should be",
            ),
        ]
        for messages, why in cases:
            with pytest.raises(openai.BadRequestError, match=why) as refused:
                await create(model="voltaire", messages=messages)
            assert refused.value.type == "invalid_request_error"
        with pytest.raises(openai.BadRequestError, match="messages: Field required"):
            await client.post("/chat/completions", body={}, cast_to=object)
        with pytest.raises(openai.NotFoundError, match="There is no POST /v1/embeddings here"):
            await client.embeddings.create(model="voltaire", input="x")
        bearer = ("-H", f"Authorization: Bearer {KEY}")
        status, body = await curl(*bearer, f"{address}/chat/completions", stdin=b" " * (33 << 20))
        assert (status, json.loads(body)["error"]["type"]) == ("413", "invalid_request_error")
        status, body = await curl(f"{address}/models", "-X", "GET")
        assert (status, json.loads(body)["error"]["code"]) == ("401", "invalid_api_key")
    assert house.rows("SELECT 1 FROM inbox") == []


async def test_what_asks_is_asked_in_the_owners_messenger(
    house: House, client: AsyncOpenAI
) -> None:
    async with house.bot.running():
        await serving(house, client)
        await house.owner.ask("hello")
        create = client.chat.completions.create
        stream = await create(model="v", messages=said("drink daily"), stream=True)
        question = await house.owner.next_message(where=lambda m: m.keyboard)
        await house.owner.press(question, "Allow once")
        deltas = [chunk.choices[0].delta.model_dump() async for chunk in stream]
        text = "".join(delta["content"] or "" for delta in deltas)
        thoughts = "".join(delta.get("reasoning_content") or "" for delta in deltas)
    assert "Forty-two." in text and "→ schedule {" in thoughts and "schedule" not in text
    assert house.rows("SELECT chat FROM jobs") == [("api:voice",)]


async def test_one_chat_in_order_and_chats_apart(house: House, client: AsyncOpenAI) -> None:
    async with house.bot.running():
        await serving(house, client)
        create = client.chat.completions.create
        slow = asyncio.create_task(create(model="v", messages=[SLOW]))
        await house.asked.wait()
        queued = asyncio.create_task(create(model="v", messages=[QUESTION]))
        await house.bot.row("SELECT 1 FROM inbox WHERE words = 'six times seven'")
        elsewhere = create(model="v", messages=said("b"), extra_headers={"X-Voltaire-Chat": "den"})
        other = client.with_options(api_key=OTHER).chat.completions.create
        apart = [
            asyncio.create_task(each) for each in (elsewhere, other(model="v", messages=said("c")))
        ]
        await house.bot.row("SELECT 1 FROM inbox WHERE words = 'b'")
        await house.bot.row("SELECT 1 FROM turns WHERE chat = 'api:webui'")
        assert house.rows("SELECT count(*) FROM turns WHERE chat = 'api:voice'") == [(1,)]
        house.let_go.set()
        answers = [each.choices[0].message.content for each in await asyncio.gather(slow, queued)]
        assert answers == ["At last.", "Forty-two."]
        await asyncio.gather(*apart)
    chats = "SELECT DISTINCT chat FROM turns ORDER BY chat"
    assert house.rows(chats) == [("api:voice",), ("api:voice:den",), ("api:webui",)]


async def test_killed_in_a_turn_it_answers_whoever_comes_again(
    house: House, client: AsyncOpenAI
) -> None:
    create, key = client.chat.completions.create, {"Idempotency-Key": "k1"}
    async with house.bot.running():
        await serving(house, client)
        asking = asyncio.create_task(create(model="v", messages=[SLOW], extra_headers=key))
        await house.asked.wait()
        await house.bot.kill()
        with pytest.raises(openai.APIConnectionError):
            await asking
    house.let_go.set()
    async with house.bot.running():
        await serving(house, client)
        both = [create(model="v", messages=[SLOW], extra_headers=key) for _ in range(2)]
        first, second = await asyncio.gather(*both)
        third = await create(model="v", messages=[SLOW], extra_headers=key)
        found = {(each.id, each.choices[0].message.content) for each in (first, second, third)}
        assert found == {(first.id, "At last.")}
        other = await create(model="v", messages=[QUESTION], extra_headers=key)
        assert other.choices[0].message.content == "Forty-two.", "other words are another message"
    assert house.rows("SELECT words, count(*) FROM inbox GROUP BY words ORDER BY words") == [
        ("a slow one", 1),
        ("six times seven", 1),
    ]


async def test_a_client_that_goes_away_stops_its_turn_unless_it_can_come_again(
    house: House, client: AsyncOpenAI
) -> None:
    key, den = {"Idempotency-Key": "k2"}, {"X-Voltaire-Chat": "den"}
    async with house.bot.running():
        await serving(house, client)
        create = client.chat.completions.create
        keyed = asyncio.create_task(create(model="v", messages=[SLOW], extra_headers=key))
        await house.asked.wait()
        other = asyncio.create_task(create(model="v", messages=[SLOW], extra_headers=den))
        await house.bot.row("SELECT 1 FROM turns WHERE chat = 'api:voice:den'")
        keyed.cancel()
        other.cancel()
        await asyncio.wait([keyed, other])
        await house.bot.row("SELECT 1 FROM turns WHERE reason = 'cancelled'")
        again = asyncio.create_task(create(model="v", messages=[SLOW], extra_headers=key))
        house.let_go.set()
        assert (await again).choices[0].message.content == "At last."
    assert house.rows("SELECT chat, reason FROM turns ORDER BY chat") == [
        ("api:voice", "done"),
        ("api:voice:den", "cancelled"),
    ]


async def test_a_client_that_goes_away_as_an_event_comes_is_seen_to_go() -> None:
    events: asyncio.Queue[Event | Refused] = asyncio.Queue()
    request = asyncio.ensure_future(anext(arriving(events)))
    await asyncio.sleep(0)  # to its first wait
    events.put_nowait(TextDelta("a word"))
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request


async def test_the_forms_of_home_assistant_and_open_webui(house: House, address: str) -> None:
    """As Extended OpenAI Conversation, Local OpenAI LLM and Local LLM Conversation send them from Home Assistant, and
    Open WebUI's router."""
    system = {"role": "system", "content": "You are a voice assistant. light.kitchen: on"}
    listed = [{"role": "system", "content": [{"type": "text", "text": "light.kitchen: on"}]}]
    tool = {
        "type": "function",
        "function": {"name": "HassTurnOn", "parameters": {"type": "object"}},
    }
    tools = {"tools": [tool], "tool_choice": "auto", "stream": True}
    options = {"stream_options": {"include_usage": True}}
    history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello."}]
    called = [
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "HassTurnOn", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": {"success": True}},
        {"role": "assistant", "content": [{"type": "text", "text": None}]},
    ]  # fmt: skip
    injected = {"role": "user", "content": "# Contextual information\n\nIt is `3:07 PM`."}
    said = [{"role": "user", "content": [{"type": "text", "text": "and now?"}]}]
    bodies: list[dict[str, Any]] = [
        {"messages": [system, *history, *called, {"role": "user", "content": "off with it"}], "max_tokens": 150,
         "top_p": 1, "temperature": 0.5, "user": "01HZY", **tools, **options},
        {"messages": [system, *history, injected, {"role": "user", "content": "and now?"}], "temperature": 0.6,
         "parallel_tool_calls": True, "user": "01HZY", "tools": [tool], "stream": True},
        {"messages": [*listed, *said], "temperature": 0.1, "top_p": 1, **tools},
        {"messages": [{"role": "developer", "content": "Be brief."}, *history, *said], "metadata": None, **tools, **options},
    ]  # fmt: skip
    async with house.bot.running(), aiohttp.ClientSession() as http:
        await until_served(http, address.removesuffix("/v1"))
        await house.listening()
        for body in bodies:
            async with http.post(
                f"{address}/chat/completions",
                json={"model": "voltaire", **body},
                headers={"Authorization": f"Bearer {OTHER}", "X-Voltaire-Chat": "9f1c"},
            ) as answer:
                assert (answer.status, answer.content_type) == (200, "text/event-stream")
                lines = [line.decode().strip() async for line in answer.content]
            *chunks, last = [line.removeprefix("data: ") for line in lines if line]
            assert last == "[DONE]"
            choices = [choice for chunk in chunks for choice in json.loads(chunk)["choices"]]
            assert "".join(each["delta"].get("content", "") for each in choices) == "Forty-two."
            asked = str(house.model.requests[-1])
            assert words_of(house.model.requests[-1]).splitlines()[-1] in (
                "off with it",
                "and now?",
            )
            assert not [
                word for word in ("light.kitchen", "HassTurnOn", "3:07 PM") if word in asked
            ]


async def test_what_open_webui_asks_behind_a_chat_is_no_turn(
    house: House, client: AsyncOpenAI
) -> None:
    """Its title, tags and follow-up questions: without them it takes the first message for a title."""
    ask = '### Task:\nGenerate a concise title.\n### Output:\nJSON format: { "title": "..." }\n### Chat History:\n'
    chores = [
        f"{ask}<chat_history>\nUSER: hi\n</chat_history>{end}"
        for end in ("", "\n<type>General</type>")
    ]
    cited = "### Task:\nRespond with citations.\n<context>\n</context>\nsix times seven"
    async with house.bot.running():
        await serving(house, client)
        create = client.chat.completions.create
        for words in chores:
            answer = await create(model="v", messages=said(words), max_completion_tokens=1000)
            assert answer.choices[0].message.content == "{}"
        assert house.model.requests == [] and house.rows("SELECT 1 FROM inbox") == []
        answer = await create(model="v", messages=said(cited))
        assert answer.choices[0].message.content == "Forty-two."


async def test_every_line_of_a_slow_answer_is_an_event() -> None:
    """Local LLM Conversation takes a comment for JSON."""

    async def events() -> AsyncIterator[Event | None]:
        for event in (None, TextDelta("At"), None, TextDelta(" last."), None):
            yield event
        yield TurnFinished("At last.", "done", 0)

    async def serve(request: web.Request) -> web.StreamResponse:
        asked = Asked.model_validate({"messages": [SLOW], "stream": None})
        return await Completion(asked, "id", events()).streamed(request)

    app = web.Application()
    app.add_routes([web.get("/", serve)])
    async with (
        TestServer(app) as server,
        aiohttp.ClientSession() as http,
        http.get(server.make_url("/")) as answer,
    ):
        lines = [line.decode().strip() async for line in answer.content]
    *chunks, last = [line.removeprefix("data: ") for line in lines if line]
    deltas = [json.loads(chunk)["choices"][0]["delta"] for chunk in chunks]
    assert (last, len(deltas)) == ("[DONE]", 7)
    assert "".join(delta.get("content", "") for delta in deltas) == "At last."


async def test_a_client_may_speak_in_its_owners_chat(house: House, client: AsyncOpenAI) -> None:
    house.bot.configure(PAGE__CLIENTS__VOICE__CHAT="tg:111")
    async with house.bot.running():
        await serving(house, client)
        await house.owner.ask("hello")
        answer = await client.chat.completions.create(
            model="v", messages=[QUESTION], extra_headers={"X-Voltaire-Chat": "x"}
        )
        assert answer.choices[0].message.content == "Forty-two."
        before = "hello" in str(house.model.requests[-1]["messages"])
        await soon(lambda: True)
    assert before, "it is the same conversation"
    assert house.rows("SELECT DISTINCT chat FROM turns") == [("tg:111",)]
    assert len([m for m in house.owner.messages() if m.sender.is_bot]) == 1


@pytest.mark.parametrize(
    ("text", "shown", "rest"),
    [
        ("All of it.", "", "All of it."),
        ("All of it.", "All of", " it."),
        ("All of it.", "All of it.", ""),
        ("Frozen.\n\nAll of it.", "All of it.", "\n\nFrozen."),
        ("Another.", "A preview.", "\n\nAnother."),
    ],
)
def test_what_of_an_answer_is_still_to_come(text: str, shown: str, rest: str) -> None:
    assert not_shown(text, shown) == rest
