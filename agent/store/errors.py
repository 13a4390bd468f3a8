"""What can go wrong with the database file, by who must act.

AgentError
└── StoreError     a person reads the sentence
    ├── StoreFull      no room on the disk: make room, nothing is lost
    ├── StoreBusy      another process holds it for too long: wait and try again
    ├── StoreDamaged   the file cannot be read: restore a copy
    └── StoreNewer     a newer version wrote it: update this one
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent.errors import AgentError

FREE_BYTES = 65_536  # SQLite's shared memory grows by 32 KiB, its log by a page and more
_DAMAGED = ("unsupported file format", "Could not decode to UTF-8")  # told without a code
_NO_ACCESS = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


class StoreError(AgentError):
    pass


class StoreFull(StoreError):
    pass


class StoreBusy(StoreError):
    pass


class StoreDamaged(StoreError):
    pass


class StoreNewer(StoreError):
    pass


@contextmanager
def as_store_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as StoreError; violated constraints are bugs and are raised as they are."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if (known := _store_error(path, error)) is None:
            raise
        raise known from error


def _store_error(path: Path, error: sqlite3.DatabaseError) -> StoreError | None:
    """The error for a person, or None for an error in the program's own SQL."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # SQLite reports "disk I/O error" when the files beside the database cannot grow.
    if code == sqlite3.SQLITE_FULL or (code in _NO_ACCESS and _full(path)):
        return StoreFull(
            f"The disk that holds {path} is full: nothing can be saved until there is room."
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(f"Another process keeps {path} locked.")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or str(error).startswith(_DAMAGED):
        return damaged(path)
    if code in _NO_ACCESS:
        return StoreError(f"{path} cannot be read or written ({error}).")
    return None


def _full(path: Path) -> bool:
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < FREE_BYTES or (disk.f_files > 0 and disk.f_favail == 0)


def damaged(path: Path) -> StoreDamaged:
    copy = path.with_suffix(".last-good")
    where = f"the last good copy is {copy}" if copy.exists() else "restore a backup"
    return StoreDamaged(
        f"The database {path} is damaged and was left as it is; {where} (voltaire restore FILE)."
    )
