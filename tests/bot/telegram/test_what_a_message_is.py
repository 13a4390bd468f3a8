"""Links by their offsets, paths that are no commands, and answers to photos, voices, documents and long posts."""

from pathlib import Path
from typing import Any

import pytest
from telegram import Message as TelegramMessage
from telegram import User

from agent.pictures import VisionLimits
from agent.sandbox.sandbox import Sandboxes
from agent.voice.speech_to_text import SpeechRecognizer, SpeechToText
from bot.commands.table import is_known
from bot.intake import CUT, LONGEST
from bot.matrix.incoming_message import parse_message
from bot.telegram.handlers import is_command
from bot.telegram.incoming_message import message_text, quotation, strangers_text
from fakes import recordings
from fakes.bot_running import TelegramScenario
from fakes.localgram import is_final

from ..matrix.test_what_a_message_is import event
from .test_media import PNG, images, told

ME = User(7, "Voltaire", is_bot=True, username="voltaire_bot")
OLGA = {"id": 1, "is_bot": False, "first_name": "Olga"}
GROUP = {"id": -5, "type": "group", "title": "Team"}


def message(**fields: Any) -> TelegramMessage:
    asked = {"message_id": 2, "date": 1_800_000_000, "chat": GROUP, "from": OLGA, **fields}
    found = TelegramMessage.de_json(asked, None)
    assert found
    return found


