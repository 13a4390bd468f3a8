"""Sets unreadable rows aside: keeps them as JSON with the error, and ends them in their own table, so that
nothing is lost and the rows behind them are handled."""

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agent.store.database import Database, Row, Transaction, storable

log = logging.getLogger(__name__)

T = TypeVar("T")
LONGEST_ERROR = 500  # characters
UPDATES = "updates"  # stands for a table: a messaging app's updates are in none

# {table: (its key, the statements that end a row)}
ENDS = {
    "chats": (
        "key",
        [
            "UPDATE chats SET settings = '{}' WHERE key = ?",
            # The plan is read with the chat.
            "UPDATE conversations SET plan = NULL WHERE id = (SELECT conversation FROM chats WHERE key = ?)",
        ],
    ),
    "inbox": ("id", ["UPDATE inbox SET state = 'done' WHERE id = ?"]),
    "turns": (
        "id",
        [
            "UPDATE turns SET state = 'done', reason = 'error' WHERE id = ?",
            "UPDATE inbox SET state = 'done' WHERE turn = ?",
        ],
    ),
    # The rest of its turn leaves the prompt as well: a tool result without its call is invalid there.
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
    "passage_vectors": ("passage", ["DELETE FROM passage_vectors WHERE passage = ?"]),
    "meanings": ("row", ["DELETE FROM meanings WHERE row = ?"]),
}


async def readable(
    database: Database, table: str, rows: Sequence[Row], decode: Callable[[Row], T]
) -> list[T]:
    """Decode rows, whose first column is their key; those that cannot be decoded are set aside.

    It must not be called inside a write transaction.
    """
    decoded: list[T] = []
    for row in rows:
        try:
            decoded.append(decode(row))
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            async with database.write() as tx:
                await set_aside(tx, table, row[0], error)
    return decoded


async def set_aside(
    tx: Transaction, table: str, key: object, error: BaseException, raw: str = ""
) -> None:
    """Keep a row and end it in its table; `raw` is given for what is in no table."""
    chat, ends = "", list[str]()
    if not raw:
        name, ends = ENDS[table]
        columns_of = await tx.all("SELECT name FROM pragma_table_info(?)", table)
        row = await tx.one(f"SELECT * FROM {table} WHERE {name} = ?", key)
        if row is None:
            return
        found: dict[str, Any] = dict(zip((name for (name,) in columns_of), row, strict=True))
        chat = str(found.get("chat") or (key if table == "chats" else ""))
        if table == "transcript":
            sql = "SELECT chat FROM conversations WHERE id = ?"
            chat = await tx.value(sql, found["conversation"]) or ""
        raw = json.dumps(found, default=repr, ensure_ascii=False)
    why = storable(f"{type(error).__name__}: {error}"[:LONGEST_ERROR])
    log.error("set aside table=%s row=%s: %s", table, key, why)
    await tx.run(
        "INSERT INTO set_aside (table_name, row_id, chat, raw, error, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
        " ON CONFLICT DO UPDATE SET chat = ?3, raw = ?4, error = ?5, at = ?6, told = 0, told_at = NULL"
        f" WHERE at IS NULL OR table_name <> '{UPDATES}'",  # an update delivered again is not told again
        table,
        str(key),
        chat,
        storable(raw),
        why,
        tx.now,
    )
    for sql in ends:
        await tx.run(sql, key)
