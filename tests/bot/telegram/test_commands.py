"""The chat commands and their buttons."""

import json
import re
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from agent.language import languages, name_of
from agent.schedule.planner import Planner
from agent.store.jobs import JobSpec
from bot.commands.table import BUTTONS, COMMANDS
from bot.localgram import Message
from bot.texts import Texts
from fakes.bot_running import TelegramScenario
from fakes.localgram import is_final
from fakes.model_scripted import says
from fakes.noon import NOON, TODAY
from fakes.patience import soon
from fakes.stored import set_aside
from fakes.words import saying

TEXTS = Texts()
NO_BACKEND = "No model backend is running."  # of BackendClient
CONTRACT = (
    "start help new resume stop retry undo changes plan status gpu model context memory forget jobs"
    " schedule tonight repos skills mcp summary link trust approve freeze thaw export settings timezone"
).split()


async def card(scenario: TelegramScenario, command: str) -> Message:
    """The bot's next message after a command, buttons or not."""
    await scenario.owner.send(command)
    return await scenario.owner.next_message()


async def test_all_commands_are_there_and_listed_per_scope(scenario: TelegramScenario) -> None:
    async with scenario.open():
        help_ = await scenario.owner.ask("/help")
        unknown = await scenario.owner.ask("/nonsense")
        await soon(lambda: len(scenario.gram.called("setMyCommands")) >= 3)
        made = scenario.gram.called("setMyCommands")
        scopes = [each.fields["scope"] for each in made if "language_code" not in each.fields]
    assert [command.name for command in COMMANDS] == CONTRACT
    assert [*Texts().commands] == CONTRACT
    assert all(f"/{name}: " in help_.text for name in CONTRACT)
    assert unknown.text == help_.text
    assert scopes == [
        '{"type": "all_private_chats"}',
        '{"type": "all_group_chats"}',
        '{"chat_id": 111, "type": "chat"}',
    ]


async def test_a_member_is_not_offered_what_owners_do(scenario: TelegramScenario) -> None:
    mia = scenario.gram.user("Mia Member")
    scenario.config = {"allow": frozenset({mia.id})}
    async with scenario.open():
        help_ = await mia.ask("/help")
        refused = await mia.ask("/approve")
    assert "/approve" not in help_.text
    assert refused.text == TEXTS.only_owners


async def test_new_and_resume_change_the_conversation(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        await scenario.owner.ask("my cat is called Tom")
        await scenario.owner.ask("/new")
        await scenario.owner.ask("another thing")
        list_ = await card(scenario, "/resume")
        (label,) = list_.buttons
        assert label.endswith("my cat is called Tom")
        await scenario.owner.press(list_, label)
        chosen = await scenario.owner.until(list_, lambda m: not m.keyboard)
        await scenario.owner.ask("which cat?")
    assert chosen.text == TEXTS.resumed.format(title="my cat is called Tom")
    lengths = [len(request.messages) for request in run.model.requests]
    assert lengths == [2, 2, 4]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/new what is the time?", "what is the time?"),
        ("/new@voltaire_bot who are you?", "who are you?"),
        ("/NEW   ideas for dinner", "ideas for dinner"),
        ("/new\ntwo lines\nof it", "two lines\nof it"),
        ("/new 合同期限？", "合同期限？"),
        ("/new /etc/hosts: what is it?", "/etc/hosts: what is it?"),
        ("/new 42", "42"),
    ],
)
async def test_new_with_words_begins_with_them(
    scenario: TelegramScenario, text: str, words: str
) -> None:
    async with scenario.open() as run:
        await scenario.owner.ask("my cat is called Tom")
        fresh = await scenario.owner.ask(text)
        await scenario.owner.next_message(where=is_final)
    assert fresh.text == TEXTS.new
    asked = run.model.requests[-1].messages
    assert (len(run.model.requests), len(asked)) == (2, 2)
    assert asked[-1].text.endswith(f"\n{words}")