def link(text: str, words: str, url: str, nth: int = 0) -> dict[str, Any]:
    """A link on the nth place of these words, counted as Telegram does."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(words, at + 1)
    units = [len(part.encode("utf-16-le")) // 2 for part in (text[:at], words)]
    return {"type": "text_link", "offset": units[0], "length": units[1], "url": url}


def bold(text: str) -> dict[str, Any]:
    return {"type": "bold", "offset": 0, "length": len(text.encode("utf-16-le")) // 2}


def linked(text: str, words: str, *urls: str, more: tuple[dict[str, Any], ...] = ()) -> Any:
    found = [*more, *(link(text, words, url, nth) for nth, url in enumerate(urls))]
    return text, found


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("@voltaire_bot look", "look"),
        ("@Voltaire_Bot: look", "look"),
        ("@voltaire_bot2 look", "@voltaire_bot2 look"),
        ("@voltaire_bots, @voltaire_bot look", "@voltaire_bots, @voltaire_bot look"),
        ("@voltaire_botЖ look", "@voltaire_botЖ look"),
    ],
)
def test_a_longer_name_is_another_bots(text: str, read: str) -> None:
    assert message_text(message(text=text), ME) == read


def test_a_contact_has_both_names() -> None:
    card = {"first_name": "Ada", "last_name": "King", "phone_number": "+44"}
    assert message_text(message(contact=card), ME) == "[contact Ada King, +44]"


FILE = {"file_id": "f", "file_unique_id": "u"}
LINKS = [
    (linked("here, here and here", "here", "a:1", "b:2", "c:3"), "here (a:1), here (b:2) and here (c:3)"),
    (linked("👍🏽 here 👩‍👩‍👧 here", "here", "a:1", "b:2"), "👍🏽 here (a:1) 👩‍👩‍👧 here (b:2)"),
    (linked("𝔄𝔅 link", "link", "a:1"), "𝔄𝔅 link (a:1)"),
    (("a a", [link("a a", "a", "b:2", 1)]), "a a (b:2)"),
    (("the then", [link("the then", "the", "b:2", 1)]), "the the (b:2)n"),
    (linked("合同 合同", "合同", "a:1", "b:2"), "合同 (a:1) 合同 (b:2)"),
    (linked("here here", "here", "a:1", "b:2", more=(bold("here here"),)), "here (a:1) here (b:2)"),
    (linked("b:2 here", "here", "b:2"), "b:2 here (b:2)"),
    (linked("https://a.b/", "https://a.b/", "https://a.b"), "https://a.b/"),
    (linked("(here) (here)", "(here)", "a:1", "b:2"), "(here) (a:1) (here) (b:2)"),
    (linked("x\n👉", "👉", "a:1"), "x\n👉 (a:1)"),
    (("short", [{"type": "text_link", "offset": 3, "length": 99, "url": "a:1"}]), "short (a:1)"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "expected"), LINKS, ids=range(len(LINKS)))
@pytest.mark.parametrize("place", ["text", "caption", "reply", "answered caption", "quote"])
def test_each_link_stands_behind_its_own_words(
    said: tuple[str, list[dict[str, Any]]], expected: str, place: str
) -> None:
    text, entities = said
    of_text = {"text": text, "entities": entities}
    of_caption = {"caption": text, "caption_entities": entities}
    earlier = {"message_id": 1, "date": 1_800_000_000, "chat": GROUP, "from": OLGA}
    match place:
        case "text":
            found = message_text(message(**of_text), ME)
        case "caption":
            found = message_text(message(**of_caption), ME)
        case _:
            part = {**of_text, "position": 0} if place == "quote" else None
            answered = (
                of_caption if place == "answered caption" else {"text": "else"} if part else of_text
            )
            quote = quotation(
                message(text="and?", reply_to_message={**earlier, **answered}, quote=part), ME
            )
            assert quote
            found = quote.line.removeprefix("Olga: ")
    assert found == expected


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ({"location": {"latitude": 1.5, "longitude": 2}}, "Olga: [location 1.5, 2]"),
        ({"contact": {"first_name": "Max", "phone_number": "9"}}, "Olga: [contact Max, 9]"),
        ({"dice": {"emoji": "🎲", "value": 6}}, "Olga: [🎲 shows 6]"),
        (
            {
                "sticker": {
                    **FILE,
                    "type": "regular",
                    "width": 1,
                    "height": 1,
                    "is_animated": False,
                    "is_video": False,
                    "emoji": "👍",
                }
            },
            "Olga: [sticker 👍]",
        ),
        (
            {
                "venue": {
                    "location": {"latitude": 1, "longitude": 2},
                    "title": "Bar",
                    "address": "Road 1",
                }
            },
            "Olga: [venue Bar, Road 1]",
        ),
        ({"document": {**FILE, "file_name": "a.pdf"}}, "Olga: [a.pdf]"),
        ({"caption": "my cat", "document": {**FILE, "file_name": "a.png"}}, "Olga: my cat [a.png]"),
        ({"text": "x" * LONGEST}, "Olga: " + "x" * LONGEST),
        ({"text": "x" * LONGEST + "y"}, "Olga: " + "x" * LONGEST + CUT),
        ({"text": "x" * 700, "from": ME.to_dict()}, "you: " + "x" * 600 + CUT),
        ({"text": "short", "from": ME.to_dict()}, "you: short"),
    ],
)
def test_what_is_answered_is_told_whole_or_the_cut_is_marked(
    content: dict[str, Any], line: str
) -> None:
    earlier = {"message_id": 1, "date": 1_800_000_000, "chat": GROUP, "from": OLGA, **content}
    quote = quotation(message(text="@voltaire_bot what is this?", reply_to_message=earlier), ME)
    assert quote and quote.line == line


def test_a_file_of_another_chat_that_is_answered_is_fetched() -> None:
    origin = {"type": "hidden_user", "date": 1, "sender_user_name": "Eve"}
    photo = [{"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1}]
    there = {"origin": origin, "photo": photo}
    quote = quotation(message(text="what is this?", external_reply=there), ME)
    assert quote
    [file] = quote.attachments
    assert (file.kind, file.file_id, file.answered) == ("photo", "f", True)


POLL = {
    "id": "1", "question": "When?", "total_voter_count": 0, "is_closed": False, "is_anonymous": True,
    "type": "regular", "allows_multiple_answers": False, "allows_revoting": True, "members_only": False,
    "options": [{"text": text, "voter_count": 0, "persistent_id": text[0]} for text in ("Monday", "Friday")],
}  # fmt: skip
TASKS = {"title": "L", "tasks": [{"id": 1, "text": "milk"}, {"id": 2, "text": "eggs"}]}


def unreadable(kind: str) -> str:
    return f"[a message of a kind that cannot be read here: {kind}]"


ELSEWHERE = [
    ({"location": {"latitude": 1, "longitude": 2}}, "[location 1, 2]"),
    ({"contact": {"first_name": "Max", "phone_number": "9"}}, "[contact Max, 9]"),
    ({"venue": {"location": {"latitude": 1, "longitude": 2}, "title": "Bar", "address": "Road 1"}}, "[venue Bar, Road 1]"),
    ({"dice": {"emoji": "🎲", "value": 6}}, "[🎲 shows 6]"),
    ({"checklist": {"title": "L", "tasks": [{"id": 1, "text": "milk"}]}}, "[checklist: L]\n[ ] milk"),
    ({"story": {"chat": GROUP, "id": 3}}, "[a story of Team, which cannot be seen here]"),
    ({"document": {**FILE, "file_name": "a.pdf"}}, "[a.pdf]"),
    ({"poll": POLL}, "[poll: When? (Monday; Friday)]"),
    ({"game": {"title": "G", "description": "d", "photo": []}}, unreadable("game")),
    ({"giveaway": {"chats": [GROUP], "winners_selection_date": 1, "winner_count": 2}}, unreadable("giveaway")),
    ({"giveaway_winners": {"chat": GROUP, "giveaway_message_id": 1, "winners_selection_date": 1, "winner_count": 0,
                           "winners": []}}, unreadable("giveaway winners")),
    ({"invoice": {"title": "T", "description": "d", "start_parameter": "", "currency": "EUR", "total_amount": 1}},
     unreadable("invoice")),
    ({"paid_media": {"star_count": 5, "paid_media": []}}, unreadable("paid media")),
    ({}, "[a message of another chat, which cannot be seen here]"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "line"), ELSEWHERE)
def test_what_is_answered_in_another_chat_is_told(content: dict[str, Any], line: str) -> None:
    there = {"origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Eve"}, **content}
    quote = quotation(message(text="what is this?", external_reply=there), ME)
    assert quote and quote.line == line


@pytest.mark.parametrize(
    ("named", "line"),
    [
        ({"reply_to_story": {"chat": GROUP, "id": 3}}, "[a story of Team, which cannot be seen here]"),
        ({"reply_to_story": {"chat": {**OLGA, "type": "private"}, "id": 3}}, "[a story of Olga, which cannot be seen here]"),
        ({"replied": {"checklist": TASKS}}, "Olga: [checklist: L]\n[ ] milk\n[ ] eggs"),
        ({"replied": {"checklist": TASKS}, "reply_to_checklist_task_id": 2},
         "Olga: [checklist: L]\n[ ] milk\n[ ] eggs\n[namely: eggs]"),
        ({"there": {"checklist": TASKS}, "reply_to_checklist_task_id": 1},
         "[checklist: L]\n[ ] milk\n[ ] eggs\n[namely: milk]"),
        ({"replied": {"checklist": TASKS}, "reply_to_checklist_task_id": 7}, "Olga: [checklist: L]\n[ ] milk\n[ ] eggs"),
        ({"replied": {"poll": POLL}, "reply_to_poll_option_id": "F"},
         "Olga: [poll: When? (Monday; Friday)]\n[namely: Friday]"),
        ({"replied": {"poll": POLL}}, "Olga: [poll: When? (Monday; Friday)]"),
        ({"replied": {"caption": "look", "paid_media": {"star_count": 5, "paid_media": []}}},
         f"Olga: look\n{unreadable('paid media')}"),
        ({"replied": {"new_chat_title": "T"}}, f"Olga: {unreadable('unknown')}"),
    ],
)  # fmt: skip
def test_what_a_reply_names_is_told(named: dict[str, Any], line: str) -> None:
    earlier = {"message_id": 1, "date": 1_800_000_000, "chat": GROUP, "from": OLGA}
    origin = {"origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Eve"}}
    replied, there = named.pop("replied", None), named.pop("there", None)
    asked = message(
        text="and?",
        reply_to_message=replied and {**earlier, **replied},
        external_reply=there and {**origin, **there},
        **named,
    )
    quote = quotation(asked, ME)
    assert quote and quote.line == line
    assert bool(strangers_text(asked, ME)) == (replied is None)


SENTENCES = [
    "/status quo of the budget?", "/model railways: where do I start", "/context of that quote?", "/gpu prices in 2026?",
    "/memory is full, what now", "/help me write a letter", "/skills for a junior developer?", "/jobs in Berlin?",
    "/settings of my router: where are they", "/export to PDF?", "/changes in the tax law?", "/resume for a nurse?",
    "/repos with good examples of asyncio", "/model 方法是什么？", "/Help, my disk is full, what can I delete?",
    "/status\nof the fridge?", "/plan a trip to Rome", "/trust fund taxes?", "/forget what I said about Max", "/thaw a turkey: how long?",
    "/approve of my idea?", "/timezone of Peru?", "/mcp servers for Home Assistant: which are good?", "/link to your manual?",
]  # fmt: skip
ORDERS = [
    "/status", "/status please", "/help model", "/memory 3 the key is under the mat", "/memory pin 3", "/gpu lend 2h",
    "/jobs 3 pause until Monday at nine", "/changes 3", "/stop it now, will you?", "/new what is the time?",
    "/undo that, will you?", "/schedule every day at 9 ask how I am", "/help@voltaire_bot who are you?", "/stauts",
    "/memory unpin 3 at once or later", "/summary site", "/plan add buy milk and eggs today", "/plan 2 ask Max what he thinks", "/forget all",
    "/freeze all of it, will you?", "/timezone Europe/Berlin", "/thaw 123456",
]  # fmt: skip


@pytest.mark.parametrize("text", SENTENCES + ORDERS)
def test_a_sentence_that_begins_like_a_command_is_none(text: str) -> None:
    ours = is_command(message(text=text, chat={"id": 1, "type": "private"}), ME)
    command = parse_message("!r:x", event(body=text)).command
    assert ours == (text in ORDERS)
    if command and "stauts" not in text:
        assert is_known(*command) == ours


COMMANDS = ["/HELP", "/help@voltaire_bot", "/home"]
MESSAGES = [
    "/home is 98 % full, what can I delete?",
    "/etc/hosts",
    "/tmp\nis full",
    "/status.txt is empty",
    "/ is full",
]


async def test_a_text_that_begins_with_a_path_is_no_command(scenario: TelegramScenario) -> None:
    async with scenario.open() as run:
        for text in COMMANDS:
            answer = await scenario.owner.ask(text)
            assert "/status" in answer.text and not run.model.requests, text
        for text in MESSAGES:
            await scenario.owner.ask(text)
            assert told(run).endswith(f"\n{text}"), text
        asked = await scenario.owner.send("/home is ful")
        await scenario.owner.next_message(where=is_final)
        await scenario.owner.edit(asked, "/home is full")
        await scenario.owner.next_message(where=is_final)
        assert told(run).endswith("\n/home is full")


class Recognizer:
    piece_seconds, name, heard = 10.0, "a script", 0

    async def words(self, box: object, recording: bytes) -> str:
        Recognizer.heard += 1
        return "we meet at six"


async def test_the_file_that_is_answered_is_seen_heard_and_read(
    scenario: TelegramScenario, sandboxes: Sandboxes
) -> None:
    async def recognizer() -> SpeechRecognizer:
        return Recognizer()

    scenario.sandbox, scenario.vision = sandboxes.of, VisionLimits(pixels=10_000, most=2)
    scenario.speech_to_text = lambda: SpeechToText(Path("nowhere"), model=recognizer)
    mia = scenario.gram.user("Mia Member")
    group = scenario.gram.group("Team", scenario.owner, mia)
    scenario.config = {"allow": frozenset({group.id})}
    voice, post = recordings.spoken("We meet at six."), "A long post. " * 250

    async def asked(answered: Any, who: Any = mia) -> str:
        where = group if who is mia else None
        await who.send("@voltaire_bot what is this?", chat=where, reply_to=answered)
        await who.next_message(chat=where, where=is_final)
        return told(run)

    async with scenario.open() as run:
        await asked(await scenario.owner.send_file("photo", PNG, chat=group))
        assert len(images(run.model.requests[-1].messages)) == 1
        text = await asked(
            await scenario.owner.send_file("document", b"a,b\n1,2\n", name="t.csv", chat=group)
        )
        assert "reply to: Olga Owner (@olga): [t.csv]" in text and "received/t.csv: 2 lines" in text
        assert "we meet at six" in await asked(
            await scenario.owner.send_file("voice", voice, chat=group)
        )
        assert post.strip() in await asked(await scenario.owner.send(post, chat=group))
        own = await scenario.owner.send_file("voice", voice)
        await scenario.owner.next_message(where=is_final)
        heard = Recognizer.heard
        assert ": we meet at six" in await asked(own, scenario.owner)
        assert Recognizer.heard == heard  # not again
