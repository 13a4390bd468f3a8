"""A homeserver that fails: each message is answered once, and in an encrypted room nothing goes out in plain."""

import asyncio
import json
from typing import Any

import pytest

from bot.texts import Texts
from fakes.homeserver_proxy import HomeserverProxy
from fakes.matrix_person import MatrixPerson
from fakes.matrix_running import MatrixScenario
from fakes.model_scripted import says
from fakes.patience import SECONDS, soon
from fakes.synapse import Synapse
from fakes.words import saying

SEND = r"PUT .*/send/m\.room\.(message|encrypted)/"
FAULTS: dict[str, dict[str, Any]] = {
    "its answer is lost": {"act": "lose"},
    "half of its answer comes": {"act": "halve"},
    "a gateway refuses it": {"act": "refuse", "status": 502, "body": "no"},
    "it came too fast": {
        "act": "refuse",
        "status": 429,
        "body": {"errcode": "M_LIMIT_EXCEEDED", "error": "Too many", "retry_after_ms": 300},
    },
}


@pytest.mark.parametrize(
    ("fault", "encrypted"),
    [
        ("its answer is lost", True),
        ("it came too fast", True),
        *(pytest.param(fault, False, marks=pytest.mark.slow) for fault in FAULTS),
    ],
)
async def test_a_send_that_goes_wrong_is_repeated_and_arrives_once(
    scenario: MatrixScenario,
    olga: MatrixPerson,
    proxy: HomeserverProxy,
    fault: str,
    encrypted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bot.delivery.FIRST_BACKOFF", 0.05)
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=encrypted)
        rule = proxy.rule(SEND, times=2, **FAULTS[fault])
        await olga.say(room, "hi")
        await olga.next()
        await soon(lambda: proxy.count(SEND) == 3)
        await olga.say(room, "!timezone")  # comes behind any copy
        await olga.next(lambda e: "time zone" in e.body)
        rows = await run.store.database.all("SELECT state FROM outbox WHERE id = 1")
    assert rule.used == 2 and [row[0] for row in rows] == ["delivered"]
    assert olga.finals(room)[0] == "Hello." and olga.finals(room).count("Hello.") == 1


async def test_a_homeserver_that_goes_away_and_comes_back(
    scenario: MatrixScenario, olga: MatrixPerson, proxy: HomeserverProxy
) -> None:
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account)
        proxy.rule(r"GET .*/sync", "refuse", times=3, body="<html>")
        last = proxy.rule(r"GET .*/sync", "halve")
        await olga.say(room, "hi")
        await olga.next()  # a sync that began before may have brought it
        await soon(lambda: last.used and run.bot.health.problem is None)


SYNC = r"GET .*/sync.*since="
SYNC_FAULTS: dict[str, dict[str, Any]] = {
    "answers with an error (502)": {"act": "refuse", "body": "<html>"},
    "wants to be asked again in 0 s": FAULTS["it came too fast"],
    "gives no whole answer": {"act": "halve"},
    "cannot be reached": {"act": "lose", "times": 2},  # aiohttp asks once more by itself
    "does not know where the bot was, which begins anew: Invalid stream token": {
        "act": "refuse",
        "status": 400,
        "body": {"errcode": "M_UNKNOWN", "error": "Invalid stream token"},
    },
}


async def test_each_fault_of_a_sync_is_one_sentence_and_it_goes_on(
    scenario: MatrixScenario,
    olga: MatrixPerson,
    proxy: HomeserverProxy,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account)
        for number, (sentence, fault) in enumerate(SYNC_FAULTS.items()):
            caplog.clear()
            rule = proxy.rule(SYNC, **fault)
            await olga.say(room, f"before {number}")
            await asyncio.wait_for(rule.reached.wait(), SECONDS)
            await olga.say(room, f"after {number}")
            await soon(lambda number=number: f"after {number}" in str(run.model.requests))  # type: ignore[misc]
            told = [r.getMessage() for r in caplog.records if r.name == "bot.messaging_apps"]
            assert len(told) == 2 and sentence in told[0] and told[0].count(". ") == 0, told
            assert told[1] == saying("Matrix", "come in again")
            assert not [r for r in caplog.records if r.exc_info and r.name.startswith("bot")]
        rows = await run.store.database.all("SELECT words FROM inbox ORDER BY id")
    assert [row[0] for row in rows] == [
        f"{when} {number}" for number in range(len(SYNC_FAULTS)) for when in ("before", "after")
    ]


