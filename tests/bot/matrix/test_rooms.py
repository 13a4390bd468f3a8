"""Threads as chats, corrections, messages that are taken back, files both ways: in encrypted rooms."""

import asyncio
import io
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from nio.crypto.attachments import decrypt_attachment, encrypt_attachment

from agent.store import Incoming
from bot.attachments import from_json
from bot.channel import ChannelFileSender, MessageRefused
from bot.matrix.rooms import RoomKey
from bot.matrix.sync import PLACE, SyncPlace
from fakes.bot_running import RunningBot
from fakes.matrix_person import MatrixPerson, matrix_person
from fakes.matrix_running import MatrixScenario
from fakes.model_scripted import says
from fakes.patience import SECONDS, soon
from fakes.synapse import Synapse
from fakes.words import saying


async def at_once(chat: str) -> None:
    """Nothing has to be shown before a file is sent."""


def said(run: RunningBot[Any]) -> str:
    """The last message that the model got."""
    return str(run.model.requests[-1].messages[-1]) if run.model.requests else ""


async def test_a_thread_is_a_chat_of_its_own(scenario: MatrixScenario, olga: MatrixPerson) -> None:
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        root = await olga.say(room, "in the room")
        await olga.next()
        relation = {
            "rel_type": "m.thread",
            "event_id": root,
            "is_falling_back": True,
            "m.in_reply_to": {"event_id": root},
        }
        await olga.say(room, "in the thread", **{"m.relates_to": relation})
        answer = await olga.next()
        told = answer.content["m.relates_to"]
        chats = await run.store.database.all("SELECT chat FROM inbox ORDER BY id")
    assert (told["rel_type"], told["event_id"]) == ("m.thread", root)
    assert [row[0] for row in chats] == [str(RoomKey(room)), str(RoomKey(room, root))]
    assert "in the room" not in said(run)


@pytest.mark.slow
async def test_a_reply_quotes_what_it_answers(scenario: MatrixScenario, olga: MatrixPerson) -> None:
    scenario.script = lambda request: says("The sky is green.")
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        await olga.say(room, "what colour is the sky?")
        answer = await olga.next()
        await olga.say(room, "something else")
        await olga.next()
        await olga.reply(room, answer.id, "> <@x> old\n\nare you sure?")
        await soon(lambda: "are you sure?" in said(run))
    assert "you: The sky is green." in said(run) and "old" not in said(run)


