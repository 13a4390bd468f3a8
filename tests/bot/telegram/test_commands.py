"""The chat commands and their buttons."""

import json
import re
from datetime import UTC, datetime

from bot.commands.table import COMMANDS
from bot.localgram import Message, is_final
from bot.texts import TABLES, Texts
from fakes.bot_running import House
from fakes.model_scripted import says
from fakes.patience import soon

NO_NOTES = Texts().no_notes
CONTRACT = (
    "start help new resume stop retry status gpu model context memory forget jobs schedule repos"
    " summary approve export settings timezone"
).split()


async def card(house: House, command: str) -> Message:
    """The bot's next message after a command, buttons or not."""
    await house.owner.send(command)
    return await house.owner.next_message()


async def test_all_commands_are_there_and_listed_per_scope(house: House) -> None:
    async with house.open():
        help_ = await house.owner.ask("/help")
        unknown = await house.owner.ask("/nonsense")
        await soon(lambda: len(house.gram.called("setMyCommands")) >= 3)
        scopes = [made.fields["scope"] for made in house.gram.called("setMyCommands")]
    assert [command.name for command in COMMANDS] == CONTRACT
    assert [[*table.commands] for table in TABLES.values()] == [CONTRACT]
    assert all(f"/{name}: " in help_.text for name in CONTRACT)
    assert unknown.text == help_.text
    assert scopes == [
        '{"type": "all_private_chats"}',
        '{"type": "all_group_chats"}',
        '{"chat_id": 111, "type": "chat"}',
    ]


async def test_a_member_is_not_offered_what_owners_do(house: House) -> None:
    mia = house.gram.user("Mia Member")
    house.config = {"allow": frozenset({mia.id})}
    async with house.open():
        help_ = await mia.ask("/help")
        refused = await mia.ask("/approve")
    assert "/approve" not in help_.text
    assert refused.text == "Only an owner can do that."


async def test_new_and_resume_change_the_conversation(house: House) -> None:
    async with house.open() as run:
        await house.owner.ask("my cat is called Tom")
        await house.owner.ask("/new")
        await house.owner.ask("another thing")
        list_ = await card(house, "/resume")
        (label,) = list_.buttons
        assert label.endswith("my cat is called Tom")
        await house.owner.press(list_, label)
        chosen = await house.owner.until(list_, lambda m: not m.keyboard)
        await house.owner.ask("which cat?")
    assert chosen.text == "We go on with: my cat is called Tom"
    lengths = [len(request.messages) for request in run.model.requests]
    assert lengths == [2, 2, 4]


async def test_retry_answers_once_more(house: House) -> None:
    async with house.open() as run:
        nothing = await house.owner.ask("/retry")
        await house.owner.ask("hi")
        house.script = lambda request: says("Better.")
        better = await house.owner.ask("/retry")
    assert nothing.text == "There is nothing to answer again."
    assert better.text == "Better."
    assert [len(request.messages) for request in run.model.requests] == [2, 2]


async def test_notes_are_shown_deleted_and_restored(house: House) -> None:
    async with house.open() as run:
        empty = await house.owner.ask("/memory")
        await run.store.notes.add("tg:111", "tea, no sugar")
        await run.store.notes.add("tg:111", "lives in Lyon")
        day = f"{datetime.fromtimestamp(run.store.clock(), UTC):%Y-%m-%d}"
        list_ = await card(house, "/memory")
        await house.owner.press(list_, "✕ 1")
        shorter = await house.owner.until(list_, lambda m: "Undo" in m.buttons)
        await house.owner.press(list_, "Undo")
        whole = await house.owner.until(list_, lambda m: "Undo" not in m.buttons)
        gone = await card(house, "/forget 2")
        await house.owner.press(gone, "Undo")
        back = await house.owner.until(gone, lambda m: "Undo" not in m.buttons)
        none = await house.owner.ask("/forget 77")
        also_none = await card(house, f"/forget {'9' * 40}")
        corrected = await house.owner.ask("/memory 1 tea,  much sugar")
        notes = [note.text for note in await run.store.notes.all("tg:111")]
    assert empty.text == NO_NOTES
    tea, lyon = f"1. tea, no sugar ({day})", f"2. lives in Lyon ({day})"
    assert list_.text.splitlines()[1:3] == [tea, lyon]
    assert tea not in shorter.text and lyon in shorter.text
    assert whole.text == back.text == list_.text
    assert (gone.text, gone.buttons) == ("Forgotten.", ["Undo"])
    assert none.text == "There is no such note."
    assert also_none.text.startswith("My notes:")
    assert (corrected.text, notes) == ("Corrected.", ["tea, much sugar", "lives in Lyon"])


async def test_everything_of_a_chat_is_deleted_after_a_second_question(house: House) -> None:
    async with house.open() as run:
        await house.owner.ask("a secret")
        await run.store.notes.add("tg:111", "a note")
        question = await card(house, "/forget all")
        assert question.buttons == ["Delete all", "No"]
        await house.owner.press(question, "Delete all")
        told = await house.owner.until(question, lambda m: not m.keyboard)
        notes = await card(house, "/memory")
        conversations = await run.store.chats.conversations("tg:111")
    assert told.text == "All of this chat is deleted."
    assert notes.text == NO_NOTES
    assert conversations == []


