"""The server's state: bot, people, chats, files, and the queue of updates."""

import asyncio
import contextlib
import random
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bot.localgram.chat import Chat
from bot.localgram.feed import Acted, Answered, Changed, Drafted, Event, Feed, Posted
from bot.localgram.message import Account, Files, Message
from bot.localgram.wire import ApiError, Json, bad_request, integer

COMMAND = re.compile(r"[a-z0-9_]{1,32}")
TWO_POLLERS = (
    "terminated by other getUpdates request; make sure that only one bot instance is running"
)
TEXTS = {"description": 512, "short_description": 120}  # the longest


@dataclass(slots=True, eq=False)
class Query:
    """A callback query (a pressed button), inline query or guest query. `answer` (to a press)
    and `results` stay None until the bot answers."""

    chat: int = 0
    user: int = 0
    id: str = field(default_factory=lambda: str(secrets.randbits(62)))
    answer: Answered | None = None
    results: Sequence[Json] | None = None


class World:
    def __init__(self, bot: Account) -> None:
        self.bot = bot
        self.topics_in_private = False
        self.people: dict[int, Account] = {}
        self.chats: dict[int, Chat] = {}
        self.feed = Feed()
        self.files = Files()
        self.updates = Updates(self.feed)
        self.queries: dict[str, Query] = {}
        self.commands: dict[tuple[str, int, str], list[Json]] = {}  # by scope, chat, language
        self.texts: dict[tuple[str, str], str] = {}  # by kind, language
        self._last_id = 0
        self._last_album = 13_000_000_000_000_000

    def now(self) -> int:
        return int(time.time())

    def bot_json(self) -> Json:
        return {
            **self.bot.json(),
            "can_join_groups": True,
            "can_read_all_group_messages": True,
            "supports_inline_queries": True,
            "can_connect_to_business": False,
            "has_topics_enabled": self.topics_in_private,
            "allows_users_to_create_topics": self.topics_in_private,
        }

    # -- the bot about itself --------------------------------------------------

    def set_commands(
        self, scope: str, chat: int, language: str, commands: Sequence[object]
    ) -> None:
        """Set the bot's commands. Raises ApiError 400 for an invalid one."""
        for command in commands:
            known = command if isinstance(command, dict) else {}
            if not COMMAND.fullmatch(str(known.get("command", ""))):
                raise bad_request("BOT_COMMAND_INVALID")
            if not 1 <= len(str(known.get("description", ""))) <= 256:
                raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
        self.commands[scope, chat, language] = [dict(each) for each in commands]  # type: ignore[call-overload]
        self.menus_changed()

    def commands_in(self, chat: Chat, language: str) -> list[Json]:
        """Return the commands in a person's menu: those of the narrowest scope that has any."""
        everywhere = "all_private_chats" if chat.private else "all_group_chats"
        for scope, number in (("chat", chat.id), (everywhere, 0), ("default", 0)):
            for tongue in (language, ""):
                if found := self.commands.get((scope, number, tongue)):
                    return found
        return []

    def set_text(self, kind: str, language: str, text: str) -> None:
        if len(text) > TEXTS[kind]:
            raise bad_request(f"bot {kind.replace('_', ' ')} is too long")
        self.texts[kind, language] = text
        self.menus_changed()

    def text(self, kind: str, language: str) -> str:
        return self.texts.get((kind, language)) or self.texts.get((kind, "")) or ""

    def menus_changed(self) -> None:
        for chat in self.chats.values():
            self.changed(chat)

    # -- what happens in chats -------------------------------------------------

    def publish(self, chat: Chat, event: Event) -> None:
        chat.feed.publish(event)
        self.feed.publish(event)

    def changed(self, chat: Chat) -> None:
        self.publish(chat, Changed())

    def next_id(self, chat: Chat) -> int:
        """Return the next message id: one counter for private chats and basic groups, one for each supergroup."""
        if chat.type == "supergroup":
            chat.last_id += 1
            return chat.last_id
        self._last_id += 1
        return self._last_id

    def next_album(self) -> str:
        self._last_album += 1
        return str(self._last_album)

    def post(self, chat: Chat, message: Message) -> Message:
        """Give a new message its number and date, store it and show it. One of the bot ends its draft."""
        posted = replace(message, id=self.next_id(chat), chat=chat.id, date=self.now())
        chat.messages[posted.id] = posted
        if message.sender.is_bot:
            chat.action.pop(message.thread, None)
        self.publish(chat, Posted(posted))
        if message.sender.is_bot:
            self.end_draft(chat, message.thread)
        return posted

    def change(self, chat: Chat, message: Message) -> Message:
        chat.messages[message.id] = message
        self.changed(chat)
        return message

    def react(self, chat: Chat, message: Message, user: int, emoji: str) -> None:
        """Set the account's only reaction to a message; an empty `emoji` removes it."""
        others = tuple(pair for pair in message.reactions if pair[0] != user)
        own = ((user, emoji),) if emoji else ()
        chat.messages[message.id] = replace(message, reactions=others + own)
        self.changed(chat)

    def delete(self, chat: Chat, message: Message) -> None:
        del chat.messages[message.id]
        self.changed(chat)

    def draft(self, chat: Chat, draft: Drafted) -> None:
        chat.draft[draft.thread] = draft
        self.publish(chat, draft)

    def end_draft(self, chat: Chat, thread: int | None) -> None:
        if chat.draft.pop(thread, None) is not None:
            self.changed(chat)

    def act(self, chat: Chat, action: Acted) -> None:
        chat.action[action.thread] = action
        self.publish(chat, action)

    def open(self, query: Query) -> Query:
        self.queries[query.id] = query
        return query

    def close(self, id: str) -> Query:
        """Return the query and mark it as answered. Raises ApiError 400 if it is unknown or was answered."""
        if id not in self.queries:
            raise bad_request(
                "query is too old and response timeout expired or query ID is invalid"
            )
        return self.queries.pop(id)

    def chat_of(self, number: str) -> Chat:
        """The chat with this id. Raises ApiError 400, or 403 where the bot may not act in it."""
        chat = self.chats.get(integer(number))
        if chat is None or chat.status == "":
            if any(
                integer(number) in group.members
                for group in self.chats.values()
                if not group.private
            ):
                raise ApiError(403, "bot can't initiate conversation with a user")
            raise bad_request("chat not found")
        if chat.migrated_to is not None:
            raise bad_request(
                "group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.migrated_to
            )
        if chat.status == "kicked":
            blocked = "blocked by the user" if chat.private else f"kicked from the {chat.type} chat"
            raise ApiError(403, f"bot was {blocked}")
        return chat


