"""getUpdates: numbers, acknowledgement, redelivery, age, two pollers."""

import asyncio
import time
from typing import Any

import aiohttp
import pytest

from bot.localgram import Localgram, Person, VirtualClock
from fakes.patience import SECONDS

from .conftest import TOKEN, Raw


async def ids(raw: Raw, **fields: object) -> list[int]:
    updates = await raw.ok("getUpdates", **fields)
    assert isinstance(updates, list)
    return [update["update_id"] for update in updates]


async def test_numbers_grow_by_one_and_stay_until_acknowledged(raw: Raw, alice: Person) -> None:
    for text in ("one", "two", "three"):
        await alice.send(text)
    first, second, third = await ids(raw)
    assert first > 2_000_000
    assert (second, third) == (first + 1, first + 2)
    assert await ids(raw) == [first, second, third]
    assert await ids(raw, limit=1) == [first]
    assert await ids(raw, offset=second) == [second, third]
    assert await ids(raw) == [second, third]
    assert await ids(raw, offset=-1) == [third]
    assert await ids(raw) == [third]
    assert await ids(raw, offset=third + 1) == []


async def test_what_is_too_old_is_gone(
    gram: Localgram, raw: Raw, alice: Person, clock: VirtualClock
) -> None:
    await alice.send("kept a day")
    keys = {"inline_keyboard": [[{"text": "Go", "callback_data": "x"}]]}
    await raw.ok("sendMessage", chat_id=alice.id, text="x", reply_markup=keys)
    await alice.press(await alice.next_message(), "Go")
    assert len(await ids(raw)) == 2
    clock.advance(151)
    assert len(await ids(raw)) == 1
    clock.advance(24 * 3600)
    assert await ids(raw) == []


async def test_a_poll_waits_for_the_next_message(raw: Raw, gram: Localgram, alice: Person) -> None:
    polling: asyncio.Task[Any] = asyncio.create_task(raw.ok("getUpdates", timeout=20))
    await gram.until(lambda: gram.world.updates.waiting or None)
    await alice.send("hello")
    updates = await asyncio.wait_for(polling, SECONDS)
    assert len(updates) == 1 and updates[0]["message"]["text"] == "hello"


async def test_an_empty_poll_ends_when_its_time_is_over(raw: Raw) -> None:
    assert await raw.ok("getUpdates", timeout=1) == []


async def test_of_two_pollers_the_older_one_loses(raw: Raw, gram: Localgram, alice: Person) -> None:
    older = asyncio.create_task(raw("getUpdates", timeout=20))
    await gram.until(lambda: gram.world.updates.waiting or None)
    newer = asyncio.create_task(raw("getUpdates", timeout=20))
    assert await asyncio.wait_for(older, SECONDS) == {
        "ok": False,
        "error_code": 409,
        "description": "Conflict: terminated by other getUpdates request; make sure that only one"
        " bot instance is running",
    }
    await alice.send("hello")
    assert (await asyncio.wait_for(newer, SECONDS))["ok"]


async def test_a_bot_that_spins_is_slowed_down(http: aiohttp.ClientSession) -> None:
    async with Localgram(TOKEN, repeat_seconds=0.8) as gram:
        raw, bob = Raw(http, gram.url), gram.user("Bob")
        for text in ("one", "two"):
            await bob.send(text)
        assert [len(await ids(raw, offset=-2)) for _ in range(2)] == [2, 1]
        (first, second), last = await ids(raw, offset=-3), len(gram.world.updates.pending())
        assert (second - first, last) == (1, 2)
        await ids(raw, offset=second + 1)
        began = time.monotonic()
        assert await ids(raw, offset=second + 1) == []
        assert time.monotonic() - began > 0.7


async def test_allowed_updates_stay_until_they_are_changed(raw: Raw, alice: Person) -> None:
    message = await alice.send("one")
    await alice.react(message, "👍")
    (first,) = await ids(raw)
    await ids(raw, offset=first + 1, allowed_updates=["message_reaction"])
    await alice.send("unheard")
    await alice.react(message, "🔥")
    updates = await raw.ok("getUpdates")
    assert isinstance(updates, list)
    assert [sorted(update) for update in updates] == [["message_reaction", "update_id"]]
    assert updates[0]["message_reaction"]["old_reaction"] == [{"type": "emoji", "emoji": "👍"}]
    assert updates[0]["message_reaction"]["new_reaction"] == [{"type": "emoji", "emoji": "🔥"}]
    await ids(raw, offset=-1, allowed_updates=[])
    await alice.react(message, "👍")
    await alice.send("heard")
    assert len(await ids(raw)) == 2


async def test_numbers_jump_after_a_week_of_silence(
    raw: Raw, alice: Person, clock: VirtualClock
) -> None:
    await alice.send("one")
    (first,) = await ids(raw)
    clock.advance(8 * 86_400)
    await alice.send("two")
    (second,) = await ids(raw)
    assert second != first + 1


async def test_a_webhook_and_polling_exclude_each_other(raw: Raw, gram: Localgram) -> None:
    polling = asyncio.create_task(raw("getUpdates", timeout=20))
    await gram.until(lambda: gram.world.updates.waiting or None)
    await raw.ok("setWebhook", url="http://127.0.0.1:9/none")
    ended = await asyncio.wait_for(polling, SECONDS)
    assert ended["description"] == "Conflict: terminated by setWebhook request"
    assert await raw.refusal("getUpdates") == (
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to"
        " delete the webhook first"
    )
    await raw.ok("deleteWebhook")
    assert await raw.ok("getUpdates") == []


@pytest.mark.parametrize("drop", [True, False])
async def test_pending_updates_can_be_dropped(raw: Raw, alice: Person, drop: bool) -> None:
    await alice.send("one")
    await raw.ok("deleteWebhook", drop_pending_updates=drop)
    assert len(await ids(raw)) == (0 if drop else 1)


async def test_edits_blocks_and_starts_are_told(raw: Raw, alice: Person) -> None:
    message = await alice.send("/start code")
    await alice.edit(message, "changed")
    await alice.block()
    await alice.unblock()
    updates = await raw.ok("getUpdates")
    assert isinstance(updates, list)
    assert [next(key for key in update if key != "update_id") for update in updates] == [
        "message",
        "edited_message",
        "my_chat_member",
        "my_chat_member",
    ]
    assert updates[0]["message"]["entities"] == [{"type": "bot_command", "offset": 0, "length": 6}]
    assert updates[1]["edited_message"]["text"] == "changed"
    states = [u["my_chat_member"]["new_chat_member"]["status"] for u in updates[2:]]
    assert states == ["kicked", "member"]
