"""Another program acts as a person, through what the page uses."""

import asyncio
import json
from typing import Any

import aiohttp

from bot.localgram import Localgram, Person
from fakes.patience import SECONDS

from .conftest import Raw, png

KEYS = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}


async def get(raw: Raw, path: str) -> Any:
    async with raw.http.get(f"{raw.url}/api/{path}") as response:
        assert response.status == 200
        return await response.json()


async def post(raw: Raw, path: str, **body: object) -> Any:
    async with raw.http.post(f"{raw.url}/api/{path}", json=body) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def happened(stream: aiohttp.ClientResponse) -> Any:
    """The next event of a stream."""
    async with asyncio.timeout(SECONDS):
        async for line in stream.content:
            if line.startswith(b"data: "):
                return json.loads(line.removeprefix(b"data: "))
    raise AssertionError("the stream ended")


async def test_a_conversation_over_http(raw: Raw, gram: Localgram, alice: Person) -> None:
    gram.user("Bob", id=6, started=True)
    home = await get(raw, "home")
    assert home["me"]["id"] == 5
    async with raw.http.get(f"{raw.url}/api/events?after={home['event']}") as stream:
        said = await post(raw, "send", text="hi")
        assert await happened(stream) == {"event": "posted", "message": said}
        await raw.ok("sendMessage", chat_id=6, text="not for Alice")
        await raw.ok("sendMessage", chat_id=5, text="may I?", reply_markup=KEYS)
        asked = await happened(stream)
        assert asked["message"]["text"] == "may I?"
        press = {"message": asked["message"]["message_id"], "row": 0, "column": 0}
        query = (await post(raw, "press", **press))["query"]
        await raw.ok("answerCallbackQuery", callback_query_id=query, text="ok", show_alert=True)
        answer = {"query": query, "text": "ok", "alert": True, "url": ""}
        assert await happened(stream) == {"event": "answered", **answer}
        await post(raw, "react", message=said["message_id"], emoji="🔥")
        reacted = await happened(stream)
        assert (reacted["event"], reacted["message"]["reactions"]) == (
            "edited",
            [{"emoji": "🔥", "mine": True}],
        )
    home = await get(raw, "home")
    assert [message["text"] for message in home["messages"]] == ["hi", "may I?"]


async def test_events_that_were_missed_are_told(raw: Raw, alice: Person) -> None:
    home = await get(raw, "home")
    await alice.send("one")
    await alice.send("two")
    after = f"{raw.url}/api/events?feed={home['feed']}&after={home['event']}"
    async with raw.http.get(after) as stream:
        told = [(await happened(stream))["message"]["text"] for _ in range(2)]
    assert told == ["one", "two"]
    number = {"Last-Event-ID": str(home["event"] + 1)}
    async with raw.http.get(after, headers=number) as stream:
        assert (await happened(stream))["message"]["text"] == "two"
    for lost in (f"after={home['event']}&feed=other", "after=99"):
        async with raw.http.get(f"{raw.url}/api/events?{lost}") as stream:
            assert await happened(stream) == {"event": "lost"}


async def test_files_over_http(raw: Raw, alice: Person) -> None:
    for content, kind in ((png(), "photo"), (b"no picture", "document")):
        form = aiohttp.FormData({"kind": "photo", "caption": "c"})
        form.add_field("file", content, filename="x.png", content_type="image/png")
        async with raw.http.post(f"{raw.url}/api/upload", data=form) as response:
            shown = await response.json()
        assert shown["caption"] == "c" and kind in shown


async def test_blocking_over_http(raw: Raw, alice: Person) -> None:
    await post(raw, "block", blocked=True)
    assert await raw.refusal("sendMessage", chat_id=5, text="x") == (
        "Forbidden: bot was blocked by the user"
    )
    await post(raw, "block", blocked=False)
    await raw.ok("sendMessage", chat_id=5, text="x")
