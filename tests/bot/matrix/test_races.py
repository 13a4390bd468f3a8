"""What a sync tells while something else is awaited: members, devices, keys and the session may change at
any await, and no message is lost for it, nor is anybody left without its key."""

import asyncio
from typing import Any

import pytest

from bot.channel import OutgoingMessage
from bot.matrix.encryption import Encryption
from bot.matrix.rooms import RoomKey
from fakes.bot_running import RunningBot
from fakes.homeserver_proxy import HomeserverProxy
from fakes.matrix_person import MatrixPerson, matrix_person
from fakes.matrix_running import MatrixScenario
from fakes.model_scripted import calls, in_order, says
from fakes.patience import SECONDS, soon
from fakes.synapse import Synapse
from tests.bot.matrix.test_talk import is_question, push

QUERY, CLAIM = r"POST .*/keys/query", r"POST .*/keys/claim"
GIVE_OUT = r"PUT .*/sendToDevice/m\.room\.encrypted"
SEND = r"PUT .*/send/m\.room\.encrypted/"


@pytest.fixture
async def eve(server: Synapse, tmp_path: Any) -> Any:
    eve_id = await server.account("eve")
    async with matrix_person(server.url, eve_id, tmp_path / "eve") as person:
        yield person


def keys_of(run: RunningBot[Any]) -> Encryption:
    found: Encryption = run.bot.channel.encryption
    return found


async def joins(olga: MatrixPerson, other: MatrixPerson, room: str) -> None:
    await olga.client.room_invite(room, other.id)
    await other.until(lambda: room in other.client.invited_rooms)
    await other.client.join(room)


async def speaks_first(run: RunningBot[Any], room: str) -> None:
    """Have the bot say "Hello." to devices with which it has no session yet."""
    await soon(lambda: keys_of(run).rooms.partner(room) and keys_of(run).rooms[room].joined)
    await run.store.outbox.add(str(RoomKey(room)), [OutgoingMessage("Hello.").to_json()])


@pytest.mark.parametrize(
    "request_",
    [CLAIM, pytest.param(GIVE_OUT, marks=pytest.mark.slow)],
    ids=["claimed", "given out"],
)
async def test_who_comes_while_a_key_is_on_its_way_gets_one_too(
    scenario: MatrixScenario,
    olga: MatrixPerson,
    eve: MatrixPerson,
    proxy: HomeserverProxy,
    request_: str,
) -> None:
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        rule = proxy.rule(request_, "late")
        await speaks_first(run, room)
        await asyncio.wait_for(rule.arrived.wait(), SECONDS)
        await joins(olga, eve, room)
        await soon(lambda: eve.id in keys_of(run).rooms[room].joined)
        rule.released.set()
        assert (await olga.next()).body == "Hello."
        assert (await eve.next()).body == "Hello."
        await soon_delivered(run)


async def test_a_device_that_is_new_while_devices_are_looked_up_gets_keys(
    scenario: MatrixScenario,
    olga: MatrixPerson,
    proxy: HomeserverProxy,
    server: Synapse,
    tmp_path: Any,
) -> None:
    told: set[str] = set()

    def spy(answer: Any) -> Any:
        told.update(answer.get("device_lists", {}).get("changed", []))
        return answer

    async with scenario.open():
        rule = proxy.rule(QUERY, "late")
        room = await olga.room_with(scenario.account, encrypted=True)
        await asyncio.wait_for(rule.arrived.wait(), SECONDS)
        proxy.rule(r"GET .*/sync", "change", times=10**6, change=spy)
        await taken_after(proxy, olga, room)
        told.clear()
        async with matrix_person(server.url, olga.id, tmp_path / "phone") as phone:
            await soon(lambda: olga.id in told)
            await taken_after(proxy, olga, room)
            rule.released.set()
            await olga.say(room, "hi")
            assert (await phone.next(lambda e: e.body == "Hello.")).encrypted


async def taken_after(proxy: HomeserverProxy, olga: MatrixPerson, room: str) -> None:
    """The bot has taken in a sync that was answered after now."""
    before = proxy.count(r"GET .*/sync")
    for wanted in (before + 1, before + 2):  # the one under way may have been answered before
        await olga.client.room_typing(room)
        await olga.client.room_put_state(room, "test.mark", {"n": wanted})
        await soon(lambda wanted=wanted: proxy.count(r"GET .*/sync") >= wanted)  # type: ignore[misc]


@pytest.mark.slow
async def test_what_is_new_while_keys_are_tended_is_tended_at_once(
    scenario: MatrixScenario, olga: MatrixPerson, eve: MatrixPerson, proxy: HomeserverProxy
) -> None:
    """Not only after the next sync, which waits for half a minute where nobody writes."""
    async with scenario.open() as run:
        rule = proxy.rule(QUERY, "late")
        room = await olga.room_with(scenario.account, encrypted=True)
        await asyncio.wait_for(rule.arrived.wait(), SECONDS)
        await joins(olga, eve, room)
        await soon(lambda: eve.id in keys_of(run).rooms[room].joined)
        await taken_after(proxy, olga, room)
        held = proxy.rule(r"GET .*/sync", "hold", times=10**6)
        await olga.client.room_put_state(room, "test.mark", {"n": 0})
        await asyncio.wait_for(held.reached.wait(), SECONDS)
        rule.released.set()
        await soon(lambda: eve.id in keys_of(run).machine.tracked_users)
        held.times = 0
        held.released.set()


