"""The Bot API's methods that the bot calls: each a function of the world and one call."""

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from bot.localgram.chat import Chat, message_json
from bot.localgram.feed import Acted, Answered, Drafted
from bot.localgram.message import (
    PHOTO_LIMIT,
    Keyboard,
    Media,
    Message,
    StoredFile,
    dimensions,
    formatted,
)
from bot.localgram.wire import Call, Json, bad_request, integer
from bot.localgram.world import World

Method = Callable[[World, Call], object | Awaitable[object]]
TEXT_LIMIT = 4096  # Unicode code points, after parsing
CAPTION_LIMIT = 1024
DATA_BYTES = 64
DRAFT_SECONDS = 30.0  # TDLib's pending_text_message_period
ACTION_SECONDS = 5.0
POLL_SECONDS = 50
BATCH = 100
ALBUM = 10

# -- what calls that send have in common ---------------------------------------


def outgoing(world: World, call: Call) -> tuple[Chat, Message]:
    """Return the chat that a call sends to, and the message without its content.

    Raises ApiError for a chat, topic or replied message that is not there, and for a wrong keyboard.
    """
    chat = world.chat_of(call.text("chat_id"))
    parameters = call.mapping("reply_parameters")
    replied = chat.messages.get(integer(parameters.get("message_id")))
    if parameters and replied is None and not parameters.get("allow_sending_without_reply"):
        raise bad_request("message to be replied not found")
    quote = str(parameters.get("quote") or "")
    if replied is not None and quote not in replied.text:
        raise bad_request("QUOTE_TEXT_INVALID")
    thread = thread_of(chat, call)
    if thread is None and replied is not None:
        thread = replied.thread
    message = Message(
        sender=world.bot,
        thread=thread,
        reply_to=replied.id if replied else None,
        quote=quote,
        keyboard=keyboard_of(call),
        silent=call.flag("disable_notification"),
    )
    return chat, message


def sent(world: World, chat: Chat, message: Message) -> Json:
    """Post a message and return it as the call's result."""
    return message_json(world.post(chat, message), chat)


def message_of(chat: Chat, call: Call, purpose: str) -> Message:
    """Return the message that a call names. Raises ApiError 400 if there is none."""
    message = chat.messages.get(call.integer("message_id"))
    if message is None:
        raise bad_request(f"message to {purpose} not found")
    return message


def thread_of(chat: Chat, call: Call) -> int | None:
    thread = call.integer("message_thread_id") or None
    if thread is not None and thread not in chat.topics:
        raise bad_request("message thread not found")
    return thread


def text_of(call: Call) -> tuple[str, tuple[Json, ...]]:
    refuse_markup(call.text("parse_mode"))
    text, entities = formatted(call.text("text"), call.sequence("entities"))
    if not text:
        raise bad_request("message text is empty")
    if len(text) > TEXT_LIMIT:
        raise bad_request("message is too long")
    return text, entities


def caption_of(fields: Json) -> tuple[str, tuple[Json, ...]]:
    refuse_markup(fields.get("parse_mode"))
    text, entities = formatted(
        str(fields.get("caption") or ""), fields.get("caption_entities") or []
    )
    if len(text) > CAPTION_LIMIT:
        raise bad_request("message caption is too long")
    return text, entities


def refuse_markup(mode: object) -> None:
    """Refuse `parse_mode`: it is not parsed here, so that a test of it could not fail."""
    if mode:
        raise bad_request("this server does not understand parse_mode; send entities")


def keyboard_of(call: Call) -> Keyboard:
    """Return a call's inline keyboard; other reply markups are ignored."""
    rows = call.mapping("reply_markup").get("inline_keyboard") or []
    for button in (button for row in rows for button in row):
        if not str(button.get("text", "")).strip():
            raise bad_request("inline keyboard button text must be non-empty")
        if len(button) < 2:
            raise bad_request("Text buttons are unallowed in the inline keyboard")
        if len(str(button.get("callback_data", "")).encode()) > DATA_BYTES:
            raise bad_request("BUTTON_DATA_INVALID")
    return tuple(tuple(dict(button) for button in row) for row in rows if row)


# -- texts ---------------------------------------------------------------------


