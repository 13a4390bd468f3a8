"""Text in and out, in plain and encrypted rooms, with a real homeserver and a real client as the person."""

import asyncio
import secrets
import stat
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import pytest
from pydantic import Field

from agent.messages import ToolResult
from agent.tools.tool import Call, Output, tool
from bot.matrix.keyboards import KeyboardStore
from bot.texts import TEXTS, Texts
from fakes.matrix_person import MatrixPerson, SeenEvent, matrix_person
from fakes.matrix_running import MatrixScenario
from fakes.model_scripted import Reply, calls, in_order, says
from fakes.patience import SECONDS, soon
from fakes.synapse import Synapse
from fakes.words import saying

both = pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])


@both
async def test_a_message_is_answered_with_html_in_its_own_way(
    scenario: MatrixScenario, olga: MatrixPerson, server: Synapse, encrypted: bool
) -> None:
    """In an encrypted room the homeserver's database holds no word of it."""
    asked, said = secrets.token_hex(8), secrets.token_hex(8)
    scenario.script = lambda request: says(f"**{said}** morning.")
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=encrypted)
        await olga.say(room, f"{asked} evening?")
        answer = await olga.next()
        assert answer.body == f"**{said}** morning."
        assert answer.content["formatted_body"] == f"<p><strong>{said}</strong> morning.</p>"
        assert answer.encrypted == encrypted
        assert len(run.model.requests) == 1
        found = [bool(server.stored(word)) for word in (asked, said)]
        assert found == [not encrypted, not encrypted]


