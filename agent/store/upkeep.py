"""The database's file: room given back to the disk, its check, copies of it."""

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from agent.store import Store
from agent.store.errors import StoreError, told

SNAPSHOT = "snapshot_at"  # the fact that holds when the last was made
SNAPSHOT_MOST = 1 << 30  # bytes; a larger state is left to `voltaire backup`


async def vacuum(store: Store) -> bool:
    """Give free pages back to the disk when they are a quarter of the file; whether it did."""
    async with store.database.read() as tx:
        free, pages = await tx.value("PRAGMA freelist_count"), await tx.value("PRAGMA page_count")
    if free * 4 < pages or free < 256:
        return False
    async with store.database.alone() as tx:
        await tx.run("VACUUM")
    return True


async def size(store: Store) -> int:
    """Bytes of the database on disk, its log included."""
    path = store.database.path
    names = (path, path.with_name(path.name + "-wal"))
    return sum(name.stat().st_size for name in names if name.exists())


async def intact(store: Store) -> str:
    """What SQLite's own check finds wrong with the file; empty when it is whole."""
    async with store.database.read() as tx:
        found = str(await tx.value("PRAGMA quick_check(1)"))
    return "" if found == "ok" else found


async def backup(store: Store, target: Path) -> None:
    """A consistent copy of the database, while everything runs; never a half-written file at `target`.

    Raises StoreError with a sentence when it cannot be written.
    """
    await asyncio.to_thread(_copy, store.database.path, target)


async def snapshot(store: Store) -> Path | None:
    """Keep the last good copy beside the file; None where it is too large for that, or room is short."""
    path = store.database.path
    target = path.with_suffix(".last-good")
    bytes_needed = await size(store)
    if bytes_needed > SNAPSHOT_MOST or shutil.disk_usage(path.parent).free < 4 * bytes_needed:
        return None
    await backup(store, target)
    return target


def _copy(source: Path, target: Path) -> None:
    part = target.with_name(target.name + ".part")
    try:
        with told(target):
            os.close(os.open(part, os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600))
            with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(part)) as new:
                old.backup(new, pages=1024, sleep=0.005)
                _checked(new, source)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror}.") from None
    finally:
        with suppress(OSError):
            part.unlink()


def _checked(copy: sqlite3.Connection, source: Path) -> None:
    """A copy of a damaged file must not replace a good one."""
    found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreError(f"The database {source} is damaged ({found}): no copy was made.")
    copy.execute("PRAGMA journal_mode = DELETE")
