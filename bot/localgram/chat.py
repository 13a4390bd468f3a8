"""A chat: who is in it, its messages, what is being written; and a message as the Bot API shows it."""

from dataclasses import dataclass, field

from bot.localgram.feed import Acted, Drafted, Feed
from bot.localgram.message import Message
from bot.localgram.people import Account
from bot.localgram.wire import Json, given

IN_CHAT = frozenset({"member", "administrator"})


@dataclass(frozen=True, slots=True)
class Topic:
    thread: int
    name: str
    color: int = 0x6FB9F0
    icon: str = ""
    closed: bool = False

    def json(self) -> Json:
        return {
            "message_thread_id": self.thread,
            "name": self.name,
            "icon_color": self.color,
            **given(icon_custom_emoji_id=self.icon),
        }


@dataclass(slots=True, eq=False)
class Chat:
    """`type` is private, group or supergroup; a private chat's id is its person's."""

    id: int
    type: str
    title: str
    peer: Account | None = None
    forum: bool = False
    # Of the bot: member, administrator, left, kicked; "" before the first word.
    status: str = "member"
    deactivated: bool = False
    migrated_to: int | None = None
    members: dict[int, Account] = field(default_factory=dict)
    admins: set[int] = field(default_factory=set)
    messages: dict[int, Message] = field(default_factory=dict)
    topics: dict[int, Topic] = field(default_factory=dict)
    draft: dict[int | None, Drafted] = field(default_factory=dict)  # by thread
    action: dict[int | None, Acted] = field(default_factory=dict)
    pinned: list[int] = field(default_factory=list)
    last_id: int = 1  # supergroups count for themselves; 1 tells of their creation
    feed: Feed = field(default_factory=Feed)

    @property
    def private(self) -> bool:
        return self.type == "private"

    def json(self) -> Json:
        if self.peer is not None:
            return {"id": self.id, "type": "private", **self.peer.names()}
        forum = given(is_forum=self.forum or None)
        return {"id": self.id, "type": self.type, "title": self.title, **forum}

    def keep(self, message: Message) -> None:
        self.messages[message.id] = message

    def holds(self, user: int) -> bool:
        return user in self.members


def message_json(message: Message, chat: Chat, *, nested: bool = False) -> Json:
    """The Bot API's Message. A nested one does not show what it replied to."""
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
            link_preview_options=message.preview,
            reply_markup={"inline_keyboard": keyboard} if keyboard else None,
            **{text: message.text, entities: list(message.entities)},
        ),
        **(message.service or {}),
    }
    if media:
        shown[media.kind] = media.json()
        if media.kind == "animation":
            shown["document"] = media.json()
    return shown if nested else {**shown, **_reply(message, chat)}


def _reply(message: Message, chat: Chat) -> Json:
    replied = chat.messages.get(message.reply_to or 0)
    if replied is None:
        return {}
    shown: Json = {"reply_to_message": message_json(replied, chat, nested=True)}
    if message.quote:
        position = max(replied.text.find(message.quote), 0)
        units = len(replied.text[:position].encode("utf-16-le")) // 2
        shown["quote"] = {"text": message.quote, "position": units, "is_manual": True}
    return shown
