"""A conversation as its people see it."""

import asyncio
import json
from collections.abc import Iterable
from typing import Annotated, Any

import pytest
from pydantic import Field
from telegram import Message as TelegramMessage
from telegram import User

from agent.tools.tool import Call, Output, tool
from bot.localgram import Message
from bot.localgram.feed import Acted, Drafted, Posted
from bot.telegram.incoming_message import message_text, strangers_text
from fakes.bot_running import TelegramScenario
from fakes.localgram import is_final
from fakes.model_scripted import calls, in_order, says
from fakes.patience import SECONDS, soon, within
from fakes.telegram_person import react
from fakes.words import saying


async def test_a_message_is_seen_and_answered_once(scenario: TelegramScenario) -> None:
    scenario.script = lambda request: says("**Hello**, `Olga`.")
    async with scenario.open():
        asked = await scenario.owner.send("hi")
        answer = await scenario.owner.next_message()
        await scenario.owner.until(asked, lambda m: "👌" in str(m.reactions))
    assert answer.text == "Hello, Olga."
    assert [(e["type"], e["offset"], e["length"]) for e in answer.entities] == [
        ("bold", 0, 5),
        ("code", 7, 4),
    ]
    assert not answer.silent and answer.reply_to is None
    asked = scenario.owner.messages()[0]
    assert [emoji for _, emoji in asked.reactions] == ["👌"]
    assert [m.text for m in scenario.owner.messages()] == ["hi", "Hello, Olga."]
    shown = ("sendMessage", "setMessageReaction")
    made = [call.method for call in scenario.gram.calls if call.method in shown]
    assert made == ["setMessageReaction", *shown]  # nobody waits for the second reaction


def shown_on(scenario: TelegramScenario) -> list[str]:
    """The bot's reactions, in order."""
    return [
        "".join(each["emoji"] for each in json.loads(call.fields.get("reaction", "[]")))
        for call in scenario.gram.called("setMessageReaction")
    ]


@pytest.mark.parametrize(
    ("setting", "shown"), [("done", ["👀", "😢"]), ("seen", ["👀"]), ("off", [])]
)
async def test_a_failed_answer_is_seen_on_its_question(
    scenario: TelegramScenario, setting: str, shown: list[str]
) -> None:
    scenario.config = {"reactions": setting}
    scenario.script = lambda request: says("")
    async with scenario.open():
        await scenario.owner.ask("hi")
        await scenario.gram.until(lambda: shown_on(scenario) == shown or None)
        await scenario.owner.ask("/stop")
    assert shown_on(scenario) == shown


async def test_what_is_thought_of_an_answer_is_kept_with_its_turn(
    scenario: TelegramScenario,
) -> None:
    async with scenario.open() as run:
        answer = await scenario.owner.ask("hi")
        for emoji, kept in (("👎", -1), ("👍", 1), ("🔥", None), ("👎", -1)):
            await react(scenario.owner, answer, emoji)
            await scenario.owner.ask("/stop")  # handled after it
            found = await run.store.database.all("SELECT feedback FROM turns")
            assert [row[0] for row in found] == [kept]
        stranger = scenario.gram.user("Sam Stranger")
        await react(stranger, answer, "👍")
        await scenario.owner.ask("/stop")
        [one] = await run.store.turns.disliked(9)
    assert (one.asked, one.answered) == ("hi", "Hello.")


@tool
async def look(call: Call, place: Annotated[str, Field(description="where")]) -> Output:
    """Look somewhere."""
    return Output(f"There are 3 birds in the {place}.")


async def test_the_text_grows_in_a_draft_and_typing_is_shown(scenario: TelegramScenario) -> None:
    go_on = asyncio.Event()
    scenario.script = lambda request: says("One **two** three", hold=go_on.wait)
    async with scenario.open():
        await scenario.owner.send("count")
        seen: dict[type, Any] = {}

        def grown(event: object) -> object:
            seen[type(event)] = event
            whole = Drafted in seen and "three" in seen[Drafted].text
            return (whole and Acted in seen) or None

        await scenario.owner.event(grown)
        assert [m.text for m in scenario.owner.messages()] == ["count"]
        go_on.set()
        answer = await scenario.owner.next_message()
    draft = seen[Drafted]
    assert seen[Acted].action == "typing"
    assert (draft.text, [e["type"] for e in draft.entities]) == ("One two three", ["bold"])
    assert answer.text == "One two three"


