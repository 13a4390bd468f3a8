"""Sending and changing text: sendMessage, drafts, edits, deletion, forwards."""

from dataclasses import replace

from bot.localgram.chat import Chat, message_json
from bot.localgram.entities import formatted
from bot.localgram.feed import Drafted
from bot.localgram.message import Message
from bot.localgram.methods import Methods
from bot.localgram.methods.rich import rich_text
from bot.localgram.methods.targets import (
    TEXT_LIMIT,
    caption_of,
    keyboard_of,
    message_of,
    outgoing,
    sent,
    text_of,
    thread_of,
    with_content,
)
from bot.localgram.wire import Call, Json, bad_request, integer
from bot.localgram.world import World

DRAFT_SECONDS = 30.0  # TDLib's pending_text_message_period
DELETE_SECONDS = 48 * 3600
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same"
    " as a current content and reply markup of the message"
)


def send_message(world: World, call: Call) -> Json:
    text, entities = text_of(call)
    chat, message = outgoing(world, call)
    preview = call.nested("link_preview_options")
    return sent(world, chat, replace(message, text=text, entities=entities, preview=preview))


def send_rich_message(world: World, call: Call) -> Json:
    """Of the three forms only HTML is known."""
    html = str(call.mapping("rich_message").get("html") or "")
    if not html:
        raise bad_request("rich message must be non-empty")
    chat, message = outgoing(world, call)
    return sent(world, chat, replace(message, text=rich_text(html), rich=html))


def send_message_draft(world: World, call: Call) -> bool:
    chat = world.chat_of(call.text("chat_id"))
    if not chat.private:
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    if call.integer("draft_id") == 0:
        raise bad_request("RANDOM_ID_INVALID")
    text, entities = formatted(
        call.text("text"), call.text("parse_mode"), call.sequence("entities")
    )
    if len(text) > TEXT_LIMIT:
        raise bad_request("message is too long")
    thread, until = thread_of(chat, call), world.clock() + DRAFT_SECONDS
    number, can_stop = call.integer("draft_id"), call.flag("can_stop")
    world.draft(chat, Drafted(chat.id, number, thread, text, entities, until, can_stop))
    return True


def editable(world: World, call: Call) -> tuple[Chat, Message]:
    """The bot's own message that a call names.

    Raises: ApiError 400.
    """
    if call.text("inline_message_id"):
        raise bad_request("MESSAGE_ID_INVALID")
    chat = world.chat_of(call.text("chat_id"))
    if not call.integer("message_id"):
        raise bad_request("message identifier is not specified")
    message = message_of(chat, call, "edit")
    if message.sender.id != world.bot.id or message.service:
        raise bad_request("message can't be edited")
    return chat, message


def changed(world: World, chat: Chat, old: Message, new: Message) -> Json:
    if old.content() == new.content():
        raise bad_request(NOT_MODIFIED)
    return message_json(world.change(chat, replace(new, edited=world.now())), chat)


def edit_message_text(world: World, call: Call) -> Json:
    chat, old = editable(world, call)
    text, entities = text_of(call)
    if old.media is not None:
        raise bad_request("there is no text in the message to edit")
    preview = call.nested("link_preview_options") or old.preview
    new = replace(old, text=text, entities=entities, keyboard=keyboard_of(call), preview=preview)
    return changed(world, chat, old, new)


def edit_message_caption(world: World, call: Call) -> Json:
    chat, old = editable(world, call)
    text, entities = caption_of(call)
    if old.media is None:
        raise bad_request("there is no caption in the message to edit")
    return changed(
        world, chat, old, replace(old, text=text, entities=entities, keyboard=keyboard_of(call))
    )


def edit_message_reply_markup(world: World, call: Call) -> Json:
    chat, old = editable(world, call)
    return changed(world, chat, old, replace(old, keyboard=keyboard_of(call)))


def delete_message(world: World, call: Call) -> bool:
    chat = world.chat_of(call.text("chat_id"))
    message = message_of(chat, call, "delete")
    if not _deletable(world, chat, message):
        raise bad_request("message can't be deleted")
    world.delete(chat, [message.id])
    return True


def delete_messages(world: World, call: Call) -> bool:
    """Those that are not there, or not the bot's to delete, are passed over."""
    chat = world.chat_of(call.text("chat_id"))
    named = [chat.messages.get(integer(number)) for number in call.sequence("message_ids")]
    world.delete(chat, [m.id for m in named if m is not None and _deletable(world, chat, m)])
    return True


def _deletable(world: World, chat: Chat, message: Message) -> bool:
    young = world.now() - message.date < DELETE_SECONDS
    if chat.status == "administrator":
        return True
    return young and (chat.private or message.sender.id == world.bot.id)


def forward_message(world: World, call: Call) -> Json:
    source = _source(world, call, "forward")
    origin = {"type": "user", "sender_user": source.sender.json(), "date": source.date}
    return _repost(world, call, replace(source, forward=source.forward or origin))


def copy_message(world: World, call: Call) -> Json:
    source = _source(world, call, "copy")
    return {"message_id": _repost(world, call, replace(source, forward=None))["message_id"]}


def _source(world: World, call: Call, verb: str) -> Message:
    message = message_of(world.chat_of(call.text("from_chat_id")), call, verb)
    if message.service:
        raise bad_request(f"message can't be {'forwarded' if verb == 'forward' else 'copied'}")
    return message


def _repost(world: World, call: Call, source: Message) -> Json:
    chat, message = outgoing(world, call)
    return sent(world, chat, replace(with_content(message, source), forward=source.forward))


METHODS: Methods = {
    "sendMessage": send_message,
    "sendRichMessage": send_rich_message,
    "sendMessageDraft": send_message_draft,
    "editMessageText": edit_message_text,
    "editMessageCaption": edit_message_caption,
    "editMessageReplyMarkup": edit_message_reply_markup,
    "deleteMessage": delete_message,
    "deleteMessages": delete_messages,
    "forwardMessage": forward_message,
    "copyMessage": copy_message,
}
