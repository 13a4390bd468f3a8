"""A chat: who is in it, its messages, what is being written; and a message as the Bot API shows it."""

from dataclasses import dataclass, field

from bot.localgram.feed import Acted, Drafted, Feed
from bot.localgram.message import Message
from bot.localgram.people import Account
from bot.localgram.wire import Json

IN_CHAT = frozenset({"member", "administrator"})


@dataclass(frozen=True, slots=True)
class Topic:
    thread: int
    name: str
    color: int = 0x6FB9F0
    icon: str = ""
    closed: bool = False

    def json(self) -> Json:
        shown: Json = {
            "message_thread_id": self.thread,
            "name": self.name,
            "icon_color": self.color,
        }
        if self.icon:
            shown["icon_custom_emoji_id"] = self.icon
        return shown


@dataclass(slots=True, eq=False)
class Chat:
    """`type` is private, group or supergroup; a private chat's id is its person's."""

    id: int
    type: str
    title: str
    peer: Account | None = None
    forum: bool = False
    status: str = (
        "member"  # of the bot: member, administrator, left, kicked; "" before the first word
    )
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
            return _person_json(self.id, self.peer)
        shown: Json = {"id": self.id, "type": self.type, "title": self.title}
        if self.forum:
            shown["is_forum"] = True
        return shown

    def keep(self, message: Message) -> None:
        self.messages[message.id] = message

    def holds(self, user: int) -> bool:
        return user in self.members


def _person_json(chat: int, peer: Account) -> Json:
    shown: Json = {"id": chat, "type": "private", "first_name": peer.first_name}
    if peer.last_name:
        shown["last_name"] = peer.last_name
    if peer.username:
        shown["username"] = peer.username
    return shown


def message_json(message: Message, chat: Chat, *, nested: bool = False) -> Json:
    """The Bot API's Message. A nested one does not show what it replied to."""
    shown: Json = {
        "message_id": message.id,
        "from": message.sender.json(),
        "chat": chat.json(),
        "date": message.date,
    }
    shown.update(_place(message))
    shown.update(_body(message))
    if not nested:
        shown.update(_reply(message, chat))
    return shown


def _place(message: Message) -> Json:
    shown: Json = {}
    if message.thread is not None:
        shown.update(message_thread_id=message.thread, is_topic_message=True)
    if message.edited is not None:
        shown["edit_date"] = message.edited
    if message.album:
        shown["media_group_id"] = message.album
    if message.forward:
        shown["forward_origin"] = message.forward
    return shown


def _body(message: Message) -> Json:
    shown: Json = dict(message.service or {})
    text, entities = ("caption", "caption_entities") if message.media else ("text", "entities")
    if message.text:
        shown[text] = message.text
    if message.entities:
        shown[entities] = list(message.entities)
    if message.media:
        shown[message.media.kind] = message.media.json()
    if message.media and message.media.kind == "animation":
        shown["document"] = message.media.json()
    if message.keyboard:
        shown["reply_markup"] = {"inline_keyboard": [list(row) for row in message.keyboard]}
    if message.preview:
        shown["link_preview_options"] = message.preview
    return shown


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