async def test_a_tool_call_becomes_its_result_in_a_silent_line(scenario: TelegramScenario) -> None:
    go_on = asyncio.Event()
    scenario.tools = [look]
    script = in_order([calls("look", place="tree"), says("Three birds.", hold=go_on.wait)])
    scenario.script = script
    async with scenario.open():
        await scenario.owner.send("birds?")
        line = await scenario.owner.next_message(where=lambda m: m.silent)
        done = await scenario.owner.until(line, lambda m: "✓" in m.text)
        go_on.set()
        answer = await scenario.owner.next_message(where=is_final)
    assert done.text == saying("✓ look tree", "\nThere are 3 birds")
    assert [e["type"] for e in done.entities] == ["bold", "code", "expandable_blockquote", "code"]
    assert answer.text == "Three birds."
    assert [m.id for m in scenario.owner.messages()] == sorted(
        m.id for m in scenario.owner.messages()
    )


def first_lines(messages: Iterable[Message]) -> list[str]:
    """Without the seconds of a tool, which are shown from a tenth of one."""
    return [m.text.partition("\n")[0].partition(" · ")[0] for m in messages]


async def test_a_quick_tools_line_stands_before_its_answer(scenario: TelegramScenario) -> None:
    scenario.tools = [look]
    scenario.script = in_order([calls("look", place="tree"), says("Three birds.")])
    async with scenario.open():
        await scenario.owner.send("birds?")
        line = await scenario.owner.next_message(where=lambda m: m.silent)
        await scenario.owner.next_message(where=is_final)
        await scenario.owner.until(line, lambda m: "✓" in m.text)
    assert first_lines(scenario.owner.messages()) == ["birds?", "✓ look tree", "Three birds."]


@pytest.mark.parametrize(("lines", "stays"), [("all", 1), ("long", 0), ("none", 0)])
@pytest.mark.parametrize("pace", ["quick", "slow"])
async def test_whether_tool_lines_stay_is_one_setting(
    scenario: TelegramScenario, lines: str, stays: int, pace: str
) -> None:
    """The same for a turn that takes a moment and for one too quick for a live view."""
    go_on = asyncio.Event()
    scenario.tools = [look]
    last = says("Three birds.", hold=go_on.wait) if pace == "slow" else says("Three birds.")
    scenario.script = in_order([calls("look", place="tree"), last])
    expected = [*["✓ look tree"] * stays, "Three birds."]

    def shown() -> list[str]:
        return first_lines(m for m in scenario.owner.messages() if m.id > asked.id)

    async with scenario.open() as run:
        await run.store.chats.set("tg:111", tools=lines)
        if pace == "quick":  # the chat's burst is spent: no live view comes before the answer
            for _ in range(4):
                await scenario.owner.ask("/stop")
        asked = await scenario.owner.send("birds?")
        if pace == "slow":
            await scenario.owner.event(lambda e: e if isinstance(e, Drafted | Posted) else None)
            go_on.set()
        await scenario.owner.next_message(where=is_final)
        await soon(lambda: run.services.chats.running() == [])
        await scenario.gram.until(lambda: shown() == expected or None)
    assert shown() == expected


async def test_stop_ends_a_running_turn_at_once(scenario: TelegramScenario) -> None:
    never = asyncio.Event()
    scenario.script = lambda request: says("Thinking about it", hold=never.wait)
    async with scenario.open() as run:
        await scenario.owner.send("think")
        await scenario.owner.event(lambda e: e if isinstance(e, Drafted) else None)
        with within(2):
            await scenario.owner.send("/stop")
            answer = await scenario.owner.next_message(where=is_final)
        assert answer.text.endswith("Stopped.")
        await scenario.owner.send("/stop")
        idle = await scenario.owner.next_message(where=is_final)
        assert run.services.chats.running() == []
    assert idle.text == "Nothing is running."


def wait_for(event: asyncio.Event):  # type: ignore[no-untyped-def]
    @tool
    async def wait(call: Call) -> Output:
        """Wait."""
        await event.wait()
        return Output("waited")

    return wait


