"""Texts as they are kept: trimmed, counted, formatted; edits, drafts, replies, forwards."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.localgram import Localgram, Person, VirtualClock
from bot.localgram.entities import formatted
from bot.localgram.wire import ApiError
from fakes.patience import SECONDS
from fakes.words import saying

from .conftest import Raw

ROOT = Path(__file__).parents[3]


async def sent(raw: Raw, **fields: Any) -> Any:
    return await raw.ok("sendMessage", **fields)


async def test_a_sent_message_is_told_whole(raw: Raw, alice: Person, gram: Localgram) -> None:
    first = await alice.send("hi")
    message = await sent(
        raw,
        chat_id=5,
        text="  hello  \n",
        disable_notification=True,
        reply_parameters={"message_id": first.id, "quote": "i"},
    )
    assert message == {
        "message_id": first.id + 1,
        "from": {
            "id": 777,
            "is_bot": True,
            "first_name": "Voltaire",
            "username": "voltaire_bot",
        },
        "chat": {"id": 5, "type": "private", "first_name": "Alice"},
        "date": 1_800_000_000,
        "text": "hello",
        "reply_to_message": {
            "message_id": first.id,
            "from": {"id": 5, "is_bot": False, "first_name": "Alice", "language_code": "en"},
            "chat": {"id": 5, "type": "private", "first_name": "Alice"},
            "date": 1_800_000_000,
            "text": "hi",
        },
        "quote": {"text": "i", "position": 1, "is_manual": True},
    }
    seen = await alice.next_message()
    assert (seen.text, seen.silent, seen.reply_to) == ("hello", True, first.id)


async def test_length_counts_code_points_and_offsets_utf16(raw: Raw, alice: Person) -> None:
    entity = {"type": "bold", "offset": 2, "length": 2}
    message = await sent(raw, chat_id=5, text="😀" * 4096, entities=[entity])
    assert message["entities"] == [entity]
    assert await raw.refusal("sendMessage", chat_id=5, text="😀" * 4097) == (
        "Bad Request: message is too long"
    )


def bold(offset: int, length: int) -> dict[str, Any]:
    return {"type": "bold", "offset": offset, "length": length}


@pytest.mark.parametrize(
    ("text", "given", "kept"),
    [
        ("  ab ", [bold(3, 1)], ("ab", (bold(1, 1),))),
        ("  ab ", [bold(0, 5)], ("  ab", (bold(0, 4),))),
        ("ab", [bold(0, 0)], ("ab", ())),
        (
            "abcdef",
            [bold(0, 4), {"type": "italic", "offset": 2, "length": 4}],
            (
                "abcdef",
                (
                    bold(0, 4),
                    {"type": "italic", "offset": 2, "length": 2},
                    {"type": "italic", "offset": 4, "length": 2},
                ),
            ),
        ),
        (
            "abcd",
            [{"type": "code", "offset": 1, "length": 2}, bold(0, 4)],
            ("abcd", (bold(0, 1), {"type": "code", "offset": 1, "length": 2}, bold(3, 1))),
        ),
        (
            "abcd",
            [
                {"type": "blockquote", "offset": 0, "length": 3},
                {"type": "pre", "offset": 2, "length": 2},
            ],
            ("abcd", ({"type": "blockquote", "offset": 0, "length": 3},)),
        ),
        ("a\r\nbc", [bold(3, 2)], ("a\nbc", (bold(2, 2),))),
        ("\u202eab\u2028c", [bold(0, 3)], ("abc", (bold(0, 2),))),
        (
            "see http://a.bc/",
            [{"type": "code", "offset": 0, "length": 8}],
            ("see http://a.bc/", ({"type": "code", "offset": 0, "length": 8},)),
        ),
    ],
)
def test_entities_are_repaired(text: str, given: list[Any], kept: object) -> None:
    assert formatted(text, "", given) == kept


WITHOUT_TDLIB = """
import sys
sys.modules["tdjson"] = None
from bot.localgram.entities import formatted
from bot.localgram.wire import ApiError
bold = {"type": "bold", "offset": 0, "length": 1}
link = {"type": "text_link", "offset": 0, "length": 1, "url": "https://a.bc/d e"}
print(formatted("/new @bob_x", "", [bold]), formatted("x", "", [link]))
try:
    formatted("*x*", "MarkdownV2", [])
