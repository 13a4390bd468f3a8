"""What the page uses: the chat as a stream, and what the person does in it."""

import asyncio
import json
from dataclasses import replace
from typing import Any, cast

import aiohttp

from bot.localgram import Localgram, Person
from fakes.patience import SECONDS

from .conftest import Raw, png

KEYS = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}


async def post(raw: Raw, path: str, **body: object) -> Any:
    async with raw.http.post(f"{raw.url}/api/{path}", json=body) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def shown(stream: aiohttp.ClientResponse) -> Any:
    """The chat as the stream tells it next."""
    async with asyncio.timeout(SECONDS):
        async for line in stream.content:
            if line.startswith(b"data: "):
                return json.loads(line.removeprefix(b"data: "))
    raise AssertionError("the stream ended")


async def test_a_conversation_over_http(raw: Raw, gram: Localgram, alice: Person) -> None:
    gram.user("Bob", id=6, started=True)
    async with raw.http.get(f"{raw.url}/api/events") as stream:
        assert (await shown(stream))["messages"] == []
        await post(raw, "send", text="hi")
        (said,) = (await shown(stream))["messages"]
        assert (said["text"], said["out"]) == ("hi", True)
        await raw.ok("sendMessage", chat_id=6, text="not for Alice")
        await raw.ok("sendMessage", chat_id=5, text="may I?", reply_markup=KEYS)
        asked = (await shown(stream))["messages"][-1]
        assert asked["text"] == "may I?"
        place = {"message": asked["message_id"], "row": 0, "column": 0}
        (first,) = cast(list[Any], await raw.ok("getUpdates"))
        pressing = asyncio.create_task(post(raw, "press", **place))
        updates: Any = await raw.ok("getUpdates", timeout=50, offset=first["update_id"] + 1)
        query = updates[0]["callback_query"]["id"]
        await raw.ok("answerCallbackQuery", callback_query_id=query, text="ok", show_alert=True)
        assert await pressing == {"text": "ok", "alert": True, "url": ""}


async def test_what_goes_on_is_shown_until_its_time_is_over(raw: Raw, alice: Person) -> None:
    async with raw.http.get(f"{raw.url}/api/events") as stream:
        await shown(stream)
        await raw.ok("sendMessageDraft", chat_id=5, draft_id=1, text="well", can_stop=True)
        draft = (await shown(stream))["draft"]
        assert (draft["text"], draft["can_stop"]) == ("well", True)
        alice.chat().draft[None] = replace(alice.chat().draft[None], until=0.0)
        await raw.ok("sendChatAction", chat_id=5, action="typing")
        view = await shown(stream)
        assert (view["draft"], view["action"]) == (None, "typing")


async def test_files_over_http(raw: Raw, alice: Person) -> None:
    for content, kind in ((png(), "photo"), (b"no picture", "document")):
        form = aiohttp.FormData({"kind": "photo", "caption": "c"})
        form.add_field("file", content, filename="x.png", content_type="image/png")
        async with raw.http.post(f"{raw.url}/api/upload", data=form) as response:
            assert response.status == 200
        said = alice.messages()[-1]
        assert said.media is not None
        assert (said.text, said.media.kind) == ("c", kind)