@pytest.mark.slow
async def test_who_comes_back_with_another_device_gets_its_keys(
    scenario: MatrixScenario,
    olga: MatrixPerson,
    eve: MatrixPerson,
    server: Synapse,
    tmp_path: Any,
) -> None:
    """While she was in no room with the bot nobody told it of her devices."""
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        await joins(olga, eve, room)
        mention = {"m.mentions": {"user_ids": [scenario.account]}}
        await olga.say(room, "voltaire: hi", **mention)
        assert (await eve.next(lambda e: e.body == "Hello.")).encrypted
        await eve.client.room_leave(room)
        await soon(lambda: eve.id not in keys_of(run).rooms[room].members)
        async with matrix_person(server.url, eve.id, tmp_path / "phone") as phone:
            await joins(olga, phone, room)
            await soon(lambda: eve.id in keys_of(run).rooms[room].joined)
            await olga.until(lambda: olga._joined(room, eve.id))
            await olga.say(room, "voltaire: hi", **mention)
            assert (await phone.next(lambda e: e.body == "Hello.")).encrypted


@pytest.mark.slow
async def test_who_came_during_an_absence_gets_the_key_of_what_is_said_meanwhile(
    scenario: MatrixScenario,
    olga: MatrixPerson,
    eve: MatrixPerson,
    proxy: HomeserverProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sync that left messages out is not at its end when an answer goes out."""
    monkeypatch.setattr("bot.matrix.sync.FILTER", {"room": {"timeline": {"limit": 3}}})
    release = asyncio.Event()
    scenario.script = in_order([says("Here."), says("Hello.", hold=release.wait), says("Bye.")])
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        await olga.say(room, "are you there?")
        await olga.next()
        await olga.say(room, "hi")
        await soon(lambda: len(run.model.requests) == 2)
        sync, pages = proxy.rule(r"GET .*/sync", "hold"), proxy.rule(r"GET .*/messages\?", "late")
        await olga.say(room, "bye")
        await asyncio.wait_for(sync.reached.wait(), SECONDS)
        await joins(olga, eve, room)
        await eve.until(lambda: room in eve.client.rooms)
        for number in range(6):
            await olga.client.room_put_state(room, "test.mark", {"n": number})
        sync.released.set()
        await asyncio.wait_for(pages.arrived.wait(), SECONDS)
        assert eve.id in keys_of(run).rooms[room].members
        release.set()
        assert (await olga.next()).body == "Hello."
        assert (await eve.next(lambda e: e.body == "Hello.")).encrypted
        pages.released.set()


@pytest.mark.parametrize(
    "request_",
    [CLAIM, pytest.param(GIVE_OUT, marks=pytest.mark.slow)],
    ids=["claimed", "given out"],
)
async def test_a_session_that_ends_while_a_key_is_on_its_way_loses_no_answer(
    scenario: MatrixScenario, olga: MatrixPerson, proxy: HomeserverProxy, request_: str
) -> None:
    """The new device says it, with keys of its own."""
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        rule = proxy.rule(request_, "late")
        await speaks_first(run, room)
        await asyncio.wait_for(rule.arrived.wait(), SECONDS)
        before = keys_of(run)
        await run.bot.server.post("/_matrix/client/v3/logout", {})
        await soon(lambda: keys_of(run) not in (None, before))
        rule.released.set()
        answer = await olga.next()
        await soon_delivered(run)
    assert answer.encrypted and olga.finals(room) == ["Hello."]


async def soon_delivered(run: RunningBot[Any]) -> None:
    async with asyncio.timeout(SECONDS):
        while await run.store.outbox.counts():  # of what is not delivered
            await asyncio.sleep(0.003)


@pytest.mark.parametrize("by", ["a reaction", pytest.param("a reply", marks=pytest.mark.slow)])
async def test_a_question_is_answered_before_the_bot_knows_that_it_was_sent(
    scenario: MatrixScenario, olga: MatrixPerson, proxy: HomeserverProxy, by: str
) -> None:
    scenario.tools = [push]
    scenario.script = in_order([calls("push", what="A"), says("Done.")])
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        sending = proxy.rule(SEND, "late", times=2)  # the live view, too
        await olga.say(room, "push")
        question = await olga.next(is_question)
        if by == "a reply":
            await olga.reply(room, question.id, "1")
        else:
            await olga.react(room, question.id, "👍")
        await taken_after(proxy, olga, room)
        sending.released.set()
        await olga.next(lambda e: e.body == "Done.")
        decided = await olga.next(lambda e: e.replaces == question.id)
    assert "Allowed once" in decided.body and len(run.model.requests) == 2