async def test_retry_answers_once_more(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        nothing = await scenario.owner.ask("/retry")
        await scenario.owner.ask("hi")
        scenario.script = lambda request: says("Better.")
        better = await scenario.owner.ask("/retry")
    assert nothing.text == TEXTS.nothing_to_retry
    assert better.text == "Better."
    assert [len(request.messages) for request in run.model.requests] == [2, 2]


async def test_notes_are_shown_deleted_and_restored(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        await scenario.owner.ask(f"/timezone {NOON}")
        empty = await scenario.owner.ask("/memory")
        await run.store.notes.add("tg:111", "tea, no sugar")
        await run.store.notes.add("tg:111", "lives in Lyon")
        list_ = await card(scenario, "/memory")
        await scenario.owner.press(list_, "✕ 1")
        shorter = await scenario.owner.until(list_, lambda m: "Undo" in m.buttons)
        await scenario.owner.press(list_, "Undo")
        whole = await scenario.owner.until(list_, lambda m: "Undo" not in m.buttons)
        await run.store.notes.add("tg:111", "gone")
        await run.store.notes.delete("tg:111", 3)
        await run.store.notes.add("tg:111", "has a cat")
        with_gap = await card(scenario, "/memory")
        await run.store.notes.delete("tg:111", 4)
        gone = await card(scenario, "/forget 2")
        await scenario.owner.press(gone, "Undo")
        back = await scenario.owner.until(gone, lambda m: "Undo" not in m.buttons)
        none = await scenario.owner.ask("/forget 77")
        also_none = await card(scenario, f"/forget {'9' * 40}")
        corrected = await scenario.owner.ask("/memory 1 tea,  much sugar")
        notes = [note.text for note in await run.store.notes.all("tg:111")]
    assert empty.text == TEXTS.no_notes
    tea, lyon = f"1. tea, no sugar ({TODAY})", f"2. lives in Lyon ({TODAY})"
    assert list_.text.splitlines()[1:3] == [tea, lyon]
    assert tea not in shorter.text and lyon in shorter.text
    assert with_gap.text.splitlines()[1:4] == [tea, lyon, f"4. has a cat ({TODAY})"]
    assert "✕ 4" in with_gap.buttons
    assert whole.text == back.text == list_.text
    assert (gone.text, gone.buttons) == ("Forgotten.", ["Undo"])
    assert none.text == "There is no such note."
    assert also_none.text.startswith("My notes:")
    assert (corrected.text, notes) == ("Corrected.", ["tea, much sugar", "lives in Lyon"])


async def test_notes_are_pinned_by_word_and_by_button(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        for text in ("tea, no sugar", "lives in Lyon"):
            await run.store.notes.add("tg:111", text)
        pinned = await scenario.owner.ask("/memory pin 2")
        missing = await scenario.owner.ask("/memory pin 7")
        list_ = await card(scenario, "/memory")
        await scenario.owner.press(list_, "📌 1")
        both = await scenario.owner.until(list_, lambda m: "Unpin 1" in m.buttons)
        await scenario.owner.press(list_, "Unpin 2")
        first = await scenario.owner.until(list_, lambda m: "📌 2" in m.buttons)
        notes = {note.text: note.pinned for note in await run.store.notes.all("tg:111")}
        await scenario.owner.ask("/memory unpin 1")
        assert not any(note.pinned for note in await run.store.notes.all("tg:111"))
    assert (pinned.text, missing.text) == ("Pinned.", "There is no such note.")
    assert list_.buttons == ["✕ 1", "📌 1", "✕ 2", "Unpin 2"]
    assert "📌 tea, no sugar" in both.text and "📌 lives in Lyon" in both.text
    assert "📌 lives in Lyon" not in first.text
    assert notes == {"tea, no sugar": True, "lives in Lyon": False}


async def test_a_time_zone_moves_the_jobs_of_its_chat_alone(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        spec = (
            await Planner(run.store, "tg:111", "UTC").propose_text("every day at 9 stretch")
        ).spec
        tokyo = await Planner(run.store, "tg:111", "UTC").propose_text(
            "every day at 9 Tokyo time call"
        )
        for job in (spec, tokyo.spec, replace(spec, chat="tg:222"), replace(spec, state="paused")):
            await run.store.jobs.add(job)
        before = await run.store.jobs.of_chat("tg:111")
        soonest = first_due(spec, "Europe/Berlin", run.store.clock())
        told = await scenario.owner.ask("/timezone europe berlin")
        after = await run.store.jobs.of_chat("tg:111")
        others = await run.store.jobs.of_chat("tg:222")
        chat = await run.store.chats.get("tg:111")
        await scenario.owner.ask("what time is it?")
        prompt = str(run.model.requests[-1].messages[-1])
    assert chat and chat.timezone == "Europe/Berlin"
    assert "Europe/Berlin" in told.text and "every day at 09:00" in told.text
    assert "Europe/Berlin" in prompt
    moved, kept, paused = [
        (then.spec.next_at, now.spec.next_at) for then, now in zip(before, after, strict=True)
    ]
    assert all(then != now for then, now in [moved])
    assert moved[1] in (soonest, first_due(spec, "Europe/Berlin", run.store.clock()))
    assert kept[0] == kept[1]
    assert paused[1] is None and after[2].spec.timing["zone"] == "Europe/Berlin"
    assert others[0].spec == replace(spec, chat="tg:222")


def first_due(spec: JobSpec, zone: str, now: float) -> int:
    """The next 9 o'clock in that zone."""
    here = datetime.fromtimestamp(now, ZoneInfo(zone))
    due = here.replace(hour=9, minute=0, second=0, microsecond=0)
    return int((due if due > here else due + timedelta(days=1)).timestamp())


@pytest.mark.parametrize(
    ("asked", "zone"),
    [
        ("america/new york", "America/New_York"),
        ("tokyo", "Asia/Tokyo"),
    ],
)
async def test_a_time_zone_is_found_by_its_name_or_city(
    scenario: TelegramScenario, asked: str, zone: str
) -> None:
    async with scenario.open() as run:
        await scenario.owner.ask(f"/timezone {asked}")
        shown = await scenario.owner.ask("/timezone")
        settings = await card(scenario, "/settings")
        chat = await run.store.chats.get("tg:111")
    assert chat and chat.timezone == zone
    assert zone in shown.text and zone in settings.text


async def test_a_time_zone_that_is_unknown_names_the_nearest(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        misspelt = await scenario.owner.ask("/timezone Europe/Berln")
        unclear = await scenario.owner.ask("/timezone Louisville")
        nonsense = await scenario.owner.ask("/timezone qqqqqq")
        chat = await run.store.chats.get("tg:111")
    assert "no time zone Europe/Berln" in misspelt.text and "Europe/Berlin" in misspelt.text
    assert "America/Louisville" in unclear.text and "America/Kentucky/Louisville" in unclear.text
    assert "no time zone qqqqqq" in nonsense.text and "Europe/Berlin" in nonsense.text
    assert chat is None or chat.timezone == ""


async def test_everything_of_a_chat_is_deleted_after_a_second_question(
    scenario: TelegramScenario,
) -> None:
    async with scenario.open() as run:
        await scenario.owner.ask("a secret")
        await run.store.notes.add("tg:111", "a note")
        listed = await card(scenario, "/forget")
        assert listed.buttons == ["✕ 1", "📌 1", "Delete all"]
        await scenario.owner.press(listed, "Delete all")
        asked = await scenario.owner.until(listed, lambda m: "No" in m.buttons)
        question = await card(scenario, "/forget all")
        assert (asked.text, asked.buttons) == (question.text, question.buttons)
        assert question.buttons == ["Delete all", "No"]
        await scenario.owner.press(question, "Delete all")
        told = await scenario.owner.until(question, lambda m: not m.keyboard)
        notes = await card(scenario, "/memory")
        conversations = await run.store.chats.conversations("tg:111")
        row = (await run.store.ledger.rows())[-1]
    assert (row.kind, row.chat, row.facts) == (
        "admin",
        "tg:111",
        '{"act": "forget", "by": "Olga Owner"}',
    )
    assert told.text == TEXTS.all_forgotten
    assert notes.text == TEXTS.no_notes
    assert conversations == []


async def test_a_conversation_is_exported(scenario: TelegramScenario) -> None:
    async with scenario.open():
        nothing = await scenario.owner.ask("/export")
        await scenario.owner.ask("hi")
        await scenario.owner.send("/export")
        page = await scenario.owner.next_message(where=lambda m: m.media)
        data = await scenario.owner.next_message(where=lambda m: m.media)
    assert nothing.text == TEXTS.nothing_said
    assert page.media and data.media
    content = page.media.file.content.decode()
    assert content.startswith("# tg:111\n") and content.endswith("Hello.\n")
    [conversation] = json.loads(data.media.file.content)["conversations"]
    said = [(m["role"], m["text"]) for m in conversation["messages"]]
    assert said == [("user", "hi"), ("assistant", "Hello.")]


@pytest.mark.parametrize(("engine", "told"), [("Brave", "Brave"), ("", "off")])
async def test_settings_name_the_service_of_web_searches(
    scenario: TelegramScenario, engine: str, told: str
) -> None:
    scenario.services = lambda run: {"search": engine}
    async with scenario.open():
        settings = await card(scenario, "/settings")
    assert f"Web search: {told}" in settings.text.splitlines()


async def test_thinking_is_set_by_a_button(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        settings = await card(scenario, "/settings")
        await scenario.owner.press(settings, "2,048")
        changed = await scenario.owner.until(settings, lambda m: "• 2,048" in m.buttons)
        await scenario.owner.press(settings, "of long ones")
        await scenario.owner.until(settings, lambda m: "• of long ones" in m.buttons)
        chat = await run.store.chats.get("tg:111")
    assert settings.text.splitlines()[0].endswith(": model's default")
    assert settings.buttons == [
        "• model's default",
        "off",
        "512",
        "2,048",
        "8,192",
        "no limit",
        "• of all",
        "of long ones",
        "none",
        "• never",
        "to voice messages",
        "always",
        "• as in your app",
        *map(name_of, languages()),
    ]
    assert changed.text.splitlines()[0].endswith(": 2,048")
    assert chat and chat.settings == {"thinking": 2048, "tools": "long"}


async def test_status_tells_and_refreshes(scenario: TelegramScenario) -> None:
    async with scenario.open():
        shown = await card(scenario, "/status")
        query = await scenario.owner.press(shown, "Refresh")
        answer = await scenario.owner.answer(query)
    assert shown.text.startswith(f"{NO_BACKEND}\n0 waiting · ")
    assert shown.text.splitlines()[-1] == saying("page.url", "docs/page.md")
    assert shown.buttons == ["Refresh"]
    assert answer.text == ""


async def test_status_opens_the_page_for_an_owner_alone(scenario: TelegramScenario) -> None:
    scenario.config["page"] = "https://voltaire.example.org"
    member = scenario.gram.user("Max", id=222, started=True)
    scenario.config["allow"] = [member.id]
    async with scenario.open():
        shown = await card(scenario, "/status")
        await member.send("/status")
        other = await member.next_message()
        await scenario.owner.press(shown, "Refresh")
    opens = {"text": "Open the page", "web_app": {"url": "https://voltaire.example.org"}}
    assert [opens] == [dict(b) for row in shown.keyboard for b in row if "web_app" in b]
    assert other.buttons == ["Refresh"] and "voltaire page" not in other.text + shown.text


async def test_a_job_is_shown_with_its_next_times_and_made_by_a_press(
    scenario: TelegramScenario,
) -> None:
    async with scenario.open() as run:
        shown = await card(scenario, "/schedule\nevery day at 9:00 stretch")
        none = await scenario.owner.ask("/jobs")
        await scenario.owner.press(shown, TEXTS.plan_it)
        made = await scenario.owner.until(shown, lambda m: not m.keyboard)
        refused = await card(scenario, "/schedule every day at 10:00 run")
        await scenario.owner.press(refused, "No")
        dropped = await scenario.owner.until(refused, lambda m: not m.keyboard)
        list_ = await card(scenario, "/jobs")
        late = await card(scenario, "/schedule in 2 minutes drink")
        assert (await run.store.jobs.active_and_next())[0] == 1
        scenario.late = 600
        answer = await scenario.owner.answer(await scenario.owner.press(late, TEXTS.plan_it))
        assert (await run.store.jobs.active_and_next())[0] == 1
    assert shown.text == saying("task “stretch”", "every day at 09:00") and shown.text[-1] == "?"
    assert len(re.findall(r"\w{3} \d{4}-\d\d-\d\d 09:00", shown.text)) == 3
    assert shown.buttons == [TEXTS.plan_it, "No"]
    assert none.text == TEXTS.no_jobs
    assert made.text == saying("job 1: task “stretch”", "every day at 09:00")
    assert dropped.text == TEXTS.not_planned
    assert list_.text.startswith("1. Task “stretch”") and "\n" not in list_.text
    assert "nothing was planned" in answer.text


async def test_jobs_are_planned_paused_and_deleted(scenario: TelegramScenario) -> None:
    async with scenario.open():
        none = await scenario.owner.ask("/jobs")
        how = await scenario.owner.ask("/schedule")
        shown = await card(scenario, "/schedule every day at 9:00 stretch")
        await scenario.owner.press(shown, TEXTS.plan_it)
        await scenario.owner.until(shown, lambda m: not m.keyboard)
        list_ = await card(scenario, "/jobs")
        await scenario.owner.press(list_, "⏸ 1")
        paused = await scenario.owner.until(list_, lambda m: "▶ 1" in m.buttons)
        await scenario.owner.press(list_, "✕ 1")
        deleted = await scenario.owner.until(list_, lambda m: not m.keyboard)
    assert none.text == TEXTS.no_jobs
    assert how.text.startswith("Say when and what:")
    assert list_.buttons == ["⏸ 1", "Now 1", "✕ 1"]
    assert paused.text.endswith("(paused)")
    assert deleted.text == TEXTS.no_jobs


async def test_what_is_not_set_up_says_so(scenario: TelegramScenario) -> None:
    async with scenario.open():
        said = [
            (await scenario.owner.ask(command)).text
            for command in (
                "/gpu",
                "/model",
                "/jobs",
                "/repos",
                "/summary",
                "/approve",
                "/mcp",
                "/skills",
            )
        ]
    assert said == [
        NO_BACKEND,
        NO_BACKEND,
        TEXTS.no_jobs,
        TEXTS.no_repos,
        TEXTS.no_repos,
        TEXTS.no_grants,
        TEXTS.no_servers,
        TEXTS.no_skills,
    ]


async def test_commands_work_in_groups_when_addressed(scenario: TelegramScenario) -> None:
    group = scenario.gram.group("Team", scenario.owner)
    async with scenario.open():
        await scenario.owner.send("/help@voltaire_bot", chat=group)
        await scenario.owner.send("/help@another_bot", chat=group)
        await scenario.owner.send("/nonsense@voltaire_bot", chat=group)
        first = await scenario.owner.next_message(chat=group, where=is_final)
        second = await scenario.owner.next_message(chat=group, where=is_final)
        sent = [m for m in scenario.owner.messages(chat=group) if m.sender.is_bot and is_final(m)]
    assert first.text == second.text
    assert len(sent) == 2


@pytest.mark.parametrize("caption", ["/look@Another_Bot at this", "/help@another_bot"])
async def test_a_caption_for_another_bot_is_not_answered(
    scenario: TelegramScenario, caption: str
) -> None:
    scenario.config = {"groups": "all"}
    group = scenario.gram.group("Team", scenario.owner)
    async with scenario.open() as run:
        await scenario.owner.send_file("document", b"a", name="a.txt", caption=caption, chat=group)
        own = caption.replace("another_bot", "voltaire_bot").replace("Another_Bot", "Voltaire_Bot")
        await scenario.owner.send_file("document", b"a", name="b.txt", caption=own, chat=group)
        await scenario.owner.next_message(chat=group, where=is_final)
        await scenario.owner.ask("hi")
        told = [str(request.messages[-1].text) for request in run.model.requests]
    assert len(told) == 2 and told[0].endswith(own)


@pytest.mark.parametrize("number", ["", "²", "7" * 23, "1:2:3"])
async def test_a_button_of_a_made_up_key_has_expired(
    scenario: TelegramScenario, number: str
) -> None:
    """Which key a press has is an app's to say."""
    async with scenario.open() as run:
        card = await scenario.owner.ask("/jobs")
        for kind in BUTTONS:
            for key in (f"{kind}:{number}", f"{kind}:yes:{number}", f"{kind}:{number}:yes"):
                query = scenario.owner.press_button(card, {"callback_data": key})
                await scenario.owner.answer(query)
        assert await set_aside(run.store) == []
