"""A message as the server keeps it."""

from dataclasses import dataclass, field

from bot.localgram.files import StoredFile
from bot.localgram.people import Account
from bot.localgram.wire import Json

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
    rich: str = ""  # the HTML of a rich message, whose words are `text`
    forward: Json | None = None
    service: Json | None = None

    @property
    def buttons(self) -> list[str]:
        return [button["text"] for row in self.keyboard for button in row]

    def content(self) -> tuple[object, ...]:
        """What an edit compares."""
        return (self.text, self.entities, self.media, self.keyboard)