async def test_more_messages_than_an_answer_holds_are_all_kept_in_order(
    scenario: MatrixScenario,
    olga: MatrixPerson,
    proxy: HomeserverProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bot.matrix.sync.FILTER", {"room": {"timeline": {"limit": 3}}})
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account)
        await olga.say(room, "first")
        await olga.next()
        held = proxy.rule(r"GET .*/sync", "hold")
        for number in range(12):
            await olga.say(room, f"word{number};")
        held.released.set()
        said = await soon(lambda: "word11;" in (s := str(run.model.requests)) and s)
        assert proxy.count(r"GET .*/messages\?") >= 1
    places = [said.index(f"word{number};") for number in range(12)]
    assert places == sorted(places)


@pytest.mark.slow
async def test_a_place_that_the_homeserver_forgot_answers_nothing_twice(
    scenario: MatrixScenario, olga: MatrixPerson, proxy: HomeserverProxy
) -> None:
    async with scenario.open():
        room = await olga.room_with(scenario.account)
        for command in ("one", "!timezone Europe/Rome"):
            await olga.say(room, command)
            await olga.next()
    body = {"errcode": "M_UNKNOWN", "error": "Invalid stream token"}
    proxy.rule(r"GET .*/sync.*since=", "refuse", status=400, body=body)
    async with scenario.open() as run:
        await olga.say(room, "two")
        await olga.next()
        requests = len(run.model.requests)
        rows = await run.store.database.all("SELECT words FROM inbox ORDER BY id")
    assert [row[0] for row in rows] == ["one", "two"] and requests == 1
    assert len(olga.finals(room)) == 3


@pytest.mark.slow
async def test_a_device_that_was_deleted_logs_in_anew(
    scenario: MatrixScenario, olga: MatrixPerson, proxy: HomeserverProxy
) -> None:
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        await olga.say(room, "hi")
        await olga.next()
        before = json.loads((scenario.folder / "matrix" / "session.json").read_text())["device"]
        await run.bot.server.post("/_matrix/client/v3/logout", {})
        await soon(
            lambda: (
                json.loads((scenario.folder / "matrix" / "session.json").read_text())["device"]
                != before
            )
        )
        channel = run.bot.channel
        await soon(lambda: channel.encryption and channel.encryption.machine.account.shared)
        await olga.until(
            lambda: (
                len(list(olga.client.device_store.active_user_devices(scenario.account))) == 1
                and before
                not in str(list(olga.client.device_store.active_user_devices(scenario.account)))
            )
        )
        await olga.say(room, "again")
        answer = await olga.next()
        assert answer.encrypted and answer.body == "Hello."


async def test_keys_that_cannot_be_had_hold_a_message_back(
    scenario: MatrixScenario, olga: MatrixPerson, proxy: HomeserverProxy, server: Synapse
) -> None:
    """Neither in plain, nor for nobody to read."""
    scenario.script = lambda request: says("Only for you.")
    async with scenario.open():
        room = await olga.room_with(scenario.account, encrypted=True)
        rule = proxy.rule(r"PUT .*/sendToDevice/m\.room\.encrypted", "refuse", times=1000)
        await olga.say(room, "hi")
        await asyncio.wait_for(rule.reached.wait(), SECONDS)
        await soon(lambda: rule.used >= 2)
        assert proxy.count(SEND) == 0
        rule.times = 0
        assert (await olga.next()).encrypted
    assert server.stored("Only for you.") == []


@pytest.mark.slow
async def test_a_room_whose_encryption_a_sync_conceals_is_asked_for(
    scenario: MatrixScenario, olga: MatrixPerson, proxy: HomeserverProxy
) -> None:
    def conceal(answer: Any) -> Any:
        for room in answer.get("rooms", {}).get("join", {}).values():
            for part in ("state", "timeline"):
                events = room.get(part, {}).get("events", [])
                room[part]["events"] = [e for e in events if e["type"] != "m.room.encryption"]
        return answer

    proxy.rule(r"GET .*/sync", "change", times=1000, change=conceal)
    async with scenario.open():
        room = await olga.room_with(scenario.account, encrypted=True)
        await olga.say(room, "hi")
        assert (await olga.next()).encrypted


