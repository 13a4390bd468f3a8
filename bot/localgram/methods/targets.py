"""What calls that send have in common: chat, topic, reply, text, keyboard."""

from dataclasses import replace

from bot.localgram.chat import Chat, message_json
from bot.localgram.entities import checked_url, formatted
from bot.localgram.message import Keyboard, Message
from bot.localgram.wire import Call, Json, bad_request, integer
from bot.localgram.world import World

TEXT_LIMIT = 4096  # Unicode code points, after parsing
CAPTION_LIMIT = 1024
ROWS = 100
DATA_BYTES = 64
CANT_PARSE = "can't parse inline keyboard button"
ACTIONS = (
    "callback_data",
    "url",
    "copy_text",
    "web_app",
    "login_url",
    "switch_inline_query",
    "pay",
)


def outgoing(world: World, call: Call) -> tuple[Chat, Message]:
    """The chat that a call sends to, and the message but for its content.

    Raises: ApiError for a chat, topic or replied message that is not there, and for a wrong keyboard.
    """
    chat = world.chat_of(call.text("chat_id"))
    replied, quote = _replied(chat, call)
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
    """Post a message; it as the answer of a call."""
    return message_json(world.post(chat, message), chat)


def message_of(chat: Chat, call: Call, purpose: str) -> Message:
    """Raises: ApiError 400 for a message that is not there."""
    message = chat.messages.get(call.integer("message_id"))
    if message is None:
        raise bad_request(f"message to {purpose} not found")
    return message


def with_content(message: Message, source: Message) -> Message:
    """The message with the words and files of another one."""
    return replace(message, media=source.media, text=source.text, entities=source.entities)


def thread_of(chat: Chat, call: Call) -> int | None:
    thread = call.integer("message_thread_id")
    if not thread:
        return None
    topic = chat.topics.get(thread)
    if topic is None:
        raise bad_request("message thread not found")
    if topic.closed and chat.status != "administrator":
        raise bad_request("TOPIC_CLOSED")
    return thread


def _replied(chat: Chat, call: Call) -> tuple[Message | None, str]:
    parameters = call.mapping("reply_parameters", "reply parameters")
    if parameters and "message_id" not in parameters:
        raise bad_request('can\'t find field "message_id"')
    number = parameters.get("message_id") or call.integer("reply_to_message_id")
    if not number:
        return None, ""
    replied = chat.messages.get(integer(number))
    lenient = "allow_sending_without_reply"
    if replied is None and not (parameters.get(lenient) or call.flag(lenient)):
        raise bad_request("message to be replied not found")
    quote = str(parameters.get("quote") or "")
    if replied is not None and quote not in replied.text:
        raise bad_request("QUOTE_TEXT_INVALID")
    return replied, quote


def text_of(call: Call) -> tuple[str, tuple[Json, ...]]:
    raw = call.text("text")
    if not raw:
        raise bad_request("message text is empty")
    text, entities = formatted(raw, call.text("parse_mode"), call.sequence("entities"))
    if not text:
        raise bad_request("text must be non-empty")
    if len(text) > TEXT_LIMIT:
        raise bad_request("message is too long")
    return text, entities


def caption_of(call: Call, fields: Json | None = None) -> tuple[str, tuple[Json, ...]]:
    """The caption of a call, or of one item of an album (`fields`)."""
    if fields is None:
        fields = {**call.fields, "caption_entities": call.sequence("caption_entities")}
    raw, mode = str(fields.get("caption") or ""), str(fields.get("parse_mode") or "")
    text, entities = formatted(raw, mode, fields.get("caption_entities") or [])
    if len(text) > CAPTION_LIMIT:
        raise bad_request("message caption is too long")
    return text, entities


def keyboard_of(call: Call) -> Keyboard:
    """The inline keyboard of a call; other markups are accepted and not kept."""
    rows = call.mapping("reply_markup", "reply keyboard markup").get("inline_keyboard") or []
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bad_request('field "inline_keyboard" must be of type Array')
    kept = tuple(tuple(_button(button) for button in row) for row in rows if row)
    if sum(map(len, kept)) > ROWS:
        raise bad_request("REPLY_MARKUP_TOO_LONG")
    return kept


def _button(button: Json) -> Json:
    if not isinstance(button, dict):
        raise bad_request(f"{CANT_PARSE}: expected an Object")
    if "text" not in button:
        raise bad_request(f'{CANT_PARSE}: Can\'t find field "text"')
    if not str(button["text"]).strip():
        raise bad_request("inline keyboard button text must be non-empty")
    if not any(button.get(action) for action in ACTIONS):
        raise bad_request(f"{CANT_PARSE}: Text buttons are unallowed in the inline keyboard")
    data = button.get("callback_data")
    if data and len(str(data).encode()) > DATA_BYTES:
        raise bad_request("BUTTON_DATA_INVALID")
    if "url" in button:
        checked_url(str(button["url"]), "inline keyboard button")
    return dict(button)
