"""Every refusal Telegram is known to give, in its own words."""

import aiohttp
import pytest

from bot.localgram import Localgram, Person, VirtualClock

from .conftest import TOKEN, Raw, png

BAD = "Bad Request: "
KEYS = {"inline_keyboard": [[{"text": "Go", "callback_data": "x"}]]}
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)
TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


@pytest.mark.parametrize(
    ("method", "fields", "text"),
    [
        ("sendMessage", {"chat_id": 5}, "message text is empty"),
        ("sendMessage", {"chat_id": 5, "text": " \n "}, "text must be non-empty"),
        ("sendMessage", {"text": "x"}, "chat_id is empty"),
        ("sendMessage", {"chat_id": 404, "text": "x"}, "chat not found"),
        ("sendMessage", {"chat_id": "@nobody", "text": "x"}, "chat not found"),
        ("sendMessage", {"chat_id": 5, "text": "x" * 4097}, "message is too long"),
        ("sendMessage", {"chat_id": 5, "text": "x" * 32769}, "text is too long"),
        ("sendMessage", {"chat_id": 5, "text": "x", "parse_mode": "BB"}, "unsupported parse_mode"),
        (
            "sendMessage",
            {"chat_id": 5, "text": "x", "message_thread_id": 9},
            "message thread not found",
        ),
        (
            "sendMessage",
            {"chat_id": 5, "text": "x", "reply_parameters": {"message_id": 99}},
            "message to be replied not found",
        ),
        (
            "sendMessage",
            {"chat_id": 5, "text": "x", "reply_parameters": {"quote": "x"}},
            'can\'t find field "message_id"',
        ),
        (
            "editMessageText",
            {"chat_id": 5, "message_id": 99, "text": "x"},
            "message to edit not found",
        ),
        (
            "editMessageText",
            {"chat_id": 5, "text": "x"},
            "message identifier is not specified",
        ),
        (
            "editMessageText",
            {"chat_id": 5, "message_id": 1, "text": "x"},
            "message can't be edited",
        ),
        ("editMessageText", {"chat_id": 5, "message_id": 2, "text": "bot's"}, NOT_MODIFIED),
        (
            "editMessageCaption",
            {"chat_id": 5, "message_id": 2, "caption": "x"},
            "there is no caption in the message to edit",
        ),
        ("editMessageReplyMarkup", {"chat_id": 5, "message_id": 2}, NOT_MODIFIED),
        ("deleteMessage", {"chat_id": 5, "message_id": 99}, "message to delete not found"),
        ("setMessageReaction", {"chat_id": 5, "message_id": 99}, "message to react not found"),
        (
            "setMessageReaction",
            {"chat_id": 5, "message_id": 1, "reaction": [{"type": "emoji", "emoji": "✅"}]},
            "REACTION_INVALID",
        ),
        ("sendChatAction", {"chat_id": 5, "action": "dance"}, "wrong parameter action in request"),
        ("answerCallbackQuery", {"callback_query_id": "1"}, TOO_OLD),
        ("sendDocument", {"chat_id": 5}, "there is no document in the request"),
        (
            "sendPhoto",
            {"chat_id": 5, "photo": "nonsense"},
            "wrong file identifier/HTTP URL specified",
        ),
        ("getFile", {"file_id": "nonsense"}, "invalid file_id"),
        (
            "getFile",
            {"file_id": "AgADnone"},
            "wrong file_id or the file is temporarily unavailable",
        ),
        ("getFile", {}, "file_id not specified"),
        ("sendMessageDraft", {"chat_id": 5, "draft_id": 0, "text": "x"}, "RANDOM_ID_INVALID"),
        ("createForumTopic", {"chat_id": 5, "name": "x"}, "the chat is not a forum"),
        (
            "setMyCommands",
            {"commands": [{"command": "Bad!", "description": "x"}]},
            "BOT_COMMAND_INVALID",
        ),
        (
            "setMyCommands",
            {"commands": [{"command": "c", "description": "x"}] * 101},
            "BOT_COMMANDS_TOO_MUCH",
        ),
        ("setMyDescription", {"description": "x" * 513}, "bot description is too long"),
        ("sendMediaGroup", {"chat_id": 5, "media": []}, "there are no messages to send"),
        ("setWebhook", {"url": "ftp://x"}, "bad webhook: Webhook URL is invalid"),
    ],
)
async def test_bad_requests(
    raw: Raw, alice: Person, method: str, fields: dict[str, object], text: str
) -> None:
    await alice.send("one")
    await raw.ok("sendMessage", chat_id=5, text="bot's")
    assert await raw.refusal(method, **fields) == BAD + text


