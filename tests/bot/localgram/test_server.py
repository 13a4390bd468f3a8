"""The Bot API's side: updates, the checks of what is sent, and faults on demand."""

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bot.localgram import Localgram, Person, is_final
from bot.localgram.faults import Kind
from fakes.patience import SECONDS
from fakes.words import saying

from .conftest import TOKEN, Raw, png

KEYS = {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]}


async def ids(raw: Raw, **fields: object) -> list[int]:
    updates = await raw.ok("getUpdates", **fields)
    assert isinstance(updates, list)
    return [update["update_id"] for update in updates]


async def test_numbers_grow_by_one_and_stay_until_acknowledged(raw: Raw, alice: Person) -> None:
    for text in ("one", "two", "three"):
        await alice.send(text)
    first, second, third = await ids(raw)
    assert (second, third) == (first + 1, first + 2)
    assert await ids(raw, limit=1) == [first]
    assert await ids(raw, offset=second) == [second, third]
    assert await ids(raw, offset=-1) == [third]
    assert await ids(raw, offset=third + 1) == []


async def test_of_two_pollers_the_older_one_loses(raw: Raw, gram: Localgram, alice: Person) -> None:
    older = asyncio.create_task(raw("getUpdates", timeout=20))
    await gram.until(lambda: gram.world.updates.waiting or None)
    newer = asyncio.create_task(raw("getUpdates", timeout=20))
    assert (await asyncio.wait_for(older, SECONDS))["error_code"] == 409
    await alice.send("hello")
    assert (await asyncio.wait_for(newer, SECONDS))["ok"]


async def test_only_kinds_that_were_asked_for_are_delivered(raw: Raw, alice: Person) -> None:
    message = await alice.send("one")
    await alice.react(message, "👍")
    (first,) = await ids(raw)
    await ids(raw, offset=first + 1, allowed_updates=["message_reaction"])
    await alice.send("unheard")
    await alice.react(message, "🔥")
    assert len(await ids(raw)) == 1


async def test_a_webhook_gets_each_update_until_it_takes_it(raw: Raw, alice: Person) -> None:
    got: list[tuple[str, str | None]] = []
    done = asyncio.Event()

    async def hook(request: web.Request) -> web.Response:
        update = await request.json()
        got.append(
            (update["message"]["text"], request.headers.get("X-Telegram-Bot-Api-Secret-Token"))
        )
        if len(got) == 3:
            done.set()
        return web.Response(status=500 if len(got) == 1 else 200)

    app = web.Application()
    app.router.add_post("/", hook)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    await alice.send("one")
    await alice.send("two")
    await raw.ok("setWebhook", url=url, secret_token="s")
    assert (await raw("getUpdates"))["error_code"] == 409
    await asyncio.wait_for(done.wait(), SECONDS)
    await runner.cleanup()
    assert got == [("one", "s"), ("one", "s"), ("two", "s")]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"text": " "}, saying("text", "empty")),
        ({"text": "x" * 4097}, saying("too long")),
        ({"text": "<b>x</b>", "parse_mode": "HTML"}, saying("parse_mode")),
        ({"text": "x", "entities": [{"type": "bold", "offset": 0, "length": 2}]}, saying("after the end")),
        ({"text": "\U0001f600", "entities": [{"type": "bold", "offset": 0, "length": 1}]}, saying("UTF-16")),
        ({"text": "x", "reply_parameters": {"message_id": 99}}, saying("not found")),
        ({"text": "x", "message_thread_id": 99}, saying("thread not found")),
        ({"text": "x", "chat_id": 404}, saying("chat not found")),
        (
            {"text": "x", "reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": "d" * 65}]]}},
            saying("BUTTON_DATA_INVALID"),
        ),
    ],
)  # fmt: skip
async def test_what_telegram_would_refuse_is_refused(
    raw: Raw, gram: Localgram, alice: Person, fields: dict[str, object], why: object
) -> None:
    assert await raw.refusal("sendMessage", **{"chat_id": 5, **fields}) == why
    assert alice.messages() == [] and len(gram.called("sendMessage")) == 1


async def test_a_text_is_trimmed_and_its_links_are_found(raw: Raw, alice: Person) -> None:
    bold = {"type": "bold", "offset": 2, "length": 3}
    await raw.ok("sendMessage", chat_id=5, text="  😀b https://a.example ", entities=[bold])
    [message] = alice.messages()
    assert message.text == "😀b https://a.example"
    assert message.entities == (
        {"type": "bold", "offset": 0, "length": 3},
        {"type": "url", "offset": 4, "length": 17},
    )


async def test_a_question_waits_for_the_answer_with_sound(raw: Raw, alice: Person) -> None:
    await raw.ok("sendMessage", chat_id=5, text="an old answer")
    asking = asyncio.create_task(alice.ask("how much?"))
    await raw.ok("sendMessage", chat_id=5, text="working", disable_notification=True)
    await raw.ok("sendMessage", chat_id=5, text="may I?", reply_markup=KEYS)
    assert not asking.done()
    await raw.ok("sendMessage", chat_id=5, text="33 GB")
    answer = await asyncio.wait_for(asking, SECONDS)
    assert (answer.text, is_final(answer)) == ("33 GB", True)


@pytest.mark.parametrize(("kind", "arrives"), [("drop", []), ("execute_then_drop", ["x"])])
async def test_a_call_that_is_cut(
    raw: Raw, gram: Localgram, alice: Person, kind: Kind, arrives: list[str]
) -> None:
    fault = gram.fault("sendMessage", kind)
    with pytest.raises(aiohttp.ClientError):
        await raw("sendMessage", chat_id=5, text="x")
    assert ([message.text for message in alice.messages()], fault.struck) == (arrives, 1)


async def test_a_held_call_waits_for_its_release(raw: Raw, gram: Localgram, alice: Person) -> None:
    with gram.hold("sendMessage") as hold:
        sending = asyncio.create_task(raw.ok("sendMessage", chat_id=5, text="x"))
        assert (await hold.reached()).text("text") == "x"
        assert alice.messages() == []
    await sending
    with gram.hold("sendMessage", executed=True) as hold:
        sending = asyncio.create_task(raw.ok("sendMessage", chat_id=5, text="y"))
        await hold.reached()
        assert [message.text for message in alice.messages()] == ["x", "y"]
    await sending


async def test_flood_on_demand_holds_for_the_chat(raw: Raw, gram: Localgram, alice: Person) -> None:
    bob = gram.user("Bob", id=6, started=True)
    gram.fault("sendMessage", "flood", seconds=70, chat=5)
    body = await raw("sendMessage", chat_id=5, text="x")
    assert (body["error_code"], body["parameters"]) == (429, {"retry_after": 70})
    assert (await raw("sendChatAction", chat_id=5, action="typing"))["error_code"] == 429
    await raw.ok("sendMessage", chat_id=bob.id, text="x")


async def test_an_update_delivered_twice_and_a_dead_link(
    raw: Raw, gram: Localgram, alice: Person
) -> None:
    photo = await alice.send_file("photo", png())
    gram.fault("getUpdates", "duplicate")
    first: Any = await raw.ok("getUpdates")
    assert await raw.ok("getUpdates", offset=first[0]["update_id"] + 1) == first
    assert photo.media is not None

    async def fetched() -> int:
        file: Any = await raw.ok("getFile", file_id=photo.media.file.id)  # type: ignore[union-attr]
        async with raw.http.get(f"{raw.url}/file/bot{TOKEN}/{file['file_path']}") as response:
            return response.status

    assert await fetched() == 200
    gram.fault("getFile", "stale_link")
    assert await fetched() == 404
