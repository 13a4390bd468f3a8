"""The Bot API's side: updates, the checks of what is sent, and faults on demand."""

import asyncio

import pytest

from bot.localgram import Localgram, Person
from fakes.patience import SECONDS
from fakes.words import saying

from .conftest import Raw


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