@pytest.mark.parametrize(
    ("button", "text"),
    [
        ({"text": "Go", "callback_data": "x" * 65}, "BUTTON_DATA_INVALID"),
        ({"text": "Go", "callback_data": "é" * 33}, "BUTTON_DATA_INVALID"),
        (
            {"text": "Go", "callback_data": ""},
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
        ),
        (
            {"callback_data": "x"},
            "can't parse inline keyboard button: Can't find field \"text\"",
        ),
        (
            {"text": " ", "callback_data": "x"},
            "inline keyboard button text must be non-empty",
        ),
        (
            {"text": "Go", "url": "not-a-url"},
            "inline keyboard button URL 'not-a-url' is invalid: Wrong HTTP URL",
        ),
        (
            {"text": "Go", "url": "ftp://example.com"},
            "inline keyboard button URL 'ftp://example.com' is invalid: Unsupported URL protocol",
        ),
    ],
)
async def test_bad_buttons(raw: Raw, alice: Person, button: dict[str, str], text: str) -> None:
    markup = {"inline_keyboard": [[button]]}
    said = await raw.refusal("sendMessage", chat_id=alice.id, text="x", reply_markup=markup)
    assert said == BAD + text


@pytest.mark.parametrize(
    ("entity", "text"),
    [
        ({"type": "bold", "offset": -1, "length": 1}, "receive an entity with incorrect offset -1"),
        (
            {"type": "bold", "offset": 100, "length": 1},
            "entity begins after the end of the text at UTF-16 offset 100",
        ),
        (
            {"type": "bold", "offset": 0, "length": 100},
            "entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 100",
        ),
        (
            {"type": "bold", "offset": 2, "length": 1},
            "entity begins in a middle of a UTF-16 symbol at byte offset 1",
        ),
        (
            {"type": "bold", "offset": 0, "length": 2},
            "entity beginning at UTF-16 offset 0 ends in a middle of a UTF-16 symbol at byte offset 1",
        ),
        (
            {"type": "shout", "offset": 0, "length": 1},
            "can't parse MessageEntity: Unsupported type specified",
        ),
        (
            {"type": "text_link", "offset": 0, "length": 1},
            "can't parse MessageEntity: Can't find field \"url\"",
        ),
        (
            {"type": "text_link", "offset": 0, "length": 1, "url": "not-a-url"},
            "entity URL 'not-a-url' is invalid: Wrong HTTP URL",
        ),
        (
            {"type": "text_link", "offset": 0, "length": 1, "url": ""},
            "entity URL '' is invalid: URL host is empty",
        ),
    ],
)
async def test_bad_entities(raw: Raw, alice: Person, entity: dict[str, object], text: str) -> None:
    said = await raw.refusal("sendMessage", chat_id=alice.id, text="h😀llo", entities=[entity])
    assert said == BAD + text


@pytest.mark.parametrize(
    ("mode", "markup", "text"),
    [
        (
            "MarkdownV2",
            "a.b",
            "Character '.' is reserved and must be escaped with the preceding '\\'",
        ),
        ("MarkdownV2", "*a", "Can't find end of Bold entity at byte offset 0"),
        ("HTML", "<p>a</p>", 'Unsupported start tag "p" at byte offset 0'),
        ("HTML", "<b>a", 'Can\'t find end tag corresponding to start tag "b"'),
        (
            "HTML",
            "<b><i>test</b></i>",
            'Unmatched end tag at byte offset 10, expected "</i>", found "</b>"',
        ),
        ("Markdown", "*a", "Can't find end of the entity starting at byte offset 0"),
    ],
)
async def test_markup_is_judged_by_telegrams_own_parser(
    raw: Raw, alice: Person, mode: str, markup: str, text: str
) -> None:
    pytest.importorskip("tdjson")
    said = await raw.refusal("sendMessage", chat_id=alice.id, text=markup, parse_mode=mode)
    assert said == f"{BAD}can't parse entities: {text}"


async def test_a_message_that_cannot_be_deleted(
    gram: Localgram, raw: Raw, alice: Person, clock: VirtualClock
) -> None:
    group = gram.group("Friends", alice)
    said = await alice.send("mine", chat=group)
    refused = await raw.refusal("deleteMessage", chat_id=group.id, message_id=said.id)
    assert refused == BAD + "message can't be deleted"
    old = await raw.ok("sendMessage", chat_id=alice.id, text="old")
    assert isinstance(old, dict)
    clock.advance(49 * 3600)
    refused = await raw.refusal("deleteMessage", chat_id=alice.id, message_id=old["message_id"])
    assert refused == BAD + "message can't be deleted"


async def test_a_press_is_answered_once_and_in_time(
    raw: Raw, alice: Person, clock: VirtualClock
) -> None:
    await raw.ok("sendMessage", chat_id=alice.id, text="x", reply_markup=KEYS)
    message = await alice.next_message()
    first = await alice.press(message, "Go")
    await raw.ok("answerCallbackQuery", callback_query_id=first.id, text="done")
    assert (await alice.answer(first)).text == "done"
    assert await raw.refusal("answerCallbackQuery", callback_query_id=first.id) == BAD + TOO_OLD
    late = await alice.press(message, "Go")
    clock.advance(16)
    assert await raw.refusal("answerCallbackQuery", callback_query_id=late.id) == BAD + TOO_OLD


