"""A person with a phone, for tests, benches and the demo."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from bot.localgram.chat import Chat, Topic
from bot.localgram.entities import formatted
from bot.localgram.feed import SECONDS, Answered, Drafted, Event, Posted
from bot.localgram.media import attach
from bot.localgram.message import Message
from bot.localgram.people import Account
from bot.localgram.queries import InlineQuery, Query
from bot.localgram.speech import Speech

if TYPE_CHECKING:
    from bot.localgram.world import World

Found = TypeVar("Found")


class Person:
    """Acts as one account. Chats are named by `chat=`; left out, it is the private one.

    Waiting methods raise TimeoutError after `seconds`.
    """

    def __init__(self, world: "World", account: Account) -> None:
        self.account = account
        self.id = account.id
        self._world = world
        self._speech = Speech(world, account)
        self._read: dict[int, int] = {}  # by chat: the last event looked at

    def chat(self, chat: Chat | int | None = None) -> Chat:
        if isinstance(chat, Chat):
            return chat
        return self._world.chats[self.id if chat is None else chat]

    async def send(
        self,
        text: str,
        *,
        chat: Chat | int | None = None,
        thread: int | None = None,
        reply_to: Message | int | None = None,
        quote: str = "",
    ) -> Message:
        """Write a message. The first one in a private chat starts it, as /start does."""
        number = reply_to.id if isinstance(reply_to, Message) else reply_to
        kept, entities = formatted(text, "", [])
        draft = Message(
            sender=self.account,
            text=kept,
            entities=entities,
            thread=thread,
            reply_to=number,
            quote=quote,
        )
        return self._speech.say(self.chat(chat), draft)

    async def send_file(
        self,
        kind: str,
        content: bytes,
        name: str = "",
        *,
        caption: str = "",
        chat: Chat | int | None = None,
        thread: int | None = None,
        seconds: int = 0,
        size: int | None = None,
        album: str | None = None,
    ) -> Message:
        """Send a photo, document, voice, audio, video, video_note or animation.

        `seconds` is the length of a recording; `size` claims another number of bytes.
        """
        media = attach(self._world.files, kind, content, name, seconds=seconds, size=size)
        kept, entities = formatted(caption, "", [])
        draft = Message(
            sender=self.account,
            media=media,
            text=kept,
            entities=entities,
            thread=thread,
            album=album,
        )
        return self._speech.say(self.chat(chat), draft)

    async def send_album(
        self, photos: Sequence[bytes], *, caption: str = "", chat: Chat | int | None = None
    ) -> list[Message]:
        """Photos in one album; the caption stands under the first."""
        album = str(self._world.next_album())
        captions = [caption, *[""] * (len(photos) - 1)]
        return [
            await self.send_file("photo", photo, caption=text, chat=chat, album=album)
            for photo, text in zip(photos, captions, strict=True)
        ]

    async def forward(self, message: Message, *, chat: Chat | int | None = None) -> Message:
        origin = {"type": "user", "sender_user": message.sender.json(), "date": message.date}
        draft = Message(
            sender=self.account,
            text=message.text,
            entities=message.entities,
            media=message.media,
            forward=message.forward or origin,
        )
        return self._speech.say(self.chat(chat), draft)

    async def create_topic(self, name: str, *, chat: Chat | int | None = None) -> Topic:
        return self._speech.create_topic(self.chat(chat), name)

    async def stop_draft(
        self, *, chat: Chat | int | None = None, thread: int | None = None
    ) -> None:
        """Press the Stop button of a text that is being written.

        Raises: LookupError when there is none to stop.
        """
        self._speech.stop_draft(self.chat(chat), thread)

    async def edit(self, message: Message, text: str) -> Message:
        return self._speech.edit(self.chat(message.chat), message, text)

    async def react(self, message: Message, emoji: str) -> None:
        """Put a reaction on a message; an empty one takes it back."""
        self._speech.react(self.chat(message.chat), message, emoji)

    async def press(self, message: Message, label: str) -> Query:
        """Press the button with this text under the message as it is now.

        Raises: LookupError when there is no such button.
        """
        return self._speech.press(self.chat(message.chat), message, label)

    async def inquire(self, words: str) -> InlineQuery:
        """Write "@bot words" in some chat of one's own, without sending it."""
        query = self._world.queries.ask()
        body = {"id": query.id, "from": self.account.json(), "query": words, "offset": ""}
        self._world.updates.put("inline_query", body)
        return query

    async def call_as_guest(self, words: str) -> InlineQuery:
        """Write "@bot words" in a chat that the bot is not in."""
        query = self._world.queries.ask()
        body = {
            "message_id": 1,
            "date": int(self._world.clock()),
            "chat": {"id": -5_000_000, "type": "group", "title": "Elsewhere"},
            "from": self.account.json(),
            "text": words,
            "guest_query_id": query.id,
        }
        self._world.updates.put("guest_message", body)
        return query

    async def answer(self, query: Query, *, seconds: float = SECONDS) -> Answered:
        """What the bot answered to a press."""
        chat = self._world.chats[query.chat]
        return await chat.feed.until(lambda: query.answer, seconds)

    def now(self, message: Message) -> Message | None:
        """The message as it stands; None when it was deleted."""
        return self._world.chats[message.chat].messages.get(message.id)

    async def until(
        self, message: Message, look: Callable[[Message], object], *, seconds: float = SECONDS
    ) -> Message:
        """The message as soon as it looks as wanted: edited, reacted to, relieved of buttons."""

        def settled() -> Message | None:
            current = self.now(message)
            return current if current is not None and look(current) else None

        return await self._world.chats[message.chat].feed.until(settled, seconds)

    async def event(
        self,
        pick: Callable[[Event], Found | None],
        *,
        chat: Chat | int | None = None,
        seconds: float = SECONDS,
    ) -> Found:
        """The next event that `pick` makes something of; those before it are passed over."""
        place = self.chat(chat)

        def look() -> Found | None:
            for number, event in place.feed.after(self._read.get(place.id, 0)):
                self._read[place.id] = number
                if (found := pick(event)) is not None:
                    return found
            return None

        return await place.feed.until(look, seconds)

    async def next_message(
        self,
        *,
        chat: Chat | int | None = None,
        where: Callable[[Message], object] = lambda message: True,
        seconds: float = SECONDS,
    ) -> Message:
        """The bot's next message, as it was sent, that was not returned before."""

        def pick(event: Event) -> Message | None:
            if isinstance(event, Posted) and event.message.sender.is_bot and where(event.message):
                return event.message
            return None

        return await self.event(pick, chat=chat, seconds=seconds)

    def messages(self, *, chat: Chat | int | None = None) -> list[Message]:
        """All that stands in the chat, oldest first."""
        return list(self.chat(chat).messages.values())

    def draft(self, *, chat: Chat | int | None = None, thread: int | None = None) -> Drafted | None:
        """The text that is being written now."""
        draft = self.chat(chat).draft.get(thread)
        return draft if draft is not None and self._world.clock() < draft.until else None

    def action(self, *, chat: Chat | int | None = None, thread: int | None = None) -> str:
        """What the line under the bot's name says now: "typing" or its like, or nothing."""
        act = self.chat(chat).action.get(thread)
        return act.action if act is not None and self._world.clock() < act.until else ""

    async def ask(
        self, text: str, *, chat: Chat | int | None = None, seconds: float = 600.0
    ) -> Message:
        """Send a message and wait for its final answer: the first with sound and no buttons."""
        place = self.chat(chat)
        self._read[place.id] = place.feed.last
        await self.send(text, chat=place)
        return await self.next_message(chat=place, where=is_final, seconds=seconds)

    async def block(self) -> None:
        self._speech.stop_bot("kicked")

    async def unblock(self) -> None:
        self._speech.stop_bot("member")

    def deactivate(self) -> None:
        """The account is deleted."""
        self.chat().deactivated = True


def is_final(message: Message) -> bool:
    """Progress and tool lines are silent, approvals have buttons: what is left is the answer."""
    return not message.silent and not message.keyboard