async def test_a_message_without_its_key_waits_and_asks_for_it(
    scenario: MatrixScenario,
    olga: MatrixPerson,
    proxy: HomeserverProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also over a restart; who wrote is told."""
    monkeypatch.setattr("bot.matrix.timeline.RETRY_SECONDS", 0.0)

    def without_keys(answer: Any) -> Any:
        answer.get("to_device", {}).get("events", []).clear()
        return answer

    async with scenario.open() as run:
        # Before the invitation, which ends the sync under way: none that brings the key escapes it.
        rule = proxy.rule(r"GET .*/sync", "change", times=1000, change=without_keys)
        room = await olga.room_with(scenario.account, encrypted=True)
        await soon(lambda: run.bot.channel.encryption.machine.account.shared)  # type: ignore[union-attr]
        await olga.say(room, "hi")
        told = await olga.next()
        assert told.encrypted and "its key has not come" in told.body
        await soon(lambda: proxy.count(r"PUT .*/sendToDevice/m\.room_key_request"))
        assert run.model.requests == []
    rule.times = 0
    asked = olga.keys.inbound_group_store
    (session,) = [
        s
        for s in asked
        if s.room_id == room and s.sender_key == olga.keys.account.identity_keys["curve25519"]
    ]
    async with scenario.open() as run:
        machine = olga.keys
        (device,) = machine.device_store.active_user_devices(scenario.account)
        message = machine._encrypt_forwarding_key(
            room, session, machine.session_store.get(device.curve25519), device
        )
        await olga.client.to_device(message)
        assert (await olga.next()).body == "Hello."
    assert Texts().undecryptable.partition("{")[0] in told.body


@pytest.mark.slow
async def test_an_invitation_that_cannot_be_read_holds_up_nobody(
    scenario: MatrixScenario, olga: MatrixPerson, proxy: HomeserverProxy
) -> None:
    """Its state comes from the server of whoever invites, as that server wrote it."""
    invited = {f"!{n}:evil": {"invite_state": {"events": state}} for n, state in enumerate(ODD)}

    def inviting(answer: Any) -> Any:
        rooms = answer.get("rooms", {})
        return {**answer, "rooms": {**rooms, "invite": {**invited, **rooms.get("invite", {})}}}

    proxy.rule(r"GET .*/sync", "change", times=1000, change=inviting)
    async with scenario.open():
        room = await olga.room_with(scenario.account)
        await olga.say(room, "hi")
        await olga.next()
    assert olga.finals(room) == ["Hello."]


@pytest.mark.slow
async def test_a_message_of_the_far_future_hides_none_that_follow(
    scenario: MatrixScenario, olga: MatrixPerson, proxy: HomeserverProxy
) -> None:
    """The sender's server says when it was sent, which counts once the homeserver has forgotten where the bot was."""

    def later(answer: Any) -> Any:
        for told in answer.get("rooms", {}).get("join", {}).values():
            for event in told["timeline"]["events"]:
                if event.get("content", {}).get("body") == "early":
                    event["origin_server_ts"] = 1 << 53
        return answer

    proxy.rule(r"GET .*/sync", "change", times=1000, change=later)
    async with scenario.open():
        room = await olga.room_with(scenario.account)
        await olga.say(room, "early")
        await olga.next()
    proxy.rules.clear()
    body = {"errcode": "M_UNKNOWN", "error": "Invalid stream token"}
    proxy.rule(r"GET .*/sync.*since=", "refuse", status=400, body=body)
    async with scenario.open():
        await olga.say(room, "now")
        await olga.next()
    assert olga.finals(room) == ["Hello.", "Hello."]


ODD: list[Any] = [
    ["no event"],
    [{"type": "m.room.member", "state_key": "@x:y", "content": "none"}, 7],
    "no list",
    [{"type": "m.room.member", "state_key": "@x:y", "content": ["join"]}],
]


@pytest.mark.slow
async def test_a_device_that_was_deleted_and_a_password_that_is_gone_are_told(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    with pytest.raises(BaseExceptionGroup) as ended:
        async with scenario.open() as run:
            await olga.room_with(scenario.account)
            (scenario.folder / "password").unlink()
            await run.bot.server.post("/_matrix/client/v3/logout", {})
            assert run.serving
            await asyncio.wait([run.serving], timeout=SECONDS)
    assert told(ended.value) == saying("log in", "`voltaire setup`")


def told(error: BaseException) -> str:
    """The sentences of an error, and of a group of them."""
    if isinstance(error, BaseExceptionGroup):
        return " ".join(map(told, error.exceptions))
    return str(error)
