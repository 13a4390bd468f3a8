"""Rows that cannot be read, or at which the program crashes, are taken out of the way and told.

The row is kept here as JSON with the error; in its own table it is ended, so that nothing is
lost and what waits behind it goes on.
"""

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agent.store.database import Database, Row, Transaction, columns

log = logging.getLogger(__name__)

T = TypeVar("T")
CRASHES = 3  # so many at one row set it aside

# By table: its key, and what ends a row there.
ENDS = {
    "chats": ("key", ["UPDATE chats SET settings = '{}' WHERE key = ?"]),
    "inbox": ("id", ["UPDATE inbox SET state = 'done' WHERE id = ?"]),
    "turns": (
        "id",
        [
            "UPDATE turns SET state = 'done', reason = 'error' WHERE id = ?",
            "UPDATE inbox SET state = 'done' WHERE turn = ?",
        ],
    ),
    # The rest of its turn leaves the prompt as well: an answer without its call is no conversation.
    "transcript": (
        "id",
        [
            "UPDATE transcript SET live = 0 WHERE turn = (SELECT turn FROM transcript WHERE id = ?)",
            "UPDATE transcript SET live = 0 WHERE id = ?",
        ],
    ),
    "jobs": ("id", ["UPDATE jobs SET state = 'ended', next_at = NULL WHERE id = ?"]),
    "outbox": (
        "id",
        ["UPDATE outbox SET state = 'failed', error = 'it could not be read' WHERE id = ?"],
    ),
    "facts": ("key", ["DELETE FROM facts WHERE key = ?"]),
    "meanings": ("row", ["DELETE FROM meanings WHERE row = ?"]),
}


@dataclass(frozen=True, slots=True)
class SetAsideRow:
    """`chat` is empty where the row belongs to none; `raw` the row as JSON."""

    id: int
    table_name: str
    row_id: str
    chat: str
    raw: str
    error: str


@dataclass(frozen=True)
class SetAsideTable:
    database: Database

    async def add(self, table: str, key: object, error: BaseException) -> None:
        """Set a row aside."""
        async with self.database.write() as tx:
            await set_aside(tx, table, key, error)

    async def crashed(self, table: str, key: object, error: BaseException) -> bool:
        """Count a crash at a row; whether that was the third and it is set aside now."""
        async with self.database.write() as tx:
            crashes = await tx.value(_COUNT, table, str(key))
            if crashes >= CRASHES:
                await set_aside(tx, table, key, error)
        return bool(crashes >= CRASHES)

    async def attempt(self, table: str, key: object) -> bool:
        """Count an attempt at a row that may take the program down; False where so many came to
        no end that it is set aside. `passed` ends the attempt."""
        crashes = await self.database.execute(_COUNT, table, str(key))
        if crashes[0][0] <= CRASHES:
            return True
        await self.add(table, key, RuntimeError(f"The program ended {CRASHES} times at it."))
        return False

    async def passed(self, table: str, key: object) -> None:
        """Forget the crashes at a row that was handled after all."""
        sql = "DELETE FROM set_aside WHERE table_name = ? AND row_id = ? AND at IS NULL"
        await self.database.execute(sql, table, str(key))

    async def untold(self) -> list[SetAsideRow]:
        sql = f"SELECT {columns(SetAsideRow)} FROM set_aside WHERE at IS NOT NULL AND told = 0"
        return [SetAsideRow(*row) for row in await self.database.all(sql)]

    async def told(self, id: int) -> None:
        await self.database.execute("UPDATE set_aside SET told = 1 WHERE id = ?", id)

    async def count(self) -> int:
        sql = "SELECT count(*) FROM set_aside WHERE at IS NOT NULL"
        return int(await self.database.value(sql))


_COUNT = """
INSERT INTO set_aside (table_name, row_id, crashes) VALUES (?, ?, 1)
ON CONFLICT DO UPDATE SET crashes = crashes + 1 RETURNING crashes
"""


async def readable(
    database: Database, table: str, rows: Sequence[Row], decode: Callable[[Row], T]
) -> list[T]:
    """The rows that can be decoded; those that cannot are set aside. A row begins with its key.

    Not to be called inside of a write transaction.
    """
    decoded: list[T] = []
    for row in rows:
        try:
            decoded.append(decode(row))
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            await SetAsideTable(database).add(table, row[0], error)
    return decoded


async def set_aside(tx: Transaction, table: str, key: object, error: BaseException) -> None:
    name, ends = ENDS[table]
    columns_of = await tx.all("SELECT name FROM pragma_table_info(?)", table)
    row = await tx.one(f"SELECT * FROM {table} WHERE {name} = ?", key)
    if row is None:
        return
    found: dict[str, Any] = dict(zip((name for (name,) in columns_of), row, strict=True))
    chat = found.get("chat") or (key if table == "chats" else "")
    if table == "transcript":
        sql = "SELECT chat FROM conversations WHERE id = ?"
        chat = await tx.value(sql, found["conversation"])
    why = f"{type(error).__name__}: {error}"
    raw = json.dumps(found, default=repr, ensure_ascii=False)
    log.error("set aside table=%s row=%s: %s", table, key, why)
    await tx.run(
        "INSERT INTO set_aside (table_name, row_id, chat, raw, error, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
        " ON CONFLICT DO UPDATE SET chat = ?3, raw = ?4, error = ?5, at = ?6, told = 0, crashes = 0",
        table,
        str(key),
        chat,
        raw,
        why,
        tx.now,
    )
    for sql in ends:
        await tx.run(sql, key)
