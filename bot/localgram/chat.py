"""A chat: who is in it, its messages, what is being written; and a message as the Bot API shows it."""

from dataclasses import dataclass, field

from bot.localgram.feed import Acted, Drafted, Feed
from bot.localgram.message import Account, Message
from bot.localgram.wire import Json, given


@dataclass(frozen=True, slots=True)
class Topic:
    thread: int
    name: str


@dataclass(slots=True, eq=False)
class Chat:
    """A chat. `type` is private, group or supergroup; a private chat's id is its person's. `status` is the bot's
    standing: member, administrator, kicked; "" before the first word."""

    id: int
    type: str
    title: str
    peer: Account | None = None
    status: str = "member"
    migrated_to: int | None = None
    members: dict[int, Account] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    topics: dict[int, Topic] = field(default_factory=dict)
    draft: dict[int | None, Drafted] = field(default_factory=dict)  # by thread
    action: dict[int | None, Acted] = field(default_factory=dict)
    last_id: int = 1  # supergroups count for themselves; 1 tells of their creation
    feed: Feed = field(default_factory=Feed)

    @property
    def private(self) -> bool:
        return self.type == "private"

    def json(self) -> Json:
        if self.peer is not None:
            return {"id": self.id, "type": "private", **self.peer.names()}
        return {"id": self.id, "type": self.type, "title": self.title}


def message_json(message: Message, chat: Chat, *, nested: bool = False) -> Json:
    """Return the message as the Bot API's Message object, without its reply's own reply."""
    media, keyboard = message.media, [list(row) for row in message.keyboard]
    text, entities = ("caption", "caption_entities") if media else ("text", "entities")
    shown = {
        "message_id": message.id,
        "from": message.sender.json(),
        "chat": chat.json(),
        "date": message.date,
        **given(
            message_thread_id=message.thread,
            is_topic_message=None if message.thread is None else True,
            edit_date=message.edited,
            media_group_id=message.album,
            forward_origin=message.forward,
            reply_markup={"inline_keyboard": keyboard} if keyboard else None,
            **{text: message.text, entities: list(message.entities)},
        ),
        **(message.service or {}),
    }
    if media:
        shown[media.kind] = media.json()
    replied = None if nested else chat.messages.get(message.reply_to or 0)
    if replied is not None:
        shown["reply_to_message"] = message_json(replied, chat, nested=True)
        if message.quote:
            before = replied.text[: max(replied.text.find(message.quote), 0)]
            units = len(before.encode("utf-16-le")) // 2
            shown["quote"] = {"text": message.quote, "position": units, "is_manual": True}
    return shown
