"""Files as the server keeps them, and the links they are fetched by."""

import mimetypes
import secrets
from dataclasses import dataclass
from pathlib import PurePosixPath

from bot.localgram.clock import Clock
from bot.localgram.wire import ApiError, Json, bad_request

DOWNLOAD_LIMIT = 20 << 20  # bytes, `Client::MAX_DOWNLOAD_FILE_SIZE`
UPLOAD_LIMIT = 50 << 20
PHOTO_LIMIT = 10 << 20
LINK_SECONDS = 3600.0  # "guaranteed to be valid for at least 1 hour"
PREFIX = "AgAD"  # every file id of ours begins so; what does not is no file id


@dataclass(frozen=True, slots=True)
class StoredFile:
    """`size` is what the server claims, in bytes; it may exceed `content` in a test."""

    id: str
    unique: str
    name: str
    mime: str
    content: bytes
    size: int

    def json(self) -> Json:
        return {"file_id": self.id, "file_unique_id": self.unique, "file_size": self.size}


class Files:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_id: dict[str, StoredFile] = {}
        self._by_unique: dict[str, StoredFile] = {}
        self._links: dict[str, tuple[StoredFile, float]] = {}

    def keep(
        self, name: str, content: bytes, mime: str = "", size: int | None = None
    ) -> StoredFile:
        mime = mime or mimetypes.guess_type(name)[0] or "application/octet-stream"
        unique = "AQAD" + secrets.token_urlsafe(9)
        claimed = len(content) if size is None else size
        stored = StoredFile(
            PREFIX + secrets.token_urlsafe(36), unique, name, mime, content, claimed
        )
        self._by_id[stored.id] = stored
        self._by_unique[unique] = stored
        return stored

    def find(self, file_id: str) -> StoredFile | None:
        return self._by_id.get(file_id)

    def seen(self, unique: str) -> StoredFile | None:
        return self._by_unique.get(unique)

    def link(self, file_id: str) -> Json:
        """The answer of getFile: a path that is good for an hour.

        Raises: ApiError 400.
        """
        if not file_id:
            raise bad_request("file_id not specified")
        if not file_id.startswith(PREFIX):
            raise bad_request("invalid file_id")
        stored = self._by_id.get(file_id)
        if stored is None:
            raise bad_request("wrong file_id or the file is temporarily unavailable")
        if stored.size > DOWNLOAD_LIMIT:
            raise bad_request("file is too big")
        path = f"{_folder(stored.mime)}/file_{len(self._links)}{PurePosixPath(stored.name).suffix}"
        self._links[path] = (stored, self._clock() + LINK_SECONDS)
        return {**stored.json(), "file_path": path}

    def fetch(self, path: str) -> StoredFile:
        """Raises: ApiError 404 for a link that is not there, or no longer valid."""
        stored, until = self._links.get(path, (None, 0.0))
        if stored is None or self._clock() >= until:
            raise ApiError(404)
        return stored

    def expire_links(self) -> None:
        self._links = {path: (stored, 0.0) for path, (stored, _) in self._links.items()}


def _folder(mime: str) -> str:
    kind = mime.partition("/")[0]
    return {"image": "photos", "audio": "voice", "video": "videos"}.get(kind, "documents")
