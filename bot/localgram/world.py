"""The server's state: the bot, people, chats, files, and the updates that wait."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace

from bot.localgram.chat import IN_CHAT, Chat, Topic
from bot.localgram.clock import Clock
from bot.localgram.faults import Faults
from bot.localgram.feed import (
    Acted,
    Changed,
    Deleted,
    Drafted,
    DraftEnded,
    Edited,
    Event,
    Feed,
    Posted,
    Reacted,
)
from bot.localgram.files import Files
from bot.localgram.flood import Flood, Limits
from bot.localgram.message import Message
from bot.localgram.people import Account
from bot.localgram.profile import Profile
from bot.localgram.queries import Queries
from bot.localgram.updates import Updates
from bot.localgram.webhook import Webhook
from bot.localgram.wire import Json, bad_request, forbidden, integer

SUPERGROUPS = -1_000_000_000_000
COLORS = (0x6FB9F0, 0xFFD67E, 0xCB86DB, 0x8EEE98, 0xFF93B2, 0xFB6F5F)  # of topics, documented
CALLS_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Made:
    """A call the server carried out or refused. `error` is empty when it was carried out."""

    method: str
    fields: Mapping[str, str]
    error: str = ""

    @property
    def chat(self) -> int:
        """Zero where the call names no chat by number."""
        return integer(self.fields.get("chat_id"))


class World:
    def __init__(
        self, bot: Account, clock: Clock, limits: Limits | None, repeat_seconds: float
    ) -> None:
        self.bot = bot
        self.clock = clock
        self.topics_in_private = False
        self.privacy = True  # in groups: only commands, mentions and replies reach the bot
        self.people: dict[int, Account] = {}
        self.chats: dict[int, Chat] = {}
        self.feed = Feed()
        self.files = Files(clock)
        self.updates = Updates(clock, self.feed, repeat_seconds)
        self.webhook = Webhook(self.updates, clock)
        self.flood = Flood(clock, limits)
        self.faults = Faults()
        self.queries = Queries(clock)
        self.profile = Profile(bot.first_name)
        self.calls: deque[Made] = deque(maxlen=CALLS_KEPT)
        self._last_id = 0
        self._last_album = 13_000_000_000_000_000

    def now(self) -> int:
        return int(self.clock())

    def bot_json(self) -> Json:
        return {
            **self.bot.json(),
            "first_name": self.profile.get_text("name", ""),
            "can_join_groups": True,
            "can_read_all_group_messages": not self.privacy,
            "supports_inline_queries": True,
            "can_connect_to_business": False,
            "has_main_web_app": False,
            "has_topics_enabled": self.topics_in_private,
            "allows_users_to_create_topics": self.topics_in_private,
        }

    def publish(self, chat: Chat, event: Event) -> None:
        chat.feed.publish(event)
        self.feed.publish(event)

    def next_id(self, chat: Chat) -> int:
        """One counter for all private chats and basic groups; supergroups have their own."""
        if chat.type == "supergroup":
            chat.last_id += 1
            return chat.last_id
        self._last_id += 1
        return self._last_id

    def post(self, chat: Chat, message: Message) -> Message:
        """Number, date, keep and show a new message. The bot's own ends its draft."""
        posted = replace(message, id=self.next_id(chat), chat=chat.id, date=self.now())
        chat.keep(posted)
        if message.sender.is_bot:
            chat.action.pop(message.thread, None)
        self.publish(chat, Posted(posted))
        if message.sender.is_bot:
            self.end_draft(chat, message.thread)
        return posted

    def end_draft(self, chat: Chat, thread: int | None) -> None:
        if chat.draft.pop(thread, None) is not None:
            self.publish(chat, DraftEnded(chat.id, thread))

    def next_album(self) -> int:
        self._last_album += 1
        return self._last_album

    def create_topic(self, chat: Chat, by: Account, name: str) -> Topic:
        """A topic's number is that of the message that tells of it."""
        color = COLORS[len(chat.topics) % len(COLORS)]
        service = {"forum_topic_created": {"name": name, "icon_color": color}}
        number = self.next_id(chat)
        topic = chat.topics[number] = Topic(number, name, color)
        told = Message(
            sender=by, id=number, chat=chat.id, date=self.now(), thread=number, service=service
        )
        chat.keep(told)
        self.publish(chat, Posted(told))
        self.changed(chat)
        return topic

    def change(self, chat: Chat, message: Message) -> Message:
        chat.keep(message)
        self.publish(chat, Edited(message))
        return message

    def react(self, chat: Chat, message: Message, user: int, emoji: str) -> Message:
        """At most one reaction of each account; an empty `emoji` takes it back."""
        others = tuple(pair for pair in message.reactions if pair[0] != user)
        own = ((user, emoji),) if emoji else ()
        reacted = replace(message, reactions=others + own)
        chat.keep(reacted)
        self.publish(chat, Reacted(reacted))
        return reacted

    def delete(self, chat: Chat, ids: list[int]) -> None:
        for number in ids:
            chat.messages.pop(number, None)
            chat.pinned = [pinned for pinned in chat.pinned if pinned != number]
        self.publish(chat, Deleted(chat.id, tuple(ids)))

    def draft(self, chat: Chat, draft: Drafted) -> None:
        chat.draft[draft.thread] = draft
        self.publish(chat, draft)

    def act(self, chat: Chat, action: Acted) -> None:
        chat.action[action.thread] = action
        self.publish(chat, action)

    def changed(self, chat: Chat) -> None:
        self.publish(chat, Changed(chat.id))

    def chat_of(self, number: str) -> Chat:
        """The chat a call names, where the bot may act.

        Raises: ApiError 400 or 403, in Telegram's words.
        """
        if not number:
            raise bad_request("chat_id is empty")
        chat = self.chats.get(integer(number))
        if chat is None or chat.status == "":
            met = {
                user for group in self.chats.values() if not group.private for user in group.members
            }
            if integer(number) in met:
                raise forbidden("bot can't initiate conversation with a user")
            raise bad_request("chat not found")
        if chat.migrated_to is not None:
            raise bad_request(
                "group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.migrated_to
            )
        if chat.deactivated:
            raise forbidden("user is deactivated")
        if chat.status not in IN_CHAT:
            if chat.private:
                raise forbidden("bot was blocked by the user")
            verb = "was kicked from" if chat.status == "kicked" else "is not a member of"
            raise forbidden(f"bot {verb} the {chat.type} chat")
        return chat