async def test_a_conversation_is_exported(house: House) -> None:
    async with house.open():
        nothing = await house.owner.ask("/export")
        await house.owner.ask("hi")
        await house.owner.send("/export")
        page = await house.owner.next_message(where=lambda m: m.media)
        data = await house.owner.next_message(where=lambda m: m.media)
    assert nothing.text == "Nothing has been said yet."
    assert page.media and data.media
    content = page.media.file.content.decode()
    assert content.startswith("# tg:111\n") and content.endswith("Hello.\n")
    [conversation] = json.loads(data.media.file.content)["conversations"]
    said = [(m["role"], m["text"]) for m in conversation["messages"]]
    assert said == [("user", "hi"), ("assistant", "Hello.")]


async def test_thinking_is_set_by_a_button(house: House) -> None:
    async with house.open() as run:
        settings = await card(house, "/settings")
        await house.owner.press(settings, "2,048")
        changed = await house.owner.until(settings, lambda m: "• 2,048" in m.buttons)
        chat = await run.store.chats.get("tg:111")
    assert settings.text.splitlines()[0] == "Thinking before an answer, in tokens: off"
    assert settings.buttons == ["• off", "512", "2,048", "8,192"]
    assert changed.text.splitlines()[0] == "Thinking before an answer, in tokens: 2,048"
    assert chat and chat.settings == {"thinking": 2048}


async def test_status_tells_and_refreshes(house: House) -> None:
    async with house.open():
        shown = await card(house, "/status")
        query = await house.owner.press(shown, "Refresh")
        answer = await house.owner.answer(query)
    assert shown.text.startswith("The model backend is not known here.\n0 waiting · ")
    assert answer.text == ""


async def test_a_job_is_shown_with_its_next_times_and_made_by_a_press(house: House) -> None:
    house.plans = True
    async with house.open() as run:
        shown = await card(house, "/schedule every day at 9:00 stretch")
        none = await house.owner.ask("/jobs")
        await house.owner.press(shown, "Plan it")
        made = await house.owner.until(shown, lambda m: not m.keyboard)
        refused = await card(house, "/schedule every day at 10:00 run")
        await house.owner.press(refused, "No")
        dropped = await house.owner.until(refused, lambda m: not m.keyboard)
        list_ = await card(house, "/jobs")
        late = await card(house, "/schedule in 2 minutes drink")
        assert (await run.store.jobs.active_and_next())[0] == 1
        house.late = 600
        answer = await house.owner.answer(await house.owner.press(late, "Plan it"))
        assert (await run.store.jobs.active_and_next())[0] == 1
    assert re.fullmatch(
        r"Task “stretch”, every day at 09:00(?: \(UTC\))?; next: (?:\w{3} \d\d \w{3} 09:00(?:, )?){3}"
        r"\n\nShall I plan this\?",
        shown.text,
    )
    assert shown.buttons == ["Plan it", "No"]
    assert none.text == "Nothing is planned."
    assert made.text.startswith("Job 1: Task “stretch”, every day at 09:00")
    assert dropped.text == "Nothing was planned."
    assert list_.text.startswith("1. Task “stretch”") and "\n" not in list_.text
    assert answer.text == "That time is over; nothing was planned."


async def test_jobs_are_planned_paused_and_deleted(house: House) -> None:
    house.plans = True
    async with house.open():
        none = await house.owner.ask("/jobs")
        how = await house.owner.ask("/schedule")
        shown = await card(house, "/schedule every day at 9:00 stretch")
        await house.owner.press(shown, "Plan it")
        await house.owner.until(shown, lambda m: not m.keyboard)
        list_ = await card(house, "/jobs")
        await house.owner.press(list_, "⏸ 1")
        paused = await house.owner.until(list_, lambda m: "▶ 1" in m.buttons)
        await house.owner.press(list_, "✕ 1")
        deleted = await house.owner.until(list_, lambda m: not m.keyboard)
    assert none.text == "Nothing is planned."
    assert how.text.startswith("Say when and what:")
    assert list_.buttons == ["⏸ 1", "Now 1", "✕ 1"]
    assert paused.text.endswith("(paused)")
    assert deleted.text == "Nothing is planned."


async def test_what_is_not_set_up_says_so(house: House) -> None:
    async with house.open():
        said = [
            (await house.owner.ask(command)).text
            for command in ("/gpu", "/model", "/context", "/jobs", "/repos", "/summary", "/approve")
        ]
    assert said == [
        "The model backend is not known here.",
        "The model backend is not known here.",
        "That is not set up here.",
        "That is not set up here.",
        "No repository is configured.",
        "No repository is configured.",
        "Nothing is open, and nothing is allowed without asking.",
    ]


async def test_commands_work_in_groups_when_addressed(house: House) -> None:
    group = house.gram.group("Team", house.owner)
    async with house.open():
        await house.owner.send("/help@voltaire_bot", chat=group)
        await house.owner.send("/help@another_bot", chat=group)
        await house.owner.send("/nonsense@voltaire_bot", chat=group)
        first = await house.owner.next_message(chat=group, where=is_final)
        second = await house.owner.next_message(chat=group, where=is_final)
        sent = [m for m in house.owner.messages(chat=group) if m.sender.is_bot and is_final(m)]
    assert first.text == second.text
    assert len(sent) == 2
