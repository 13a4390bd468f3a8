"""Calls that send no message: typing, reactions, answers to buttons and inline queries, pins."""

from bot.localgram.chat import Chat
from bot.localgram.feed import Acted, Answered
from bot.localgram.message import Message
from bot.localgram.methods import Methods
from bot.localgram.methods.targets import message_of, thread_of
from bot.localgram.queries import InlineQuery, Query
from bot.localgram.reactions import CANONICAL
from bot.localgram.wire import Call, Json, bad_request
from bot.localgram.world import World

ACTION_SECONDS = 5.0
ACTIONS = frozenset(
    {
        "cancel", "typing", "upload_photo", "record_video", "upload_video", "record_voice",
        "upload_voice", "upload_document", "choose_sticker", "find_location",
        "record_video_note", "upload_video_note", "record_audio", "upload_audio",
    }
)  # fmt: skip
ANSWER_LENGTH = 200
INLINE_RESULTS = 50


def send_chat_action(world: World, call: Call) -> bool:
    chat = world.chat_of(call.text("chat_id"))
    action = call.text("action").lower()
    if action not in ACTIONS:
        raise bad_request("wrong parameter action in request")
    until = world.clock() + (0.0 if action == "cancel" else ACTION_SECONDS)
    world.act(chat, Acted(chat.id, thread_of(chat, call), action, until))
    return True


def set_message_reaction(world: World, call: Call) -> bool:
    chat = world.chat_of(call.text("chat_id"))
    message = message_of(chat, call, "react")
    given = call.sequence("reaction")
    if len(given) > 1:
        raise bad_request("REACTIONS_TOO_MANY")
    emoji = ""
    if given:
        named = str(given[0].get("emoji", "")) if isinstance(given[0], dict) else ""
        if named.replace("\ufe0f", "") not in CANONICAL:
            raise bad_request("REACTION_INVALID")
        emoji = CANONICAL[named.replace("\ufe0f", "")]
    world.react(chat, message, world.bot.id, emoji)
    return True


def answer_callback_query(world: World, call: Call) -> bool:
    text = call.text("text")
    if len(text) > ANSWER_LENGTH:
        raise bad_request("MESSAGE_TOO_LONG")
    query = world.queries.close(call.text("callback_query_id"), Query)
    alert, url = call.flag("show_alert"), call.text("url")
    query.answer = Answered(query.chat, query.id, query.user, text, alert, url)
    world.publish(world.chats[query.chat], query.answer)
    return True


def answer_inline_query(world: World, call: Call) -> bool:
    results = call.sequence("results")
    if len(results) > INLINE_RESULTS:
        raise bad_request("RESULTS_TOO_MUCH")
    given = [each for each in results if isinstance(each, dict)]
    if len({each.get("id") for each in given}) < len(results):
        raise bad_request("RESULT_ID_DUPLICATE")
    if not all(each.get("title") and each.get("input_message_content") for each in given):
        raise bad_request("can't parse inline query result: Can't find field \"title\"")
    world.queries.close(call.text("inline_query_id"), InlineQuery).results = given
    return True


def answer_guest_query(world: World, call: Call) -> Json:
    result = call.mapping("result")
    if not result.get("title") or not result.get("input_message_content"):
        raise bad_request("can't parse inline query result: Can't find field \"title\"")
    query = call.text("guest_query_id")
    world.queries.close(query, InlineQuery).results = [result]
    return {"inline_message_id": f"guest{query}"}


def pin_chat_message(world: World, call: Call) -> bool:
    chat, message = _pinnable(world, call, "pin")
    chat.pinned = [*(number for number in chat.pinned if number != message.id), message.id]
    world.changed(chat)
    return True


def unpin_chat_message(world: World, call: Call) -> bool:
    if not call.integer("message_id"):
        chat = world.chat_of(call.text("chat_id"))
        chat.pinned = chat.pinned[:-1]
    else:
        chat, message = _pinnable(world, call, "unpin")
        chat.pinned = [number for number in chat.pinned if number != message.id]
    world.changed(chat)
    return True


def unpin_all_chat_messages(world: World, call: Call) -> bool:
    chat = world.chat_of(call.text("chat_id"))
    chat.pinned = []
    world.changed(chat)
    return True


def _pinnable(world: World, call: Call, verb: str) -> tuple[Chat, Message]:
    chat = world.chat_of(call.text("chat_id"))
    if not chat.private and chat.status != "administrator":
        raise bad_request("not enough rights to manage pinned messages in the chat")
    return chat, message_of(chat, call, verb)


METHODS: Methods = {
    "sendChatAction": send_chat_action,
    "setMessageReaction": set_message_reaction,
    "answerCallbackQuery": answer_callback_query,
    "answerInlineQuery": answer_inline_query,
    "answerGuestQuery": answer_guest_query,
    "pinChatMessage": pin_chat_message,
    "unpinChatMessage": unpin_chat_message,
    "unpinAllChatMessages": unpin_all_chat_messages,
}