def send_message(world: World, call: Call) -> Json:
    text, entities = text_of(call)
    chat, message = outgoing(world, call)
    preview = call.mapping("link_preview_options") or None
    return sent(world, chat, replace(message, text=text, entities=entities, preview=preview))


def send_rich_message(world: World, call: Call) -> Json:
    """Send a rich message, of whose three forms only HTML is supported."""
    html = str(call.mapping("rich_message").get("html") or "")
    if not (text := re.sub("<[^>]*>", "", html).strip()):
        raise bad_request("rich message is empty")
    chat, message = outgoing(world, call)
    return sent(world, chat, replace(message, text=text, rich=html))


def send_message_draft(world: World, call: Call) -> bool:
    chat, number = world.chat_of(call.text("chat_id")), call.integer("draft_id")
    if not chat.private or not number:
        raise bad_request("RANDOM_ID_INVALID" if chat.private else "TEXTDRAFT_PEER_INVALID")
    text, entities = formatted(call.text("text"), call.sequence("entities"))
    if len(text) > TEXT_LIMIT:
        raise bad_request("message is too long")
    thread, until = thread_of(chat, call), time.time() + DRAFT_SECONDS
    draft = Drafted(chat.id, number, thread, text, entities, until, call.flag("can_stop"))
    world.draft(chat, draft)
    return True


def edit_message_text(world: World, call: Call) -> Json:
    chat = world.chat_of(call.text("chat_id"))
    old = message_of(chat, call, "edit")
    if old.sender.id != world.bot.id or old.service:
        raise bad_request("message can't be edited")
    if old.media is not None:
        raise bad_request("there is no text in the message to edit")
    text, entities = text_of(call)
    preview = call.mapping("link_preview_options") or old.preview
    new = replace(old, text=text, entities=entities, keyboard=keyboard_of(call), preview=preview)
    if old.content() == new.content():
        raise bad_request(
            "message is not modified: specified new message content and reply markup are exactly the same"
            " as a current content and reply markup of the message"
        )
    return message_json(world.change(chat, replace(new, edited=world.now())), chat)


def delete_message(world: World, call: Call) -> bool:
    chat = world.chat_of(call.text("chat_id"))
    message = message_of(chat, call, "delete")
    if not chat.private and message.sender.id != world.bot.id:
        raise bad_request("message can't be deleted")
    world.delete(chat, message)
    return True


# -- files ---------------------------------------------------------------------


def file_of(world: World, call: Call, kind: str, given: str) -> StoredFile:
    """Return the file of a call: an upload, attach://NAME, or a file id. Raises ApiError 400."""
    upload = call.uploads.get(given.removeprefix("attach://") if given else kind)
    if upload is None:
        stored = world.files.by_id.get(given)
        if stored is None:
            raise bad_request("wrong file identifier/HTTP URL specified")
        return stored
    if not upload.content:
        raise bad_request("file must be non-empty")
    if kind == "photo" and len(upload.content) > PHOTO_LIMIT:
        raise bad_request(f"file of size {len(upload.content)} bytes is too big for a photo")
    mime = "" if upload.mime == "application/octet-stream" else upload.mime
    return world.files.keep(upload.name, upload.content, mime)


def media_of(world: World, call: Call, kind: str, fields: Json, given: str) -> Media:
    """Return the photo or file of a call or of an album's item, whose fields are `fields`."""
    stored = file_of(world, call, kind, given)
    if kind != "photo":
        details = (
            {"duration": integer(fields.get("duration"))} if kind in ("voice", "audio") else {}
        )
        more = {name: fields[name] for name in ("title", "performer") if fields.get(name)}
        return Media(kind, stored, details | more)
    sides = dimensions(stored.content)
    if sides is None:
        raise bad_request("IMAGE_PROCESS_FAILED")
    return Media(kind, stored, {"width": sides[0], "height": sides[1]})


def send_media(kind: str, world: World, call: Call) -> Json:
    chat, message = outgoing(world, call)
    media = media_of(world, call, kind, dict(call.fields), call.text(kind))
    fields = {**call.fields, "caption_entities": call.sequence("caption_entities")}
    text, entities = caption_of(fields)
    return sent(world, chat, replace(message, media=media, text=text, entities=entities))


