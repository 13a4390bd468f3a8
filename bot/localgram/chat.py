"""A chat: who is in it, what stands in it, what is being written."""

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
