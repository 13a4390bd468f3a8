"""/link: one person's chats in Telegram and Matrix share notes and jobs; what is said stays where it is."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent.store import open_store
from bot.channel import OutgoingMessage
from bot.matrix.app import matrix_app
from bot.matrix.rooms import RoomKey
from bot.messaging_apps import Apps
from bot.telegram.app import telegram_app
from fakes.bot_running import OWNER, TOKEN, RunningBot, TelegramScenario
from fakes.localgram import Localgram, Person
from fakes.matrix_person import MatrixPerson
from fakes.matrix_running import MatrixScenario


@dataclass
class BothApps:
    """One owner in both apps, over one database."""

    gram: Localgram
    phone: Person
    olga: MatrixPerson
    room: str
    telegram: RunningBot[Any]
    matrix: RunningBot[Any]

    async def ask(self, command: str) -> str:
        """The answer in Matrix."""
        await self.olga.say(self.room, command)
        return (await self.olga.next()).body

    async def notes(self) -> str:
        """/memory in Telegram, whose list has buttons."""
        await self.phone.send("/memory")
        return (await self.phone.next_message(where=lambda m: "otes" in m.text)).text

    async def link(self) -> None:
        code = re.findall(r"/link (\w+)", (await self.phone.ask("/link")).text)[0]
        assert (await self.ask(f"!link {code}")).startswith("Linked:")
        await self.phone.next_message(where=lambda m: m.text.startswith("Linked:"))


@pytest.fixture
async def apps(
    olga: MatrixPerson, scenario: MatrixScenario, life: AsyncExitStack, tmp_path: Path
) -> AsyncIterator[BothApps]:
    gram = await life.enter_async_context(Localgram(TOKEN))
    phone = gram.user("Olga", id=OWNER, started=True)
    other = TelegramScenario(gram=gram, folder=scenario.folder, owner=phone)
    async with (
        open_store(scenario.folder / "voltaire.db") as store,
        telegram_app(other.telegram, store, other.leaks) as of_telegram,
        matrix_app(scenario.matrix, store, scenario.leaks) as of_matrix,
        other.serving(store, of_telegram) as telegram,
        scenario.serving(store, of_matrix) as matrix,
    ):
        room = await olga.room_with(scenario.account, encrypted=True)
        yield BothApps(gram, phone, olga, room, telegram, matrix)


async def test_notes_follow_a_person_into_the_other_app(apps: BothApps) -> None:
    notes, chat = apps.telegram.store.notes, f"tg:{OWNER}"
    await notes.add(chat, "Olga is allergic to nuts.")
    assert "no notes" in (await apps.ask("!memory")).lower()
    await apps.link()
    assert "allergic to nuts" in await apps.ask("!memory")
    (found,) = await apps.matrix.store.search.candidates(str(RoomKey(apps.room)), "allergic")
    assert found.kind == "note"
    # The model is told of it there, too, and a person corrects it from there.
    await apps.ask("hello")
    assert "allergic to nuts" in str(apps.matrix.model.requests[-1].messages)
    assert "correct" in (await apps.ask(f"!memory {found.id} Olga may eat nuts.")).lower()
    assert "may eat nuts" in await apps.notes()
    # The same words are not kept twice.
    _, new = await notes.add(str(RoomKey(apps.room)), "olga may eat nuts.")
    assert not new


@pytest.mark.slow
async def test_jobs_are_seen_from_both_and_speak_where_they_were_made(apps: BothApps) -> None:
    planner = await apps.telegram.services.planner(f"tg:{OWNER}")
    job = await planner.add((await planner.propose("every day at 9:00", "stretch")).spec)
    await apps.link()
    assert "stretch" in await apps.ask("!jobs")
    assert "10:00" in await apps.ask(f"!jobs {job.id} every day at 10:00")
    kept = await apps.telegram.store.jobs.get(job.id)
    assert kept and kept.spec.chat == f"tg:{OWNER}" and kept.spec.task == "stretch"
    # Another time zone there leaves it as it is: the job is of this chat.
    await apps.ask("!timezone Asia/Tokyo")
    assert await apps.telegram.store.jobs.get(job.id) == kept


@pytest.mark.slow
async def test_what_is_said_stays_where_it_is(apps: BothApps) -> None:
    await apps.link()
    await apps.phone.ask("the password of the gate is swordfish")
    await apps.ask("hello")
    assert "swordfish" not in str(apps.matrix.model.requests)
    chat = str(RoomKey(apps.room))
    assert await apps.matrix.store.search.candidates(chat, "swordfish") == []


@pytest.mark.slow
async def test_parted_again_each_has_what_was_made_in_it(apps: BothApps) -> None:
    await apps.telegram.store.notes.add(f"tg:{OWNER}", "Of Telegram.")
    await apps.telegram.store.notes.add(str(RoomKey(apps.room)), "Of Matrix.")
    await apps.link()
    both = await apps.ask("!memory")
    assert "Of Telegram." in both and "Of Matrix." in both
    assert "on its own" in (await apps.phone.ask("/link end")).text
    assert "Of Telegram." not in await apps.ask("!memory")
    assert "Of Matrix." not in await apps.notes()
    assert "linked with no other" in (await apps.phone.ask("/link end")).text
    rows = [row.facts for row in await apps.telegram.store.ledger.rows() if row.kind == "admin"]
    assert sum('"act": "link"' in facts or '"act":"link"' in facts for facts in rows) == 2


async def test_a_code_holds_once_for_a_while_and_for_owners_alone(apps: BothApps) -> None:
    code = re.findall(r"/link (\w+)", (await apps.phone.ask("/link")).text)[0]
    assert "is not valid" in (await apps.phone.ask(f"/link {code}")).text  # of this very chat
    assert "is not valid" in await apps.ask("!link 0000000000")
    await apps.telegram.store.database.execute("UPDATE link_codes SET expires_at = 1")
    assert "is not valid" in await apps.ask(f"!link {code}")
    await apps.link()
    used = await apps.telegram.store.database.all("SELECT * FROM link_codes")
    assert used == []
    eve = apps.gram.user("Eve", id=222, started=True)
    await apps.telegram.store.people.put("telegram", "222", "Eve", "member")
    await apps.telegram.bot.access.load()
    fresh = re.findall(r"/link (\w+)", (await apps.phone.ask("/link")).text)[0]
    assert "owner" in (await eve.ask(f"/link {fresh}")).text.lower()
    assert await apps.telegram.store.links.of("tg:222") == []


async def test_a_room_of_several_is_linked_with_nobody(
    apps: BothApps, scenario: MatrixScenario
) -> None:
    room = await apps.olga.room_with(scenario.account, encrypted=True, direct=False)
    await apps.olga.client.room_invite(room, "@nobody:voltaire.test")
    await apps.olga.until(lambda: "@nobody:voltaire.test" in apps.olga.client.rooms[room].users)
    await apps.olga.say(room, "!link")
    await apps.olga.next(
        lambda e: "alone can be linked" in e.body
    )  # beside what it asks of a group


async def test_an_alert_comes_once_where_it_was_asked_for(apps: BothApps) -> None:
    """Until they are linked nobody knows that they are one; parted they are two again."""
    both = Apps([apps.telegram.bot, apps.matrix.bot])
    in_telegram, in_matrix = f"tg:{OWNER}", str(RoomKey(apps.olga.id))
    assert await both.alerted_chats() == [in_telegram, in_matrix]
    assert "linked with no other" in await apps.ask("!link alerts")
    await apps.link()  # the code was asked for in Telegram
    assert await both.alerted_chats() == [in_telegram]
    assert "from now on" in await apps.ask("!link alerts")
    assert await both.alerted_chats() == [in_matrix]
    store = apps.telegram.store
    await store.chats.set_blocked(in_matrix, blocked=True)  # where nothing arrives nothing is sent
    assert await both.alerted_chats() == [in_telegram]
    await store.chats.set_blocked(in_matrix, blocked=False)
    for chat in await both.alerted_chats():
        await store.outbox.add(chat, [OutgoingMessage("🔥 Hot.").to_json()])
    assert (await apps.olga.next(lambda e: e.final and "Hot" in e.body)).room == apps.room
    await apps.ask("!link end")
    assert await both.alerted_chats() == [in_telegram, in_matrix]