# -- updates ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Update:
    id: int
    kind: str
    body: object

    def json(self) -> Json:
        return {"update_id": self.id, self.kind: self.body}


class Updates:
    """The queue of updates: numbers, acknowledgement, redelivery, two pollers.

    It behaves as tdlib/telegram-bot-api (`Client::do_get_updates`) does.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._next = random.randrange(2_000_001, 900_000_000)
        self._queue: list[Update] = []
        self._allowed: frozenset[str] = frozenset()
        self._poll: asyncio.Future[str] | None = None
        self.polls = 0  # calls answered or waiting so far

    @property
    def waiting(self) -> bool:
        """Whether a getUpdates call is waiting."""
        return self._poll is not None

    def allow(self, kinds: list[str] | None) -> None:
        """Set allowed_updates, as getUpdates does: an empty list means the default, None changes nothing."""
        if kinds is not None:
            self._allowed = frozenset(kinds)

    def put(self, kind: str, body: Json) -> None:
        """Queue an update if its kind is one of allowed_updates."""
        if kind in self._allowed if self._allowed else kind != "message_reaction":
            self.inject(kind, body)

    def inject(self, kind: str, body: object) -> int:
        """Queue an update unchecked: `body` may be any JSON, and `kind` even "update_id"."""
        number, self._next = self._next, self._next + 1
        self._queue.append(Update(number, kind, body))
        self.wake("")
        return number

    def pending(self) -> list[Update]:
        return self._queue

    def acknowledge(self, offset: int) -> None:
        """Delete the updates below `offset`; a negative offset keeps that many of the newest."""
        if offset < 0:
            self._queue = self._queue[offset:]
        elif offset > 0:
            self._queue = [update for update in self._queue if update.id >= offset]

    def wake(self, conflict: str) -> None:
        """End the waiting getUpdates call with the queued updates, or with a conflict's text."""
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(conflict)

    async def take(
        self, offset: int, limit: int, seconds: float, allowed: list[str] | None
    ) -> list[Json]:
        """Carry out a getUpdates call. Raises ApiError 409."""
        self.allow(allowed)
        self.wake(TWO_POLLERS)
        self.polls += 1
        self.acknowledge(offset)
        if not self._queue and seconds > 0:
            await self._wait(seconds)
        return [update.json() for update in self._queue[:limit]]

    async def _wait(self, seconds: float) -> None:
        poll = self._poll = asyncio.get_running_loop().create_future()
        self._feed.wake()
        conflict = ""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    conflict = await poll
        finally:
            if self._poll is poll:
                self._poll = None
        if conflict:
            raise ApiError(409, conflict)
