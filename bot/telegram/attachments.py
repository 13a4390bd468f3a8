"""Files that came with a message: which they are, and fetching them into the workspace."""

import json
import mimetypes
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from telegram import Message

Kind = Literal["photo", "document", "voice", "audio", "video", "video note", "animation"]
_SUFFIXES = {"voice": ".oga", "photo": ".jpg", "video note": ".mp4"}


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file as Telegram names it. `size` is in bytes, 0 where Telegram does not say; `seconds` of sound or film."""

    kind: Kind
    file_id: str
    unique_id: str
    name: str
    mime: str = ""
    size: int = 0
    seconds: int = 0


def attachments(message: Message) -> list[Attachment]:
    """A message has one at most; photos come in sizes, the largest is meant."""
    kinds: list[tuple[Kind, object]] = [
        ("photo", message.photo[-1] if message.photo else None),
        ("animation", message.animation),
        ("document", None if message.animation else message.document),
        ("voice", message.voice),
        ("audio", message.audio),
        ("video", message.video),
        ("video note", message.video_note),
    ]
    return [_attachment(kind, file, message) for kind, file in kinds if file is not None]


def _attachment(kind: Kind, file: object, message: Message) -> Attachment:
    unique, mime = file.file_unique_id, getattr(file, "mime_type", "") or ""  # type: ignore[attr-defined]
    given = getattr(file, "file_name", "") or ""
    suffix = _SUFFIXES.get(kind) or mimetypes.guess_extension(mime) or ""
    made = f"{kind.replace(' ', '-')}-{message.date:%Y%m%d-%H%M%S}-{message.message_id}{suffix}"
    seconds = getattr(file, "_duration", None)
    return Attachment(
        kind,
        file.file_id,  # type: ignore[attr-defined]
        unique,
        safe_name(given) or made,
        mime,
        getattr(file, "file_size", 0) or 0,
        int(seconds.total_seconds()) if seconds else 0,
    )


def safe_name(name: str) -> str:
    """A file name without folders, hidden beginnings or control characters."""
    kept = "".join(c for c in name.replace("\\", "/").rpartition("/")[2] if c.isprintable())
    return kept.strip().lstrip(".")[-120:]


def written(files: Sequence[Attachment]) -> str:
    return json.dumps([asdict(file) for file in files]) if files else "{}"


def read(body: str) -> list[Attachment]:
    found = json.loads(body)
    return [Attachment(**fields) for fields in found] if isinstance(found, list) else []