async def test_people_out_of_reach(gram: Localgram, raw: Raw, alice: Person) -> None:
    bob = gram.user("Bob", id=6)
    assert await raw.refusal("sendMessage", chat_id=6, text="x") == BAD + "chat not found"
    group = gram.group("Friends", alice, bob)
    refused = await raw.refusal("sendMessage", chat_id=6, text="x")
    assert refused == "Forbidden: bot can't initiate conversation with a user"
    await alice.block()
    refused = await raw.refusal("sendMessage", chat_id=5, text="x")
    assert refused == "Forbidden: bot was blocked by the user"
    await alice.unblock()
    await raw.ok("sendMessage", chat_id=5, text="x")
    alice.deactivate()
    refused = await raw.refusal("sendMessage", chat_id=5, text="x")
    assert refused == "Forbidden: user is deactivated"
    gram.kick(group, bob)
    refused = await raw.refusal("sendMessage", chat_id=group.id, text="x")
    assert refused == "Forbidden: bot was kicked from the group chat"
    wide = gram.group("Wide", alice, supergroup=True)
    gram.kick(wide, alice)
    refused = await raw.refusal("sendMessage", chat_id=wide.id, text="x")
    assert refused == "Forbidden: bot was kicked from the supergroup chat"


async def test_an_upgraded_group(gram: Localgram, raw: Raw, alice: Person) -> None:
    group = gram.group("Friends", alice)
    new = gram.migrate(group)
    assert await raw("sendMessage", chat_id=group.id, text="x") == {
        "ok": False,
        "error_code": 400,
        "description": BAD + "group chat was upgraded to a supergroup chat",
        "parameters": {"migrate_to_chat_id": new.id},
    }
    await raw.ok("sendMessage", chat_id=new.id, text="x")


async def test_files_that_are_too_big(raw: Raw, alice: Person, http: aiohttp.ClientSession) -> None:
    sent = await alice.send_file("document", b"x", "big.bin", size=(20 << 20) + 1)
    assert sent.media is not None
    assert await raw.refusal("getFile", file_id=sent.media.file.id) == BAD + "file is too big"
    form = aiohttp.FormData({"chat_id": "5"})
    form.add_field("document", b"x" * ((51 << 20) + 1), filename="huge.bin")
    async with http.post(f"{raw.url}/bot{TOKEN}/sendDocument", data=form) as response:
        assert response.status == 413
        body = await response.json()
    assert body["description"] == "Request Entity Too Large"


async def test_pictures_that_are_none(raw: Raw, alice: Person, http: aiohttp.ClientSession) -> None:
    async def refusal(content: bytes) -> str:
        form = aiohttp.FormData({"chat_id": str(alice.id)})
        form.add_field("photo", content, filename="x.png")
        async with http.post(f"{raw.url}/bot{TOKEN}/sendPhoto", data=form) as response:
            return str((await response.json())["description"])

    assert await refusal(b"no picture") == BAD + "IMAGE_PROCESS_FAILED"
    assert await refusal(png(100, 2)) == BAD + "PHOTO_INVALID_DIMENSIONS"
    size = (10 << 20) + 1
    assert await refusal(png() + b"\0" * (size - len(png()))) == (
        f"{BAD}file of size {size} bytes is too big for a photo; the maximum size is 10485760 bytes"
    )


async def test_captions_and_albums(raw: Raw, alice: Person) -> None:
    photo = await alice.send_file("photo", png())
    assert photo.media is not None
    named = {"chat_id": alice.id, "photo": photo.media.file.id}
    assert await raw.refusal("sendPhoto", **named, caption="x" * 1025) == (
        BAD + "message caption is too long"
    )
    sent = await raw.ok("sendPhoto", **named, caption="x")
    assert isinstance(sent, dict)
    place = {"chat_id": alice.id, "message_id": sent["message_id"]}
    assert await raw.refusal("editMessageText", **place, text="x") == (
        BAD + "there is no text in the message to edit"
    )
    many = [{"type": "photo", "media": photo.media.file.id}] * 11
    assert await raw.refusal("sendMediaGroup", chat_id=alice.id, media=many) == (
        BAD + "too many messages to send as an album"
    )


@pytest.mark.parametrize(
    ("token", "code", "text"),
    [
        ("777:other", 401, "Unauthorized"),
        ("778:local-gram_Token", 401, "Unauthorized"),
        ("nonsense", 404, "Not Found"),
        ("777", 404, "Not Found"),
        (":x", 404, "Not Found"),
    ],
)
async def test_wrong_tokens(raw: Raw, token: str, code: int, text: str) -> None:
    assert await raw("getMe", token) == {"ok": False, "error_code": code, "description": text}


async def test_unknown_methods_and_case(raw: Raw) -> None:
    assert await raw.refusal("sendStory") == "Not Found: method not found"
    assert await raw.ok("GETME") == await raw.ok("getMe")


async def test_drafts_are_for_private_chats(gram: Localgram, raw: Raw, alice: Person) -> None:
    group = gram.group("Friends", alice)
    said = await raw.refusal("sendMessageDraft", chat_id=group.id, draft_id=1, text="x")
    assert said == BAD + "TEXTDRAFT_PEER_INVALID"