async def test_commands_by_either_sign_are_run_at_once(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        for command in ("!timezone Europe/Paris", "/timezone"):
            await olga.say(room, command)
            assert "Europe/Paris" in (await olga.next()).body
        await olga.say(room, "/nonsense")
        assert "/status" in (await olga.next()).body
        assert run.model.requests == []
        await olga.say(room, "!important: is this answered?")
        assert (await olga.next()).body == "Hello."
        await olga.say(room, "!new what is the time?")
        assert (await olga.next()).body == TEXTS.new
        assert (await olga.next()).body == "Hello."
        asked = run.model.requests[-1].messages
        assert (len(asked), asked[-1].text.rpartition("\n")[2]) == (2, "what is the time?")


@pytest.mark.slow
async def test_start_says_who_can_read_along_here(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    async with scenario.open():
        room = await olga.room_with(scenario.account, encrypted=False)
        await olga.say(room, "/start")
        screen = (await olga.next()).body
    assert screen == saying("homeserver", "room is not encrypted") and "Telegram" not in screen


async def test_the_session_is_kept_and_what_was_said_meanwhile_is_answered(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    async with scenario.open():
        room = await olga.room_with(scenario.account, encrypted=True)
        await olga.say(room, "one")
        await olga.next()
    session = scenario.folder / "matrix" / "session.json"
    assert stat.S_IMODE(session.stat().st_mode) == 0o600
    before = session.read_text()
    scenario.config["password_file"] = None  # it is used once
    for _ in range(3):
        await olga.say(room, "two")
    async with scenario.open() as run:
        await olga.next()
        await soon(lambda: "two" in str(run.model.requests))
        await olga.say(room, "three")
        await olga.until(lambda: "three" in str(run.model.requests[-1]))
    assert session.read_text() == before
    said = [m for request in run.model.requests for m in request.messages]
    assert "one" in str(said)  # the conversation went on


async def test_a_turn_is_shown_by_edits_of_one_quiet_message(
    scenario: MatrixScenario, olga: MatrixPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.matrix.live.QUIET_SECONDS", 0.0)
    release = asyncio.Event()
    scenario.script = lambda request: says("It goes on.", hold=release.wait)
    async with scenario.open():
        room = await olga.room_with(scenario.account, encrypted=True)
        await olga.say(room, "hi")
        live = await olga.next(lambda e: e.content.get("msgtype") == "m.notice")
        assert live.encrypted
        await olga.until(
            lambda: any(e.replaces == live.id for e in olga.seen) or "It goes" in live.body
        )
        release.set()
        assert (await olga.next()).body == "It goes on."
        gone = await olga.next(lambda e: e.type == "m.room.redaction")
        assert gone.content.get("redacts", live.id) == live.id


async def test_a_long_thought_is_ended_from_the_live_view(
    scenario: MatrixScenario, olga: MatrixPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.matrix.live.QUIET_SECONDS", 0.0)
    monkeypatch.setattr("bot.live_replies.OFFER_SECONDS", 0.0)
    pressed, release, asked = asyncio.Event(), asyncio.Event(), list[Any]()

    def script(request: Any) -> Reply:
        asked.append(request)
        if len(asked) == 1:
            return says("never", reasoning="Well, let me see.", hold_thought=pressed.wait)
        return says("Forty-two.", hold=release.wait)

    scenario.script = script
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        await olga.say(room, "the answer?")
        shown = await olga.next(lambda e: "1️⃣ Answer now" in e.body)
        live = shown.replaces or shown.id
        await olga.react(room, live, "1️⃣")
        told = await olga.next(lambda e: e.body == "It stops thinking and answers.")
        assert told.content["msgtype"] == "m.notice" and told.encrypted
        pressed.set()
        await soon(lambda: len(asked) == 2)
        release.set()
        assert (await olga.next()).body == "Forty-two."
        await olga.next(lambda e: e.type == "m.room.redaction")
        async with asyncio.timeout(SECONDS):  # the bot is told after the person
            while await KeyboardStore(run.store.key_values).of(live):
                await asyncio.sleep(0.01)
    assert [request.brief for request in asked] == [False, True]


@pytest.mark.slow
async def test_a_long_answer_comes_in_parts_and_a_longer_one_as_a_file(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    def text(count: int) -> str:
        return "\n\n".join(f"Part {n}: {secrets.token_hex(140)}" for n in range(count))

    long = text(70)
    longer = text(300)
    scenario.script = in_order([says(long, size=10_000), says(longer, size=10_000)])
    async with scenario.open():
        room = await olga.room_with(scenario.account, encrypted=True)
        await olga.say(room, "much")
        await olga.until(lambda: "Part 69" in str(olga.finals(room)))
        parts = olga.finals(room)
        assert len(parts) == 2 and "".join("".join(parts).split()) == "".join(long.split())
        await olga.say(room, "more")
        head = await olga.next(lambda e: e.body.startswith("Part 0") and "answer.md" in e.body)
        beginning, _, below = head.body.rpartition("\n\n")
        assert longer.startswith(beginning) and len(beginning) > 1000
        assert below == f"*{Texts().whole_in_file.format(count=len(longer), name='answer.md')}*"
        file = await olga.next(lambda e: e.content.get("msgtype") == "m.file")
        assert file.body == "answer.md" and "key" in file.content["file"]


async def test_an_invitation_of_a_stranger_is_the_owners_to_accept(
    scenario: MatrixScenario, olga: MatrixPerson, server: Synapse, tmp_path: Path
) -> None:
    eve_id = await server.account("eve")
    async with scenario.open() as run, matrix_person(server.url, eve_id, tmp_path / "eve") as eve:
        home = await olga.room_with(scenario.account)
        created = asyncio.create_task(eve.room_with(scenario.account, encrypted=True))
        question = await olga.next()
        assert eve_id in question.body and "Let in" in question.body
        assert not created.done()
        await olga.reply(home, question.id, "1")
        room = await created
        assert (await eve.next()).body == Texts().paired["member"]
        await eve.say(room, "hi")
        assert (await eve.next()).body == "Hello."
        decided = await olga.next(lambda e: e.replaces == question.id)
        assert "was let in" in decided.body
        assert len(run.model.requests) == 1


async def test_in_a_room_of_several_whoever_is_allowed_and_mentions_is_answered(
    scenario: MatrixScenario, olga: MatrixPerson, server: Synapse, tmp_path: Path
) -> None:
    eve_id = await server.account("eve")
    async with scenario.open() as run, matrix_person(server.url, eve_id, tmp_path / "eve") as eve:
        room = await olga.room_with(scenario.account, encrypted=True, direct=False)
        await olga.client.room_invite(room, eve_id)
        await eve.until(lambda: room in eve.client.invited_rooms)
        await eve.client.join(room)
        await eve.until(lambda: room in eve.client.rooms)
        await olga.until(lambda: olga._joined(room, eve_id))
        mention = {"m.mentions": {"user_ids": [scenario.account]}}
        await eve.say(room, "voltaire: and I?", **mention)
        await olga.say(room, "not for you")
        await olga.say(room, "but this is", **mention)
        answer = await olga.next(lambda e: e.body == "Hello.")
        assert answer.encrypted
        await olga.reply(room, answer.id, "and a reply is")
        await olga.until(lambda: olga.finals(room).count("Hello.") == 2)
        said = str([m for request in run.model.requests for m in request.messages])
    assert "but this is" in said and "and a reply is" in said
    assert "not for you" not in said and "and I?" not in said


async def test_in_an_encrypted_room_a_plain_message_is_not_read(
    scenario: MatrixScenario, olga: MatrixPerson, server: Synapse
) -> None:
    """Whoever runs the homeserver could have written it."""
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        path = f"{server.url}/_matrix/client/v3/rooms/{room}/send/m.room.message/1"
        headers = {"Authorization": f"Bearer {olga.client.access_token}"}
        body = {"msgtype": "m.text", "body": "obey"}
        async with (
            aiohttp.ClientSession() as http,
            http.put(path, json=body, headers=headers) as sent,
        ):
            assert sent.status == 200
        told = await olga.next()
        assert told.encrypted and told.body == Texts().in_plain
        assert run.model.requests == []


@pytest.mark.slow
async def test_another_device_of_the_person_reads_along(
    scenario: MatrixScenario, olga: MatrixPerson, server: Synapse, tmp_path: Path
) -> None:
    async with scenario.open(), AsyncExitStack() as stack:
        room = await olga.room_with(scenario.account, encrypted=True)
        await olga.say(room, "hi")
        await olga.next()
        phone = await stack.enter_async_context(
            matrix_person(server.url, olga.id, tmp_path / "phone")
        )
        await phone.until(lambda: room in phone.client.rooms)
        await olga.client.keys_query() if olga.client.should_query_keys else None
        await phone.say(room, "from the phone")

        def read(person: MatrixPerson) -> list[SeenEvent]:
            mine = [e for e in person.seen if e.sender == scenario.account and e.final]
            return [e for e in mine if e.encrypted]

        await phone.until(lambda: read(phone))
        await olga.until(lambda: len(read(olga)) == 2)


@tool
async def push(call: Call, what: Annotated[str, Field(description="what")]) -> Output:
    """Push a button."""
    await call.approve(f"push {what}", scope="commit:push")
    return Output(f"pushed {what}")


def is_question(event: SeenEvent) -> bool:
    return event.final and event.body.startswith("**May I do this?**")


async def test_an_approval_is_given_by_a_reaction_or_a_reply(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    scenario.tools = [push]
    things = [calls("push", what=thing) for thing in "ABC"]
    scenario.script = in_order([*things, says("Done.")])
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        await olga.say(room, "push")
        first = await olga.next(is_question)
        offered = await olga.next(lambda e: e.type == "m.reaction")
        assert offered.content["m.relates_to"] == {
            "rel_type": "m.annotation", "event_id": first.id, "key": "1️⃣",
        }  # fmt: skip
        await olga.react(room, first.id, "👍")
        second = await olga.next(is_question)
        await olga.reply(room, second.id, "deny")
        third = await olga.next(is_question)
        await olga.react(room, second.id, "1️⃣")  # decided already: of no effect
        await olga.reply(room, third.id, "1")
        await olga.next(lambda e: e.body == "Done.")
        decided = await olga.next(lambda e: e.replaces == second.id)
        results = [m.text for m in run.model.requests[-1].messages if isinstance(m, ToolResult)]
    assert first.encrypted
    assert results[0] == "pushed A" and "denied" in results[1] and results[2] == "pushed C"
    assert "✗ Denied by" in decided.body


async def test_nobody_else_and_no_other_room_decides(
    scenario: MatrixScenario, olga: MatrixPerson, server: Synapse, tmp_path: Path
) -> None:
    eve_id = await server.account("eve")
    scenario.config["allow"] = [eve_id]
    scenario.tools = [push]
    scenario.script = in_order([calls("push", what="A"), says("Done.")])
    async with scenario.open() as run, matrix_person(server.url, eve_id, tmp_path / "eve") as eve:
        home = await olga.room_with(scenario.account)
        room = await eve.room_with(scenario.account, encrypted=True)
        await eve.say(room, "push it")
        question = await olga.next(is_question)  # the owner is asked at home
        assert question.room == home and not eve.finals(room)
        await eve.reply(room, question.id, "1")  # (of a reaction the homeserver says no itself)
        other = await olga.room_with(scenario.account)
        await olga.reply(other, question.id, "1")  # a message like any other
        await olga.until(lambda: olga.finals(other))
        assert len(await run.store.approvals.open_requests()) == 1
        await olga.react(home, question.id, "👍")
        assert (await eve.next(lambda e: e.body == "Done.")).room == room
