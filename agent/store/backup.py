"""Snapshots and copies of the database, and the check of a copy."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from agent.files import replacing
from agent.store import Store, open_store
from agent.store.database import migrations, statements
from agent.store.errors import StoreDamaged, StoreError, as_store_errors

SNAPSHOT = "snapshot_at"  # key of the value that holds when the last was made
SNAPSHOT_MAX_BYTES = 1 << 30  # a larger database is left to `voltaire backup`


async def size(store: Store) -> int:
    """Bytes of the database on disk, its log included."""
    path = store.database.path
    names = (path, path.with_name(path.name + "-wal"))
    return sum(name.stat().st_size for name in names if name.exists())


async def backup(store: Store, target: Path) -> None:
    """Write a consistent copy of the database while everything runs, as a whole or not at all.

    Raises StoreError when it cannot be written.
    """
    await asyncio.to_thread(_copy, store.database.path, target)


async def check_copy(path: Path, schema: int) -> None:
    """Check a database file that nobody uses, written at version `schema`, and bring it up to date.

    Raises StoreError when its pages, references or tables are damaged, or are not those of that version: a view or
    trigger of another hand could compute for ever.
    """
    await asyncio.to_thread(_check_pages, path, schema)
    async with open_store(path):
        pass


def _check_pages(path: Path, schema: int) -> None:
    with (
        as_store_errors(path),
        closing(sqlite3.connect(path)) as database,
        closing(sqlite3.connect(":memory:")) as empty,
    ):
        [version] = database.execute("PRAGMA user_version").fetchone()
        if version != schema:
            raise StoreDamaged(f"The database has schema {version}, not {schema}.")
        for step in migrations()[:schema]:
            for statement in statements(step):
                empty.execute(statement)
        if other := _schema(database) ^ _schema(empty):
            names = ", ".join(sorted({name for name, _ in other})[:3])
            raise StoreDamaged(f"The database has other tables than schema {schema} ({names}).")
        found = [str(row[0]) for row in database.execute("PRAGMA integrity_check(1)")]
        strays = database.execute("PRAGMA foreign_key_check").fetchone()
    if found != ["ok"]:
        raise StoreDamaged(f"The database is damaged ({found[0]}).")
    if strays:
        raise StoreDamaged(f"The database is damaged (a row of {strays[0]} refers to nothing).")


def _schema(database: sqlite3.Connection) -> set[tuple[str, str | None]]:
    """The name and statement of every table, index, view and trigger."""
    return set(database.execute("SELECT name, sql FROM sqlite_master"))


def check_tables_only(path: Path) -> None:
    """Raise StoreDamaged if another part's database has a view or trigger, which could compute for ever."""
    with as_store_errors(path), closing(sqlite3.connect(path)) as database:
        made = [sql.upper().split()[1] for _, sql in _schema(database) if sql]
    if {*made} - {"TABLE", "INDEX", "UNIQUE"}:
        raise StoreDamaged(f"{path.name} holds more than tables.")


async def snapshot(store: Store) -> Path | None:
    """Write the last good copy beside the file; None if that is too large, or the disk is short of space."""
    path = store.database.path
    target = path.with_suffix(".last-good")
    bytes_needed = await size(store)
    if bytes_needed > SNAPSHOT_MAX_BYTES or shutil.disk_usage(path.parent).free < 4 * bytes_needed:
        return None
    await backup(store, target)
    return target


def _copy(source: Path, target: Path) -> None:
    try:
        with (
            replacing(target, sync=True) as part,
            as_store_errors(target),
            closing(sqlite3.connect(source)) as old,
            closing(sqlite3.connect(part)) as new,
        ):
            old.backup(new, pages=1024, sleep=0.005)
            # A copy of a damaged file must not replace a good one.
            [found] = new.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise StoreError(f"The database {source} is damaged ({found}): no copy was made.")
            new.execute("PRAGMA journal_mode = DELETE")
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror}.") from None
