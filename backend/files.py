"""Files and folders of the backend's state: replaced in one step, private, locked by one process."""

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from backend.protocol import Value

Model = TypeVar("Model", bound=BaseModel)


class ForeignFolder(Exception):
    """A folder is a link, or belongs to another user, who could put a socket or a link in it."""


def replace_text(path: Path, text: str, *, sync: bool = False) -> None:
    """Replace the file atomically: a reader sees the old or the new text, never a part.

    `sync` flushes it to disk first, so that it survives a power cut. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    fresh.replace(path)


def read_json_lines(path: Path, kind: type[Model], most: int) -> list[Model]:
    """The last `most` values of a JSON Lines file; lines that cannot be parsed are skipped."""
    values = []
    with suppress(OSError):
        for line in path.read_text("utf-8", "replace").split("\n"):
            with suppress(ValueError):
                values.append(kind.model_validate_json(line))
    return values[-most:]


def write_json_lines(path: Path, values: Iterable[Value]) -> None:
    """Replace a JSON Lines file; the old one stays where it cannot be written (a full disk)."""
    with suppress(OSError):
        replace_text(path, "".join(f"{value.to_data()}\n" for value in values))


def sha256(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal. Blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def private_folder(path: Path) -> None:
    """Create a folder with mode 0700; ForeignFolder when another user owns it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.getuid(), 0):
        raise ForeignFolder(f"{path} is not a folder of this user's own.")


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold a lock file for the block; BlockingIOError when another process holds it.

    The kernel releases it even if the process is killed.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