async def test_a_group_is_answered_by_reply_and_its_live_message_goes(
    scenario: TelegramScenario,
) -> None:
    go_on = asyncio.Event()
    scenario.script = lambda request: says("One two three", hold=go_on.wait)
    mia = scenario.gram.user("Mia Member")
    group = scenario.gram.group("Team", scenario.owner, mia)
    scenario.config = {"allow": frozenset({group.id})}
    async with scenario.open() as run:
        await mia.send("nothing for you", chat=group)
        asked = await mia.send("@voltaire_bot count", chat=group)
        live = await mia.next_message(chat=group)
        live = await mia.until(live, lambda m: m.text == "One two three")
        assert live.silent
        go_on.set()
        answer = await mia.next_message(chat=group, where=is_final)
        await scenario.gram.until(lambda: mia.now(live) is None or None)
        (request,) = run.model.requests
    assert (answer.text, answer.reply_to) == ("One two three", asked.id)
    told = request.messages[-1]
    assert "from: Mia Member" in told.text and told.text.endswith("\ncount")


async def test_an_edit_corrects_and_a_quote_is_context(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        asked = await scenario.owner.send("What is 2+2?")
        answer = await scenario.owner.next_message(where=is_final)
        await scenario.owner.edit(asked, "What is 3+3?")
        await scenario.owner.next_message(where=is_final)
        await scenario.owner.send("why?", reply_to=answer)
        await scenario.owner.next_message(where=is_final)
    first, second, third = (r.messages[-1].text for r in run.model.requests)
    assert first.endswith("What is 2+2?")
    assert second == saying("correction: ", '"What is 2+2?"')
    assert second.endswith("\nWhat is 3+3?")
    assert "reply to: you: Hello." in third


async def test_an_edit_of_a_running_question_ends_its_answer_at_once(
    scenario: TelegramScenario,
) -> None:
    never = asyncio.Event()
    script = in_order([says("Four, since", hold=never.wait), says("Six.")])
    scenario.script = script
    async with scenario.open() as run:
        asked = await scenario.owner.send("What is 2+2?")
        await scenario.owner.event(lambda e: e if isinstance(e, Drafted) else None)
        with within(2):
            await scenario.owner.edit(asked, "What is 3+3?")
            stale = await scenario.owner.next_message(where=is_final)
            answer = await scenario.owner.next_message(where=is_final)
        second = run.model.requests[1].messages[-1].text
    assert (stale.text, answer.text) == ("Four, since\n\nStopped.", "Six.")
    assert second == saying("correction: ", '"What is 2+2?"')
    assert second.endswith("\nWhat is 3+3?")


async def test_an_edit_that_says_the_same_is_no_message(scenario: TelegramScenario) -> None:
    """As Telegram sends one when a link got its preview."""
    async with scenario.open() as run:
        asked = await scenario.owner.send("What is 2+2?")
        await scenario.owner.next_message(where=is_final)
        await scenario.owner.edit(asked, "What is 2+2?")
        await scenario.owner.ask("and 3+3?")
    assert len(run.model.requests) == 2


CARD = {"phone_number": "1", "first_name": "Zoe"}
DAY = {"id": 7, "type": "channel", "title": "The day"}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"dice": {"emoji": "🎲", "value": 4}}, "[🎲 shows 4]"),
        ({"story": {"id": 3, "chat": DAY}}, "[a story of The day, which cannot be seen here]"),
        ({"contact": CARD}, "[contact Zoe, 1]"),
        (
            {
                "venue": {
                    "location": {"latitude": 1.5, "longitude": 2.5},
                    "title": "Café",
                    "address": "Main Street 1",
                },
                "location": {"latitude": 1.5, "longitude": 2.5},
            },
            "[venue Café, Main Street 1]\n[location 1.5, 2.5]",
        ),
        (
            {
                "checklist": {
                    "title": "Shopping",
                    "tasks": [
                        {"id": 1, "text": "milk", "completion_date": 5},
                        {"id": 2, "text": "eggs"},
                    ],
                }
            },
            "[checklist: Shopping]\n[x] milk\n[ ] eggs",
        ),
        ({"unheard_of": {}}, "[a message of a kind that cannot be read here: unknown]"),
    ],
    ids=["dice", "story", "contact", "venue", "checklist", "unknown"],
)
def test_what_is_neither_text_nor_file_becomes_words(content: dict[str, Any], words: str) -> None:
    place = {"message_id": 1, "date": 1, "chat": {"id": 5, "type": "private"}}
    message = TelegramMessage.de_json({**place, **content}, None)
    assert message_text(message, User(1, "bot", True, username="voltaire_bot")) == words


