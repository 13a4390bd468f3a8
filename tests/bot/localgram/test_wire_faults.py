"""Faults, holds and flood control: what a bot must survive."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from bot.localgram import Limits, Localgram, Person, VirtualClock
from fakes.patience import within

from .conftest import TOKEN, Raw, png


async def test_a_call_that_is_dropped_before_it_is_carried_out(
    raw: Raw, gram: Localgram, alice: Person
) -> None:
    fault = gram.fault("sendMessage", "drop")
    with pytest.raises(aiohttp.ClientError):
        await raw("sendMessage", chat_id=5, text="lost")
    assert (alice.messages(), fault.struck) == ([], 1)
    await raw.ok("sendMessage", chat_id=5, text="arrives")


async def test_a_call_whose_answer_is_lost(raw: Raw, gram: Localgram, alice: Person) -> None:
    gram.fault("sendMessage", "execute_then_drop")
    with pytest.raises(aiohttp.ClientError):
        await raw("sendMessage", chat_id=5, text="arrived")
    assert [message.text for message in alice.messages()] == ["arrived"]


async def test_bad_gateway_and_half_an_answer(raw: Raw, gram: Localgram, alice: Person) -> None:
    url = f"{raw.url}/bot{TOKEN}/getMe"
    gram.fault("getMe", "bad_gateway")
    gram.fault("getMe", "truncate")
    async with raw.http.get(url) as response:
        assert (response.status, response.content_type) == (502, "text/html")
    async with raw.http.get(url) as response:
        text = await response.text()
    async with raw.http.get(url) as response:
        whole = await response.text()
    assert (text, response.status) == (whole[: len(whole) // 2], 200)


async def test_a_late_answer(raw: Raw, gram: Localgram, alice: Person) -> None:
    gram.fault("sendMessage", "delay", seconds=30)
    late = asyncio.create_task(raw("sendMessage", chat_id=5, text="slow"))
    assert (await alice.next_message()).text == "slow"
    assert not late.done()
    late.cancel()


async def test_a_revoked_token(raw: Raw, gram: Localgram) -> None:
    gram.fault("*", "unauthorized", times=None)
    assert await raw.refusal("getMe") == "Unauthorized"
    assert await raw.refusal("getUpdates") == "Unauthorized"
    gram.heal()
    await raw.ok("getMe")


async def test_flood_on_demand_holds_for_the_chat(
    raw: Raw, gram: Localgram, alice: Person, clock: VirtualClock
) -> None:
    bob = gram.user("Bob", id=6, started=True)
    gram.fault("sendMessage", "flood", seconds=7, chat=5)
    url = f"{raw.url}/bot{TOKEN}/sendMessage"
    async with raw.http.post(url, data={"chat_id": "5", "text": "x"}) as response:
        assert (response.status, response.headers["Retry-After"]) == (429, "7")
        assert await response.json() == {
            "ok": False,
            "error_code": 429,
            "description": "Too Many Requests: retry after 7",
            "parameters": {"retry_after": 7},
        }
    clock.advance(3)
    assert await raw.refusal("sendChatAction", chat_id=5, action="typing") == (
        "Too Many Requests: retry after 4"
    )
    await raw.ok("sendMessage", chat_id=bob.id, text="x")
    clock.advance(4)
    await raw.ok("sendMessage", chat_id=5, text="x")


async def test_flood_control_of_its_own(http: aiohttp.ClientSession) -> None:
    clock = VirtualClock()
    async with Localgram(TOKEN, clock=clock, limits=Limits()) as gram:
        raw = Raw(http, gram.url)
        gram.user("Alice", id=5, started=True)

        async def burst(count: int) -> list[str]:
            said = [await raw("sendMessage", chat_id=5, text="x") for _ in range(count)]
            return [str(body.get("description", "ok")) for body in said]

        assert await burst(6) == ["ok"] * 5 + ["Too Many Requests: retry after 3"]
        clock.advance(3)
        assert await burst(4) == ["ok"] * 3 + ["Too Many Requests: retry after 6"]
        clock.advance(100)
        assert await burst(5) == ["ok"] * 5


async def test_groups_have_twenty_a_minute(http: aiohttp.ClientSession) -> None:
    clock = VirtualClock()
    async with Localgram(TOKEN, clock=clock, limits=Limits()) as gram:
        raw, group = Raw(http, gram.url), gram.group("Friends", gram.user("Alice"))
        for _ in range(20):
            await raw.ok("sendMessage", chat_id=group.id, text="x")
        assert "retry after" in await raw.refusal("sendMessage", chat_id=group.id, text="x")


async def test_a_held_call_waits_for_its_release(raw: Raw, gram: Localgram, alice: Person) -> None:
    with gram.hold("sendMessage") as hold:
        sending = asyncio.create_task(raw.ok("sendMessage", chat_id=5, text="x"))
        assert (await hold.reached()).text("text") == "x"
        assert alice.messages() == []
        hold.release()
        await sending
    with gram.hold("sendMessage", executed=True) as hold:
        sending = asyncio.create_task(raw.ok("sendMessage", chat_id=5, text="y"))
        await hold.reached()
        assert [message.text for message in alice.messages()] == ["x", "y"]
    await sending


async def test_an_update_delivered_twice(raw: Raw, gram: Localgram, alice: Person) -> None:
    await alice.send("once")
    gram.fault("getUpdates", "duplicate")
    first: Any = await raw.ok("getUpdates")
    offset = first[0]["update_id"] + 1
    again: Any = await raw.ok("getUpdates", offset=offset)
    assert again == first
    assert await raw.ok("getUpdates", offset=offset) == []


async def test_links_grow_old(
    raw: Raw, gram: Localgram, alice: Person, clock: VirtualClock
) -> None:
    photo = await alice.send_file("photo", png())
    assert photo.media is not None

    async def fetched(path: str) -> int:
        async with raw.http.get(f"{raw.url}/file/bot{TOKEN}/{path}") as response:
            assert response.status != 200 or await response.read() == png()
            return response.status

    file: Any = await raw.ok("getFile", file_id=photo.media.file.id)
    assert await fetched(file["file_path"]) == 200
    clock.advance(3600)
    assert await fetched(file["file_path"]) == 404
    gram.fault("getFile", "stale_link")
    file = await raw.ok("getFile", file_id=photo.media.file.id)
    assert await fetched(file["file_path"]) == 404


async def test_faults_by_chance(raw: Raw, gram: Localgram) -> None:
    fault = gram.fault("getMe", "unauthorized", times=None, rate=0.5)
    for _ in range(60):
        await raw("getMe")
    assert 5 < fault.struck < 55


def test_an_unknown_fault_is_refused(gram: Localgram) -> None:
    with pytest.raises(ValueError, match="unknown fault 'explode'"):
        gram.fault("getMe", "explode")  # type: ignore[arg-type]


async def test_leaving_frees_those_who_wait(raw: Raw, alice: Person) -> None:
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(Localgram("778:b"))
        waiting = asyncio.create_task(Raw(raw.http, other.url)("getUpdates", "778:b", timeout=50))
        await other.until(lambda: other.world.updates.waiting or None)
        with within(3):
            await stack.aclose()
            await asyncio.wait([waiting])
