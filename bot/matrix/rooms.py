"""The joined rooms, from the syncs, and the keys of their chats: `mx:!room`, `mx:!room|$thread`, and
`mx:@user` for whatever room is a user's own with the bot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SOURCE = "matrix"
PREFIX = "mx:"
PRESENT = ("join", "invite")


class RoomKey(NamedTuple):
    """The key of a chat: its room, and perhaps a thread.

    `room` is a room's id, or a user's; `thread` the event that a thread is about, or "".
    """

    room: str
    thread: str = ""

    def __str__(self) -> str:
        return f"{PREFIX}{self.room}" + (f"|{self.thread}" if self.thread else "")


def parse(chat: str) -> RoomKey:
    room, _, thread = chat.removeprefix(PREFIX).partition("|")
    return RoomKey(room, thread)


@dataclass
class JoinedRoom:
    """A room that the bot has joined.

    `members` are names of those who are there or invited, `joined` those who are there.
    """

    id: str
    encrypted: bool = False
    members: dict[str, str] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)
    title: str = ""
    successor: str = ""  # the room that replaces it

    def change(self, event: Mapping[str, Any]) -> bool:
        """Apply a state event; return whether the members changed."""
        kind, key, content = event.get("type"), event.get("state_key"), event.get("content")
        if not isinstance(key, str) or not isinstance(content, dict):
            return False
        match kind:
            case "m.room.encryption" if not key:
                self.encrypted = True  # and for good: the server may not take it back
            case "m.room.name" if not key:
                self.title = str(content.get("name") or "")
            case "m.room.tombstone" if not key:
                self.successor = str(content.get("replacement_room") or "")
            case "m.room.member":
                before = key in self.members, key in self.joined
                membership = content.get("membership")
                self.joined.discard(key)
                if membership in PRESENT:
                    self.members[key] = str(content.get("displayname") or key)
                else:
                    self.members.pop(key, None)
                if membership == "join":
                    self.joined.add(key)
                return before != (key in self.members, key in self.joined)
        return False

    def name(self, user: str) -> str:
        return self.members.get(user, user)


class JoinedRooms(dict[str, JoinedRoom]):
    """The bot's rooms, by id. `me` is the bot's user id; `encrypted` are rooms known to be so from earlier runs."""

    def __init__(self, me: str, encrypted: set[str]) -> None:
        self.me = me
        self._encrypted = encrypted  # of earlier runs

    def opened(self, id: str) -> JoinedRoom:
        if id not in self:
            self[id] = JoinedRoom(id, id in self._encrypted)
        return self[id]

    def partner(self, id: str) -> str | None:
        """The other member of a room of two; None for other rooms."""
        room = self.get(id)
        others = set(room.members) - {self.me} if room else set()
        return others.pop() if len(others) == 1 else None

    def called(self, id: str) -> str:
        """The name of a room, or of a user by its id; "" if it has none."""
        if id.startswith("@"):
            return next((r.members[id] for r in self.values() if id in r.members), id)
        if partner := self.partner(id):
            return self[id].name(partner)
        return self[id].title if id in self else ""

    def direct(self, user: str) -> list[JoinedRoom]:
        """The rooms of that user and the bot alone, encrypted ones last."""
        own = [room for room in self.values() if self.partner(room.id) == user]
        found = [room for room in own if room.successor not in self]
        return sorted(found, key=lambda room: (room.encrypted, user in room.joined))