except ApiError as error:
    print(error)
"""


async def test_without_tdlib_markup_is_refused_loudly() -> None:
    words = [sys.executable, "-c", WITHOUT_TDLIB]
    out = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=SECONDS
    )
    command = {"type": "bot_command", "offset": 0, "length": 4}
    mention = {"type": "mention", "offset": 5, "length": 6}
    link = {"type": "text_link", "offset": 0, "length": 1, "url": "https://a.bc/d e"}
    assert out.stdout.splitlines() == [
        f"{('/new @bob_x', (command, bold(0, 1), mention))} {('x', (link,))}",
        saying("bad request", "tdjson", "parse_mode"),
    ]


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(ApiError, match="Bad Request: strings must be encoded in UTF-8"):
        formatted("a\ud800", "", [])


def test_a_message_keeps_a_hundred_entities() -> None:
    _, kept = formatted("ab " * 150, "", [bold(3 * at, 1) for at in range(150)])
    assert kept == tuple(bold(3 * at, 1) for at in range(100))


async def test_markup_becomes_entities(raw: Raw, alice: Person) -> None:
    pytest.importorskip("tdjson")
    message = await sent(raw, chat_id=5, text="*b* `c`", parse_mode="MarkdownV2")
    assert (message["text"], message["entities"]) == (
        "b c",
        [bold(0, 1), {"type": "code", "offset": 2, "length": 1}],
    )


async def test_edits_and_deletions_are_seen(raw: Raw, alice: Person, clock: VirtualClock) -> None:
    keys = {"inline_keyboard": [[{"text": "A", "callback_data": "a"}]]}
    message = await sent(raw, chat_id=5, text="one", reply_markup=keys)
    seen = await alice.next_message()
    assert seen.buttons == ["A"]
    clock.advance(3)
    place = {"chat_id": 5, "message_id": message["message_id"]}
    edited: Any = await raw.ok("editMessageText", **place, text="two")
    assert edited == {
        **{k: v for k, v in message.items() if k != "reply_markup"},
        "text": "two",
        "edit_date": 1_800_000_003,
    }
    assert (await alice.until(seen, lambda now: now.text == "two")).buttons == []
    await raw.ok("deleteMessage", **place)
    assert alice.now(seen) is None
    assert await raw.refusal("editMessageText", **place, text="x") == (
        "Bad Request: message to edit not found"
    )


async def test_a_draft_lasts_until_the_message_or_thirty_seconds(
    raw: Raw, alice: Person, clock: VirtualClock
) -> None:
    await raw.ok("sendMessageDraft", chat_id=5, draft_id=3, text="gro")
    await raw.ok("sendMessageDraft", chat_id=5, draft_id=3, text="growing")
    draft = alice.draft()
    assert draft is not None
    assert (draft.text, alice.messages()) == ("growing", [])
    clock.advance(30)
    assert alice.draft() is None
    await raw.ok("sendMessageDraft", chat_id=5, draft_id=4, text="")
    assert alice.draft() is not None
    await sent(raw, chat_id=5, text="grown")
    assert alice.draft() is None


async def test_a_draft_can_be_stopped(raw: Raw, alice: Person) -> None:
    await raw.ok("sendMessageDraft", chat_id=5, draft_id=3, text="x")
    with pytest.raises(LookupError):
        await alice.stop_draft()
    await raw.ok("sendMessageDraft", chat_id=5, draft_id=3, text="x", can_stop=True)
    await alice.stop_draft()
    updates: Any = await raw.ok("getUpdates")
    told = {"draft_id": 3, "chat": {"id": 5, "type": "private", "first_name": "Alice"}}
    assert updates[0]["stopped_message_generation"] == told


async def test_typing_lasts_five_seconds(raw: Raw, alice: Person, clock: VirtualClock) -> None:
    await raw.ok("sendChatAction", chat_id=5, action="typing")
    assert alice.action() == "typing"
    clock.advance(5)
    assert alice.action() == ""


async def test_forwards_and_copies(raw: Raw, alice: Person) -> None:
    said = await alice.send("hi")
    place = {"chat_id": 5, "from_chat_id": 5, "message_id": said.id}
    forwarded: Any = await raw.ok("forwardMessage", **place)
    assert (forwarded["text"], forwarded["forward_origin"]["sender_user"]["id"]) == ("hi", 5)
    copied: Any = await raw.ok("copyMessage", **place)
    assert copied == {"message_id": forwarded["message_id"] + 1}


async def test_reactions(raw: Raw, alice: Person) -> None:
    said = await alice.send("hi")
    place = {"chat_id": 5, "message_id": said.id}
    await raw.ok("setMessageReaction", **place, reaction=[{"type": "emoji", "emoji": "👀"}])
    assert (await alice.until(said, lambda now: now.reactions)).reactions == ((777, "👀"),)
    await raw.ok("setMessageReaction", **place, reaction=[])
    assert (await alice.until(said, lambda now: not now.reactions)).reactions == ()


async def test_commands_by_scope_and_language(raw: Raw, gram: Localgram, alice: Person) -> None:
    def command(name: str) -> list[dict[str, str]]:
        return [{"command": name, "description": name}]

    boss = gram.user("Boss", id=9, started=True, language="fr")
    group = gram.group("Friends", alice)
    await raw.ok("setMyCommands", commands=command("plain"))
    await raw.ok("setMyCommands", commands=command("simple"), language_code="fr")
    private = {"type": "all_private_chats"}
    await raw.ok("setMyCommands", commands=command("private"), scope=private)
    own = {"type": "chat", "chat_id": 9}
    await raw.ok("setMyCommands", commands=command("own"), scope=own)
    profile = gram.world.profile
    shown = {
        "alice": profile.shown_commands(alice.chat(), 5, "en"),
        "boss": profile.shown_commands(boss.chat(), 9, "fr"),
        "group": profile.shown_commands(group, 5, "fr"),
    }
    assert shown == {
        "alice": command("private"),
        "boss": command("own"),
        "group": command("simple"),
    }
    assert await raw.ok("getMyCommands", scope=own) == command("own")
    await raw.ok("deleteMyCommands", scope=own)
    assert await raw.ok("getMyCommands", scope=own) == []
    assert profile.shown_commands(boss.chat(), 9, "fr") == command("private")


async def test_descriptions_and_name(raw: Raw) -> None:
    await raw.ok("setMyDescription", description="long")
    await raw.ok("setMyShortDescription", short_description="court", language_code="fr")
    await raw.ok("setMyName", name="Arouet")
    assert await raw.ok("getMyDescription") == {"description": "long"}
    assert await raw.ok("getMyShortDescription") == {"short_description": ""}
    assert await raw.ok("getMyShortDescription", language_code="fr") == {
        "short_description": "court"
    }
    me: Any = await raw.ok("getMe")
    assert (me["first_name"], me["username"]) == ("Arouet", "voltaire_bot")


async def test_pins(raw: Raw, alice: Person) -> None:
    said = await alice.send("hi")
    await raw.ok("pinChatMessage", chat_id=5, message_id=said.id)
    chat: Any = await raw.ok("getChat", chat_id=5)
    assert chat["pinned_message"]["message_id"] == said.id
    await raw.ok("unpinAllChatMessages", chat_id=5)
    assert "pinned_message" not in await raw.ok("getChat", chat_id=5)  # type: ignore[operator]