def send_media_group(world: World, call: Call) -> list[Json]:
    chat, message = outgoing(world, call)
    items: list[Message] = []
    for item in call.sequence("media"):
        media = media_of(world, call, str(item.get("type")), item, str(item.get("media")))
        text, entities = caption_of(item)
        items.append(replace(message, media=media, text=text, entities=entities))
    if not 2 <= len(items) <= ALBUM:
        raise bad_request("wrong number of messages to send as an album")
    kinds = {item.media.kind for item in items if item.media is not None}
    if len(kinds) > 1 and kinds & {"document", "audio"}:
        raise bad_request("document can't be mixed with other media types")
    album = world.next_album()
    return [sent(world, chat, replace(item, album=album)) for item in items]


# -- gestures ------------------------------------------------------------------


def send_chat_action(world: World, call: Call) -> bool:
    chat = world.chat_of(call.text("chat_id"))
    until = time.time() + ACTION_SECONDS
    world.act(chat, Acted(chat.id, thread_of(chat, call), call.text("action").lower(), until))
    return True


def set_message_reaction(world: World, call: Call) -> bool:
    chat = world.chat_of(call.text("chat_id"))
    message = message_of(chat, call, "react")
    emoji = "".join(str(each.get("emoji")) for each in call.sequence("reaction"))
    world.react(chat, message, world.bot.id, emoji)
    return True


def answer_callback_query(world: World, call: Call) -> bool:
    text, url = call.text("text"), call.text("url")
    if len(text) > 200:
        raise bad_request("MESSAGE_TOO_LONG")
    query = world.close(call.text("callback_query_id"))
    query.answer = Answered(query.chat, query.id, query.user, text, call.flag("show_alert"), url)
    world.publish(world.chats[query.chat], query.answer)
    return True


# -- the bot about itself, and its updates -------------------------------------


def set_my_commands(world: World, call: Call) -> bool:
    scope = call.mapping("scope")
    chat, language = integer(scope.get("chat_id")), call.text("language_code")
    if chat:
        world.chat_of(str(chat))
    world.set_commands(scope.get("type", "default"), chat, language, call.sequence("commands"))
    return True


def set_my_text(kind: str, world: World, call: Call) -> bool:
    world.set_text(kind, call.text("language_code"), call.text(kind))
    return True


def get_chat(world: World, call: Call) -> Json:
    chat = world.chat_of(call.text("chat_id"))
    gifts = (
        "unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels",
    )  # fmt: skip
    needed = {"accent_color_id": 0, "max_reaction_count": 11}
    return {**chat.json(), **needed, "accepted_gift_types": dict.fromkeys(gifts, False)}


def allowed_of(call: Call) -> list[str] | None:
    """Return the call's allowed_updates; None if it has none."""
    return call.sequence("allowed_updates") if call.text("allowed_updates") else None


async def get_updates(world: World, call: Call) -> list[Json]:
    limit = min(max(call.integer("limit", BATCH), 1), BATCH)
    seconds = min(max(call.integer("timeout"), 0), POLL_SECONDS)
    return await world.updates.take(call.integer("offset"), limit, seconds, allowed_of(call))


TABLE: dict[str, Method] = {
    "sendMessage": send_message,
    "sendRichMessage": send_rich_message,
    "sendMessageDraft": send_message_draft,
    "editMessageText": edit_message_text,
    "deleteMessage": delete_message,
    "sendPhoto": partial(send_media, "photo"),
    "sendDocument": partial(send_media, "document"),
    "sendVoice": partial(send_media, "voice"),
    "sendAudio": partial(send_media, "audio"),
    "sendMediaGroup": send_media_group,
    "getFile": lambda world, call: world.files.link(call.text("file_id")),
    "sendChatAction": send_chat_action,
    "setMessageReaction": set_message_reaction,
    "answerCallbackQuery": answer_callback_query,
    "getMe": lambda world, call: world.bot_json(),
    "getChat": get_chat,
    "setMyCommands": set_my_commands,
    "setMyDescription": partial(set_my_text, "description"),
    "setMyShortDescription": partial(set_my_text, "short_description"),
    "getUpdates": get_updates,
}
