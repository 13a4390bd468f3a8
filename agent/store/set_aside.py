"""Rows that cannot be read, or at which the program crashes, are set aside, counted and told.

A row is ended in its own table (unreadable.py); an update of a messaging app, which is in none, is
acknowledged.

Attempts at what may kill the whole program are counted in a file each, by its size: one byte for each
attempt after the first. The count must outlive the process but not a power cut, so no message waits for
a transaction on its account.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent.store import chats, outbox
from agent.store.database import Database, Transaction, columns, counted, storable
from agent.store.unreadable import UPDATES, set_aside

CRASHES = 3  # at one row, which is then set aside
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class SetAsideRow:
    """`chat` is empty for a row that belongs to none; `raw` is the row as JSON."""

    id: int
    table_name: str
    row_id: str
    chat: str
    raw: str
    error: str
    crashes: int


ToChat = Callable[[str, str, int], str | None]
"""(chat, table, count) to the payload of the notice for a chat; None if nobody reads that chat."""
ToOwners = Callable[[Mapping[str, int]], str]
"""{table: count} to the payload of the notice for the owners."""


@dataclass(frozen=True)
class SetAsideTable:
    """`raw` is given for updates only, whose key is `update_key`."""

    database: Database
    attempts: Path  # the folder of the attempts' files
    alone: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def add(self, table: str, key: object, error: BaseException, raw: str = "") -> None:
        """Set a row aside."""
        async with self.database.write() as tx:
            await set_aside(tx, table, key, error, raw)

    async def add_updates(self, updates: Sequence[tuple[str, BaseException, str]]) -> None:
        """Set updates aside; each is (key, error, raw)."""
        async with self.database.write() as tx:
            for key, error, raw in updates:
                await set_aside(tx, UPDATES, key, error, raw)

    async def crashed(self, table: str, key: object, error: BaseException, raw: str = "") -> bool:
        """Count a crash at a row and set it aside at the third; whether it was."""
        async with self.database.write() as tx:
            sql = (
                "INSERT INTO set_aside (table_name, row_id, crashes) VALUES (?1, ?2, 1)"
                f" ON CONFLICT DO UPDATE SET crashes = {counted('crashes')} + 1 RETURNING crashes"
            )
            crashes = await tx.value(sql, table, str(key))
            if crashes >= CRASHES:
                await set_aside(tx, table, key, error, raw)
        return bool(crashes >= CRASHES)

    @asynccontextmanager
    async def attempt(self, table: str, key: object, raw: str = "") -> AsyncIterator[bool]:
        """A block that may kill the program. It gets False when CRASHES earlier attempts at the row have done
        so, and the row is set aside. A second attempt runs alone, so that no other row is counted if it
        kills the program again.
        """
        file = self.attempts / f"{table}-{key}"
        first = _first_attempt(file)
        async with nullcontext() if first else self.alone:
            try:
                attempts = 1 if first else _count_attempt(file)
                if attempts > CRASHES:
                    error = RuntimeError(f"The program ended {CRASHES} times at it.")
                    await self.add(table, key, error, raw)
                yield attempts <= CRASHES
            finally:
                with suppress(OSError):
                    file.unlink()

    async def passed(self, table: str, key: object) -> None:
        """Forget the crashes at a row that was handled after all."""
        sql = "DELETE FROM set_aside WHERE table_name = ? AND row_id = ? AND at IS NULL"
        await self.database.execute(sql, table, str(key))

    async def all(self, table: str | None = None) -> list[SetAsideRow]:
        """What is set aside, oldest first, of one table or of all."""
        sql = (
            f"SELECT {columns(SetAsideRow)} FROM set_aside WHERE at IS NOT NULL"
            " AND (?1 IS NULL OR table_name = ?1) ORDER BY at, id"
        )
        return [SetAsideRow(*row) for row in await self.database.all(sql, table)]

    async def count(self) -> int:
        sql = "SELECT count(*) FROM set_aside WHERE at IS NOT NULL"
        return int(await self.database.value(sql))

    async def tell(self, owners: Collection[str], to_chat: ToChat, to_owners: ToOwners) -> bool:
        """Post notices of what was set aside: at once to the chat it belonged to, and to the owners in one
        silent notice, once a day at most. Whether there was anything to tell."""
        async with self.database.write() as tx:
            told = False
            for chat, table, count in await tx.all(_UNTOLD):
                payload = to_chat(chat, table, count)
                if payload is not None:
                    told = await _put(tx, chat, payload, silent=False)
            await tx.run(_TOLD, json.dumps(list(owners)))
            counts: dict[str, int] = dict(await tx.all(_UNTOLD_TO_OWNERS, tx.now, DAY))
            for chat in owners if counts else ():
                told = await _put(tx, chat, to_owners(counts), silent=True)
                await tx.run(_TOLD_OWNERS, tx.now)
        return told


def update_key(source: str, raw: str) -> str:
    """The key of an update; the same content delivered again has the same key, whatever its number."""
    return f"{source}:{hashlib.sha256(storable(raw).encode()).hexdigest()}"


def _first_attempt(file: Path) -> bool:
    """Record the first attempt; False if there was one before, True also when nothing can be written."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    except OSError:
        pass
    return True


def _count_attempt(file: Path) -> int:
    """How many attempts have begun, this one included; 0 when nothing can be written."""
    try:
        with file.open("ab", buffering=0) as counted:
            counted.write(b".")
            return 1 + os.fstat(counted.fileno()).st_size
    except OSError:
        return 0


async def _put(tx: Transaction, chat: str, payload: str, *, silent: bool) -> bool:
    await chats.ensure(tx, chat)
    await outbox.put(tx, chat, [payload], silent=silent)
    return True


_UNTOLD = """
SELECT chat, table_name, count(*) FROM set_aside
WHERE told = 0 AND at IS NOT NULL AND chat <> '' GROUP BY chat, table_name ORDER BY min(id)
"""
# Rows of an owner's own chat need no second notice to the owners.
_TOLD = """
UPDATE set_aside SET told = 1, told_at = iif(chat IN (SELECT value FROM json_each(?)), 0, told_at)
WHERE told = 0 AND at IS NOT NULL
"""
_UNTOLD_TO_OWNERS = """
SELECT table_name, count(*) FROM set_aside
WHERE told_at IS NULL AND at IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM set_aside WHERE ?1 - told_at BETWEEN 0 AND ?2)
GROUP BY table_name ORDER BY min(id)
"""
_TOLD_OWNERS = "UPDATE set_aside SET told_at = ? WHERE at IS NOT NULL AND told_at IS NULL"