async def test_a_waiting_message_is_corrected_or_taken_back(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    release = asyncio.Event()
    scenario.script = lambda request: says("Hello.", hold=release.wait)
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        await olga.say(room, "the first")
        await soon(lambda: run.model.requests)
        mistaken = await olga.say(room, "seocnd")
        gone = await olga.say(room, "regretted")
        new = {"msgtype": "m.text", "body": "second"}
        relation = {"rel_type": "m.replace", "event_id": mistaken}
        await olga.say(room, "* second", **{"m.new_content": new, "m.relates_to": relation})
        await olga.client.room_redact(room, gone)
        await olga.say(room, "the last")

        async def kept() -> list[str]:
            rows = await run.store.inbox.waiting(str(RoomKey(room)))
            return [row.incoming.text for row in rows]

        async with asyncio.timeout(SECONDS):
            while await kept() != ["second", "the last"]:
                await asyncio.sleep(0.01)
        release.set()
        await soon(lambda: "the last" in str(run.model.requests))
        words = str(run.model.requests)
    assert "seocnd" not in words and "regretted" not in words


async def test_a_question_that_is_taken_back_is_not_answered_any_further(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    scenario.script = lambda request: says("Never whole.", hold=asyncio.Event().wait)
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        question = await olga.say(room, "a secret?")
        await soon(lambda: run.services.chats.running())
        await olga.client.room_redact(room, question)
        await soon(lambda: not run.services.chats.running())


@pytest.mark.slow
async def test_another_member_corrects_nothing_and_takes_nothing_back(
    scenario: MatrixScenario, olga: MatrixPerson, server: Synapse, tmp_path: Path
) -> None:
    eve_id = await server.account("eve")
    scenario.config |= {"allow": [eve_id]}
    me = scenario.account
    release = asyncio.Event()
    scenario.script = lambda request: says("Hello.", hold=release.wait)
    async with scenario.open() as run, matrix_person(server.url, eve_id, tmp_path / "eve") as eve:
        room = await olga.room_with(me, encrypted=True, direct=False)
        await olga.client.room_invite(room, eve_id)
        await eve.until(lambda: room in eve.client.invited_rooms)
        await eve.client.join(room)
        await eve.until(lambda: room in eve.client.rooms)
        await olga.until(lambda: olga._joined(room, eve_id))
        aside = await olga.say(room, "not to the bot")
        answered = await olga.say(room, f"{me} the first")
        await soon(lambda: run.model.requests)
        waiting = await olga.say(room, f"{me} delete nothing")
        levels = await olga.client.room_get_state_event(room, "m.room.power_levels")
        levels.content["users"][eve_id] = 100
        put = await olga.client.room_put_state(room, "m.room.power_levels", levels.content)
        assert put.transport_response and put.transport_response.status == 200, put
        await eve.until(lambda: eve.client.rooms[room].power_levels.users.get(eve_id) == 100)
        for event in (aside, answered, waiting):
            new = {"msgtype": "m.text", "body": f"{me} delete all"}
            relation = {"rel_type": "m.replace", "event_id": event}
            await eve.say(room, "* delete all", **{"m.new_content": new, "m.relates_to": relation})
            await eve.client.room_redact(room, event)
        await eve.say(room, f"{me} the last")

        async def kept() -> list[str]:
            rows = await run.store.inbox.waiting(str(RoomKey(room)))
            return [row.incoming.text for row in rows]

        async with asyncio.timeout(SECONDS):
            while "the last" not in await kept():
                await asyncio.sleep(0.01)
        assert await kept() == ["delete nothing", "the last"]
        assert not await run.store.database.all("SELECT 1 FROM inbox WHERE kind = 'edit'")
        assert run.services.chats.running()
        release.set()
        await soon(lambda: "the last" in said(run))


async def test_files_are_encrypted_both_ways(
    scenario: MatrixScenario, olga: MatrixPerson, server: Synapse
) -> None:
    content = b"%PDF of a secret " * 1000
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        sealed, keys = encrypt_attachment(content)
        headers = {"Authorization": f"Bearer {olga.client.access_token}"}
        async with aiohttp.ClientSession(headers=headers) as http:
            upload = f"{server.url}/_matrix/media/v3/upload"
            async with http.post(upload, data=sealed) as answer:
                address = (await answer.json())["content_uri"]
            file = {
                "msgtype": "m.audio",
                "body": "memo.ogg",
                "org.matrix.msc3245.voice": {},
                "info": {"mimetype": "audio/ogg", "size": len(content), "duration": 3200},
                "file": {**keys, "url": address},
            }
            await olga.send(room, "m.room.message", file)
            await olga.next(lambda e: e.body == "Hello.")
            (body,) = [row[0] for row in await run.store.database.all("SELECT body FROM inbox")]
            (voice,) = from_json(body)
            assert (voice.kind, voice.name, voice.seconds) == ("voice", "memo.ogg", 3)
            channel = run.bot.channel
            assert await channel.download(voice.file_id) == content
            bent = json.loads(voice.file_id)
            bent["hashes"]["sha256"] = "A" * 43
            with pytest.raises(MessageRefused):
                await channel.download(json.dumps(bent))

            sender = ChannelFileSender(channel, str(RoomKey(room)), at_once)
            await sender.send_files([(io.BytesIO(content), "a.pdf")], "Here it is.")
            sent = await olga.next(lambda e: e.content.get("msgtype") == "m.file")
            server_name, _, media = (
                sent.content["file"]["url"].removeprefix("mxc://").partition("/")
            )
            path = f"{server.url}/_matrix/client/v1/media/download/{server_name}/{media}"
            async with http.get(path) as answer:
                stored = await answer.read()
    assert sent.encrypted and sent.content["filename"] == "a.pdf" and sent.body == "Here it is."
    assert content not in stored
    keys = sent.content["file"]
    key, digest, iv = keys["key"]["k"], keys["hashes"]["sha256"], keys["iv"]
    assert decrypt_attachment(stored, key, digest, iv) == content


@pytest.mark.slow
async def test_a_room_that_puts_the_bot_out_and_takes_it_back(
    scenario: MatrixScenario, olga: MatrixPerson, caplog: pytest.LogCaptureFixture
) -> None:
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account, encrypted=True)
        await olga.say(room, "hi")
        await olga.next()
        await olga.client.room_kick(room, scenario.account)
        encryption = run.bot.channel.encryption
        assert encryption
        await soon(lambda: room not in encryption.rooms)
        assert caplog.text.count("was put out of") == 1
        assert (
            len(olga.client.invited_rooms) == 0
        )  # she knows it: no other room is opened to say so
        chat = str(RoomKey(room))
        await run.store.inbox.add(Incoming(chat, "matrix", "later", "a job", kind="job"))
        run.services.chats.wake(chat)
        await soon(lambda: "a job" in str(run.model.requests))
        await olga.client.room_invite(room, scenario.account)
        await olga.until(lambda: len(olga.finals(room)) == 2)


@pytest.mark.slow
async def test_a_room_that_is_upgraded_is_followed(
    scenario: MatrixScenario,
    olga: MatrixPerson,
    server: Synapse,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "bot.matrix")
    async with scenario.open() as run:
        room = await olga.room_with(scenario.account)
        await olga.say(room, "in the old one")
        await olga.next()
        headers = {"Authorization": f"Bearer {olga.client.access_token}"}
        path = f"{server.url}/_matrix/client/v3/rooms/{room}/upgrade"
        async with aiohttp.ClientSession(headers=headers) as http:
            async with http.post(path, json={"new_version": "11"}) as answer:
                new = (await answer.json())["replacement_room"]
            await olga.client.room_invite(new, scenario.account)
        encryption = run.bot.channel.encryption
        assert encryption
        await soon(lambda: new in encryption.rooms)
        await olga.until(lambda: new in olga.client.rooms and olga._joined(new, scenario.account))
        await olga.say(new, "in the new one")
        await soon(lambda: "in the new one" in said(run))
        told = await olga.next(lambda e: "was upgraded" in e.body)
    assert "in the old one" in str(run.model.requests[-1].messages)
    assert caplog.text.count(f"the room {room} was replaced by {new}") == 1
    async with scenario.open():  # the first sync tells of the old room again
        await olga.say(new, "once more")
        await olga.until(lambda: olga.finals(new).count("Hello.") == 2)
    assert told.room == new and told.body.startswith("The room olga")
    assert sum("was upgraded" in e.body for e in olga.seen) == 1


@pytest.mark.slow
async def test_owners_are_told_once_who_has_put_the_bot_out(
    scenario: MatrixScenario, olga: MatrixPerson
) -> None:
    """Also where what tells of it comes again, as after a kill."""
    async with scenario.open() as run:
        home = await olga.room_with(scenario.account, encrypted=True)
        room = await olga.room_with(scenario.account, direct=False)
        await olga.client.room_put_state(room, "m.room.name", {"name": "the kitchen"})
        encryption = run.bot.channel.encryption
        assert encryption
        await soon(lambda: room in encryption.rooms and encryption.rooms[room].title)
        await olga.say(home, "!timezone")
        await olga.next()
        before = await run.store.key_values.get(PLACE, SyncPlace)
        await olga.client.room_kick(room, scenario.account)
        told = await olga.next()
        await soon(lambda: room not in encryption.rooms)
        await run.store.key_values.put(PLACE, before)
    async with scenario.open():
        await olga.say(home, "!timezone")
        await olga.next(lambda e: "time zone" in e.body)
    name = olga.id.partition(":")[0].removeprefix("@")
    assert told.room == home and told.encrypted
    assert told.body == saying(
        f"{name} ({olga.id})", "has removed me", "the kitchen", "invited again"
    )
    assert sum("has removed me" in e.body for e in olga.seen) == 1


async def test_a_reaction_on_an_answer_judges_it(
    scenario: MatrixScenario, olga: MatrixPerson, server: Synapse, tmp_path: Path
) -> None:
    """The newest counts; on other messages, and from strangers, it means nothing."""
    eve_id = await server.account("eve")
    scenario.config["groups"] = "all"
    async with scenario.open() as run, matrix_person(server.url, eve_id, tmp_path / "eve") as eve:

        async def feedback() -> list[int | None]:
            rows = await run.store.database.all("SELECT feedback FROM turns")
            return [row[0] for row in rows]

        async def judged(expected: list[int | None]) -> None:
            async with asyncio.timeout(SECONDS):
                while await feedback() != expected:
                    await asyncio.sleep(0.003)

        room = await olga.room_with(scenario.account, encrypted=True, direct=False)
        await olga.client.room_invite(room, eve_id)
        await eve.until(lambda: room in eve.client.invited_rooms)
        await eve.client.join(room)
        await eve.until(lambda: room in eve.client.rooms)
        question = await olga.say(room, "hi")
        answer = await olga.next(lambda e: e.body == "Hello.")
        await eve.react(room, answer.id, "👎")
        await olga.react(room, question, "👎")
        older = await olga.react(room, answer.id, "👍\ufe0f")
        await judged([1])
        newer = await olga.react(room, answer.id, "👎")
        await judged([-1])
        await olga.client.room_redact(room, older)
        await olga.react(room, answer.id, "🎉")
        await olga.say(room, "!timezone")
        await olga.next(lambda e: "time zone" in e.body)
        assert await feedback() == [-1]
        await olga.client.room_redact(room, newer)
        await judged([None])
        await eve.react(room, answer.id, "🌙")
        await olga.react(room, question, "🌙")
        await olga.next(lambda e: e.body.startswith("Job 1: "))
