"""A person with a phone."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from bot.localgram.chat import Chat, message_json
from bot.localgram.feed import SECONDS, Answered, Drafted, Event, Posted
from bot.localgram.message import Account, Media, Message, dimensions, formatted
from bot.localgram.wire import Json
from bot.localgram.world import Query, World

MIMES = {"photo": "image/jpeg", "voice": "audio/ogg", "video_note": "video/mp4"}
NAMES = {"photo": "photo.jpg", "voice": "voice.ogg", "video_note": "round.mp4"}
Found = TypeVar("Found")


class Person:
    """A person who writes and reads. `chat=` names the chat, by default the private one.

    Waiting methods raise TimeoutError after `seconds`.
    """

    def __init__(self, world: World, account: Account) -> None:
        self.account = account
        self.id = account.id
        self.world = world
        self._read: dict[int, int] = {}  # by chat: the last event looked at

    def chat(self, chat: Chat | int | None = None) -> Chat:
        if isinstance(chat, Chat):
            return chat
        return self.world.chats[self.id if chat is None else chat]

    async def send(
        self,
        text: str,
        *,
        chat: Chat | int | None = None,
        thread: int | None = None,
        reply_to: Message | int | None = None,
        quote: str = "",
    ) -> Message:
        """Send a message; in a private chat the first one starts it, as /start does."""
        number = reply_to.id if isinstance(reply_to, Message) else reply_to
        return self._say(self.chat(chat), text, thread=thread, reply_to=number, quote=quote)

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
        mime: str = "",
    ) -> Message:
        """Send a photo, document, voice, audio, video, video_note or animation.

        `seconds` is the length of a recording; `size` claims another number of bytes.
        Raises ValueError for a photo that is no picture.
        """
        mime = mime or MIMES.get(kind, "")
        stored = self.world.files.keep(name or NAMES.get(kind, kind), content, mime, size)
        media = Media(kind, stored, media_details(kind, content, seconds))
        return self._say(self.chat(chat), caption, media=media, thread=thread, album=album)

    def _say(self, chat: Chat, text: str, **fields: Any) -> Message:
        kept, entities = formatted(text, [])
        return self.post(chat, Message(sender=self.account, text=kept, entities=entities, **fields))

    def post(self, chat: Chat, message: Message) -> Message:
        """Post a message of this person, and queue an update of it where Telegram would."""
        posted = self.world.post(start_private(chat), message)
        self.tell("message", chat, posted)
        return posted

    def tell(self, kind: str, chat: Chat, message: Message) -> None:
        if chat.status in {"member", "administrator"}:
            self.world.updates.put(kind, message_json(message, chat))

    async def stop_draft(
        self, *, chat: Chat | int | None = None, thread: int | None = None
    ) -> None:
        """Press the Stop button of a draft.

        Raises: LookupError when there is none to stop.
        """
        place, draft = self.chat(chat), self.draft(chat=chat, thread=thread)
        if draft is None or not draft.can_stop:
            raise LookupError("nothing is being written that can be stopped")
        self.world.end_draft(place, thread)
        topic = {} if thread is None else {"message_thread_id": thread}
        body = {"chat": place.json(), **topic, "draft_id": draft.id}
        self.world.updates.put("stopped_message_generation", body)

    def press_button(self, message: Message, button: Json) -> Query:
        """Press a button; one without callback data (a link, a text to copy) sends no update."""
        chat = self.chat(message.chat)
        query = self.world.open(Query(chat.id, self.id))
        if "callback_data" in button:
            body = {
                "id": query.id,
                "from": self.account.json(),
                "message": message_json(message, chat),
                "chat_instance": str(chat.id * 7919),
                "data": button["callback_data"],
            }
            self.world.updates.put("callback_query", body)
        return query

    async def answer(self, query: Query, *, seconds: float = SECONDS) -> Answered:
        """Wait for the bot's answer to a press."""
        chat = self.world.chats[query.chat]
        return await chat.feed.until(lambda: query.answer, seconds)

    async def event(
        self,
        pick: Callable[[Event], Found | None],
        *,
        chat: Chat | int | None = None,
        seconds: float = SECONDS,
    ) -> Found:
        """Wait for the next event for which `pick` returns something, skip those before it, and return that."""
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
        """Wait for the bot's next message that was not returned before, as it was sent."""

        def pick(event: Event) -> Message | None:
            if isinstance(event, Posted) and event.message.sender.is_bot and where(event.message):
                return event.message
            return None

        return await self.event(pick, chat=chat, seconds=seconds)

    def draft(self, *, chat: Chat | int | None = None, thread: int | None = None) -> Drafted | None:
        """Return the bot's current draft."""
        draft = self.chat(chat).draft.get(thread)
        return draft if draft is not None and time.time() < draft.until else None


def media_details(kind: str, content: bytes, seconds: int) -> Json:
    """Return a file's fields as an app would send them. Raises ValueError for a photo that is no picture."""
    match kind:
        case "photo":
            sides = dimensions(content)
            if sides is None:
                raise ValueError("not a picture: send it as a document")
            return {"width": sides[0], "height": sides[1]}
        case "voice" | "audio":
            return {"duration": seconds}
        case "video_note":
            return {"length": 384, "duration": seconds}
    return {}


def start_private(chat: Chat) -> Chat:
    """Start the chat if it is a private one that nobody has started; return it."""
    chat.status = chat.status or "member" if chat.private else chat.status
    return chat