@pytest.mark.parametrize("field", ["story", "contact", "venue"])
def test_what_others_have_named_is_a_strangers(field: str) -> None:
    place = {"message_id": 1, "date": 1, "chat": {"id": 5, "type": "private"}}
    where = {"latitude": 1.5, "longitude": 2.5}
    content = {
        "story": {"id": 3, "chat": DAY},
        "contact": CARD,
        "venue": {"location": where, "title": "Do this", "address": "now"},
    }
    message = TelegramMessage.de_json({**place, field: content[field]}, None)
    assert strangers_text(message, User(1, "bot", True))


def test_a_quotation_of_what_another_bot_wrote_for_a_person_is_a_strangers() -> None:
    person, bot = {"id": 5, "first_name": "Ann", "is_bot": False}, {"id": 9, "first_name": "Other"}
    place = {"date": 1, "chat": {"id": 5, "type": "private"}, "from": person}
    before = {**place, "message_id": 1, "text": "do this", "via_bot": {**bot, "is_bot": True}}
    given = {**place, "message_id": 2, "text": "look", "reply_to_message": before}
    assert strangers_text(TelegramMessage.de_json(given, None), User(1, "bot", True))


async def test_a_paste_in_pieces_and_forwards_are_one_message(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        await scenario.owner.send("a" * 4096)
        await scenario.owner.send("b" * 100)
        await scenario.owner.next_message(where=is_final)
        (request,) = run.model.requests
    assert request.messages[-1].text.endswith("a" * 4096 + "\n" + "b" * 100)


async def test_the_lines_of_a_turn_that_was_cut_off_are_ended_by_the_next_start(
    scenario: TelegramScenario,
) -> None:
    never = asyncio.Event()
    scenario.tools = [look, wait_for(never)]
    asks = [calls("look", place="tree"), calls("wait")]
    scenario.script = in_order([*asks, says("Never mind.")])
    async with scenario.open() as run:
        await scenario.owner.send("how long?")
        line = await scenario.owner.next_message(where=lambda m: m.silent)
        shown = await scenario.owner.until(line, lambda m: "⏳ wait" in m.text)
        async with asyncio.timeout(SECONDS):
            while "wait" not in str(await run.store.key_values.with_prefix("live:", list[Any])):
                await asyncio.sleep(0.01)
    assert "⏳ wait" in shown.text
    async with scenario.open() as run:
        ended = await scenario.owner.until(line, lambda m: "⏳" not in m.text)
        await scenario.owner.next_message(where=is_final)
        async with asyncio.timeout(SECONDS):
            while await run.store.key_values.with_prefix("live:", list[Any]):
                await asyncio.sleep(0.01)
    assert ended.text == saying(
        "✓ look tree", "\nThere are 3", "\n✗ wait", "interrupted by a restart"
    )


async def test_the_live_message_of_a_group_is_gone_after_a_restart(
    scenario: TelegramScenario,
) -> None:
    never = asyncio.Event()
    lines = in_order([says("One two three", hold=never.wait), says("Four.")])
    scenario.script = lines
    group = scenario.gram.group("Team", scenario.owner)
    scenario.config = {"allow": frozenset({group.id})}
    async with scenario.open() as run:
        await scenario.owner.send("@voltaire_bot count", chat=group)
        live = await scenario.owner.next_message(chat=group)
        live = await scenario.owner.until(live, lambda m: m.text == "One two three")
        async with asyncio.timeout(SECONDS):
            while not await run.store.key_values.with_prefix("live:", list[Any]):
                await asyncio.sleep(0.01)
    async with scenario.open():
        await scenario.gram.until(lambda: scenario.owner.now(live) is None or None)
        answer = await scenario.owner.next_message(chat=group, where=is_final)
    assert (live.text, answer.text) == ("One two three", "Four.")
