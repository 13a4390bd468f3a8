"""Accounts, files and messages as the server stores them."""

import mimetypes
import re
import secrets
import struct
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from bot.localgram.wire import ApiError, Json, bad_request, given

DOWNLOAD_LIMIT = 20 << 20  # bytes, `Client::MAX_DOWNLOAD_FILE_SIZE`
UPLOAD_LIMIT = 50 << 20
PHOTO_LIMIT = 10 << 20
Keyboard = tuple[tuple[Json, ...], ...]


@dataclass(frozen=True, slots=True)
class Account:
    """The bot, or a person it talks to."""

    id: int
    first_name: str
    username: str = ""
    last_name: str = ""
    language: str = "en"
    is_bot: bool = False

    def json(self) -> Json:
        language = given(language_code=None if self.is_bot else self.language)
        return {"id": self.id, "is_bot": self.is_bot, **self.names(), **language}

    def names(self) -> Json:
        more = given(last_name=self.last_name, username=self.username)
        return {"first_name": self.first_name, **more}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file on the server. `size` is what the server claims, in bytes; it may exceed `content` in a test."""

    id: str
    unique: str
    name: str
    mime: str
    content: bytes
    size: int

    def json(self) -> Json:
        return {"file_id": self.id, "file_unique_id": self.unique, "file_size": self.size}


class Files:
    """All files, and the links from which the bot downloads them."""

    def __init__(self) -> None:
        self.by_id: dict[str, StoredFile] = {}
        self.by_unique: dict[str, StoredFile] = {}
        self.links: dict[str, StoredFile] = {}

    def keep(
        self, name: str, content: bytes, mime: str = "", size: int | None = None
    ) -> StoredFile:
        mime = mime or mimetypes.guess_type(name)[0] or "application/octet-stream"
        id, unique = "AgAD" + secrets.token_urlsafe(36), "AQAD" + secrets.token_urlsafe(9)
        claimed = len(content) if size is None else size
        stored = StoredFile(id, unique, name, mime, content, claimed)
        self.by_id[id] = self.by_unique[unique] = stored
        return stored

    def link(self, file_id: str) -> Json:
        """Create a download link: the result of getFile. Raises ApiError 400."""
        stored = self.by_id.get(file_id)
        if stored is None:
            raise bad_request("wrong file_id or the file is temporarily unavailable")
        if stored.size > DOWNLOAD_LIMIT:
            raise bad_request("file is too big")
        path = f"files/file_{secrets.token_hex(4)}{PurePosixPath(stored.name).suffix}"
        self.links[path] = stored
        return {**stored.json(), "file_path": path}

    def fetch(self, path: str) -> StoredFile:
        """Return the file behind a link. Raises ApiError 404 for an unknown or expired one."""
        if path not in self.links:
            raise ApiError(404)
        return self.links[path]


@dataclass(frozen=True, slots=True)
class Media:
    """A file with its kind in a message.

    `kind` is the message's key: photo, document, voice, audio, video, animation, video_note.
    """

    kind: str
    file: StoredFile
    details: Json = field(default_factory=dict)  # width, height, duration (s), ...

    def json(self) -> object:
        shown = {**self.file.json(), **self.details}
        if self.kind == "photo":
            return [shown]
        if self.kind != "video_note":
            shown["mime_type"] = self.file.mime
        if self.kind not in {"voice", "video_note"}:
            shown["file_name"] = self.file.name
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as the server stores it.

    `text` is the caption where there is media; offsets in `entities` count UTF-16 units.
    """

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
        """The fields of which an edit must change one."""
        return (self.text, self.entities, self.keyboard)


def dimensions(content: bytes) -> tuple[int, int] | None:
    """(width, height) in pixels of a PNG or JPEG file; None for anything else."""
    if content[:8] == b"\x89PNG\r\n\x1a\n" and len(content) >= 24:
        return struct.unpack(">II", content[16:24])
    at = 2 if content[:2] == b"\xff\xd8" else len(content)
    while at + 9 <= len(content) and content[at] == 0xFF:
        marker, length = content[at + 1], struct.unpack(">H", content[at + 2 : at + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return width, height
        at += 2 + length
    return None


ENTITIES = 100  # a message keeps so many; the rest lose their formatting
NEEDED = {"text_link": "url", "text_mention": "user", "custom_emoji": "custom_emoji_id"}
FOUND = re.compile(  # what clients mark by themselves, as far as somebody here reads it
    r"(?P<bot_command>(?<![\w/<@])/[A-Za-z0-9_]{1,64}(?:@\w{3,32})?)(?![\w/])"
    r"|(?P<url>https?://[^\s<>\"]+[^\s<>\".,;:!?)\]])"
    r"|(?P<mention>(?<!\w)@[A-Za-z]\w{3,31})\b"
)
WHOLE = frozenset({"code", "pre", "text_link", "text_mention", "custom_emoji"})  # hold no others


def units(text: str) -> int:
    """The length of a text in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def formatted(text: str, entities: list[Any]) -> tuple[str, tuple[Json, ...]]:
    """Check and trim a text and its entities as Telegram does, and add those that clients detect, such as links.

    Raises ApiError 400."""
    try:
        wide = text.encode("utf-16-le")
    except UnicodeEncodeError:
        raise bad_request("strings must be encoded in UTF-8") from None
    checked = [_checked(entity, wide) for entity in entities]
    first = min((entity["offset"] for entity in checked), default=len(text))
    start = min(len(text) - len(text.lstrip()), first)  # blanks are one unit each
    trimmed = text[start:].rstrip()
    kept = [_clipped(entity, -start, units(trimmed)) for entity in checked]
    kept = [entity for entity in kept if entity["length"] > 0]
    kept += [
        found for found in _found(trimmed) if not any(_hides(entity, found) for entity in kept)
    ]
    kept.sort(key=lambda entity: (entity["offset"], -entity["length"]))
    return trimmed, tuple(kept[:ENTITIES])


def _checked(entity: Any, wide: bytes) -> Json:
    """Raises ApiError 400 for an entity that lacks a field or does not lie in the text."""
    if not isinstance(entity, dict):
        raise bad_request("can't parse MessageEntity: expected an Object")
    for name in ("type", "offset", "length", NEEDED.get(str(entity.get("type")), "type")):
        if name not in entity:
            raise bad_request(f"can't parse MessageEntity: Can't find field \"{name}\"")
    first, last = entity["offset"], entity["offset"] + entity["length"]
    if not 0 <= first <= last or 2 * last > len(wide):
        raise bad_request(
            f"entity beginning at UTF-16 offset {first} ends after the end of the text"
        )
    for at in (first, last):
        if 0xDC <= int.from_bytes(wide[2 * at + 1 : 2 * at + 2], "little") <= 0xDF:
            raise bad_request(f"entity border in a middle of a UTF-16 symbol at offset {at}")
    return dict(entity)


def _clipped(entity: Json, shift: int, end: int) -> Json:
    first = min(max(entity["offset"] + shift, 0), end)
    last = min(max(entity["offset"] + entity["length"] + shift, 0), end)
    return {**entity, "offset": first, "length": last - first}


def _hides(entity: Json, found: Json) -> bool:
    beside = found["offset"] >= entity["offset"] + entity["length"]
    return (
        entity["type"] in WHOLE
        and not beside
        and entity["offset"] < found["offset"] + found["length"]
    )


def _found(text: str) -> list[Json]:
    return [
        {
            "type": match.lastgroup,
            "offset": units(text[: match.start()]),
            "length": units(match.group()),
        }
        for match in FOUND.finditer(text)
    ]
