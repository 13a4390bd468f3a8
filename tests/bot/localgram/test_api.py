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
    async with raw.http.post(f"{raw.url}/api/chats/{path}", json=body) as response:
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
    assert ([chat["id"] for chat in home["chats"]], home["me"]["id"]) == ([5], 5)
    async with raw.http.get(f"{raw.url}/api/events?after={home['event']}") as stream:
        said = await post(raw, "5/send", text="hi")
        assert await happened(stream) == {"chat": 5, "event": "posted", "message": said}
        await raw.ok("sendMessage", chat_id=6, text="not for Alice")
        await raw.ok("sendMessage", chat_id=5, text="may I?", reply_markup=KEYS)
        asked = await happened(stream)
        assert asked["message"]["text"] == "may I?"
        press = {"message": asked["message"]["message_id"], "row": 0, "column": 0}
        query = (await post(raw, "5/press", **press))["query"]
        await raw.ok("answerCallbackQuery", callback_query_id=query, text="ok", show_alert=True)
        answer = {"query": query, "text": "ok", "alert": True, "url": ""}
        assert await happened(stream) == {"chat": 5, "event": "answered", **answer}
        await post(raw, "5/react", message=said["message_id"], emoji="🔥")
        reacted = await happened(stream)
        assert (reacted["event"], reacted["message"]["reactions"]) == (
            "edited",
            [{"emoji": "🔥", "mine": True}],
        )
    history = await get(raw, "chats/5")
    assert [message["text"] for message in history["messages"]] == ["hi", "may I?"]


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


async def test_files_and_topics_over_http(raw: Raw, gram: Localgram, alice: Person) -> None:
    forum = gram.group("Lab", alice, forum=True, admin=True)
    topic = await post(raw, f"{forum.id}/topics", name="Cluster")
    form = aiohttp.FormData({"kind": "photo", "caption": "c"})
    form.add_field("thread", str(topic["message_thread_id"]))
    form.add_field("file", png(), filename="x.png", content_type="image/png")
    async with raw.http.post(f"{raw.url}/api/chats/{forum.id}/upload", data=form) as response:
        shown = await response.json()
    assert (shown["caption"], shown["photo"][0]["width"]) == ("c", 4)
    assert shown["message_thread_id"] == topic["message_thread_id"]
    form = aiohttp.FormData({"kind": "photo"})
    form.add_field("file", b"no picture", filename="x.png", content_type="image/png")
    async with raw.http.post(f"{raw.url}/api/chats/5/upload", data=form) as response:
        assert (await response.json())["document"]["file_name"] == "x.png"


async def test_blocking_over_http(raw: Raw, alice: Person) -> None:
    await post(raw, "5/block", blocked=True)
    assert await raw.refusal("sendMessage", chat_id=5, text="x") == (
        "Forbidden: bot was blocked by the user"
    )
    await post(raw, "5/block", blocked=False)
    await raw.ok("sendMessage", chat_id=5, text="x")
