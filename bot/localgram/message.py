"""A message as the server keeps it, and as the Bot API shows it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bot.localgram.files import StoredFile
from bot.localgram.people import Account
from bot.localgram.wire import Json

if TYPE_CHECKING:
    from bot.localgram.chat import Chat

Keyboard = tuple[tuple[Json, ...], ...]


@dataclass(frozen=True, slots=True)
class Media:
    """`kind` is the message's key: photo, document, voice, audio, video, animation, video_note, sticker."""

    kind: str
    file: StoredFile
    details: Json = field(default_factory=dict)  # width, height, duration (s), ...

    def json(self) -> object:
        if self.kind == "photo":
            return [{**self.file.json(), **self.details}]
        shown = {**self.file.json(), **self.details}
        if self.kind not in {"sticker", "video_note"}:
            shown["mime_type"] = self.file.mime
        if self.kind in {"document", "audio", "video", "animation"}:
            shown["file_name"] = self.file.name
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """`text` is the caption where there is media; offsets in `entities` count UTF-16 units."""

    sender: Account
    chat: int = 0
    id: int = 0
    date: int = 0
    edited: int | None = None
    text: str = ""
    entities: tuple[Json, ...] = ()
    media: Media | None = None
    album: str | None = None
    thread: int | None = None
    reply_to: int | None = None
    quote: str = ""
    keyboard: Keyboard = ()
    reactions: tuple[tuple[int, str], ...] = ()  # (user id, emoji)
    silent: bool = False
    preview: Json | None = None
    forward: Json | None = None
    service: Json | None = None

    @property
    def buttons(self) -> list[str]:
        return [button["text"] for row in self.keyboard for button in row]

    def content(self) -> tuple[object, ...]:
        """What an edit compares."""
        return (self.text, self.entities, self.media, self.keyboard)


def message_json(message: Message, chat: "Chat", *, nested: bool = False) -> Json:
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


def _reply(message: Message, chat: "Chat") -> Json:
    replied = chat.messages.get(message.reply_to or 0)
    if replied is None:
        return {}
    shown: Json = {"reply_to_message": message_json(replied, chat, nested=True)}
    if message.quote:
        position = max(replied.text.find(message.quote), 0)
        units = len(replied.text[:position].encode("utf-16-le")) // 2
        shown["quote"] = {"text": message.quote, "position": units, "is_manual": True}
    return shown
