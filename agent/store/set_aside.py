"""What the program crashes at each time is set aside, counted and told, so that what waits behind it is handled.

That is an update of a messaging app, which is acknowledged, or a message or a turn, which is ended in its table.

Attempts at what may kill the whole program are counted in a file each, by its size: one byte for each
attempt after the first. The count must outlive the process but not a power cut, so no message waits for
a transaction on its account.
"""

import asyncio
import hashlib
import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent.store import chats, outbox
from agent.store.database import Database, Transaction, storable

log = logging.getLogger(__name__)

CRASHES = 3  # at one thing, which is then set aside
LONGEST_ERROR = 500  # characters
DAY = 86_400.0
UPDATES = "updates"  # stands for a table: a messaging app's updates are in none
ENDS = {
    "inbox": ["UPDATE inbox SET state = 'done' WHERE id = ?"],
    "turns": [
        "UPDATE turns SET state = 'done', reason = 'error' WHERE id = ?",
        "UPDATE inbox SET state = 'done' WHERE turn = ?",
    ],
}


Notice = Callable[[str, str, int], str | None]
"""(reader, table, count) to the payload of the notice for that chat; None if nobody reads it."""


@dataclass(frozen=True)
class SetAsideTable:
    """What is set aside, and the counts of attempts. `raw` is given for updates only, whose key is `update_key`."""

    database: Database
    attempts: Path  # the folder of the attempts' files
    alone: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def add_updates(self, updates: Sequence[tuple[str, BaseException, str]]) -> None:
        """Set updates aside; each is (key, error, raw)."""
        async with self.database.write() as tx:
            for key, error, raw in updates:
                await _set_aside(tx, UPDATES, key, error, raw)

    async def crashed(self, table: str, key: object, error: BaseException, raw: str = "") -> bool:
        """Count a crash; return whether it was the third, at which its cause is set aside."""
        async with self.database.write() as tx:
            sql = (
                "INSERT INTO set_aside (table_name, row_id, crashes) VALUES (?1, ?2, 1)"
                " ON CONFLICT DO UPDATE SET crashes = crashes + 1 RETURNING crashes"
            )
            crashes = await tx.value(sql, table, str(key))
            if crashes >= CRASHES:
                await _set_aside(tx, table, key, error, raw)
        return bool(crashes >= CRASHES)

    @asynccontextmanager
    async def attempt(self, table: str, key: object, raw: str = "") -> AsyncIterator[bool]:
        """Guard a block that may kill the program. It gets False when CRASHES earlier attempts have done so, and
        their cause is set aside. A second attempt runs alone, so that nothing else is counted if it kills the
        program again.
        """
        file = self.attempts / f"{table}-{key}"
        first = _first_attempt(file)
        async with nullcontext() if first else self.alone:
            try:
                attempts = 1 if first else _count_attempt(file)
                if attempts > CRASHES:
                    error = RuntimeError(f"The program ended {CRASHES} times at it.")
                    async with self.database.write() as tx:
                        await _set_aside(tx, table, key, error, raw)
                yield attempts <= CRASHES
            finally:
                with suppress(OSError):
                    file.unlink()

    async def passed(self, table: str, key: object) -> None:
        """Forget the crashes of an item that was handled after all."""
        sql = "DELETE FROM set_aside WHERE table_name = ? AND row_id = ? AND at IS NULL"
        await self.database.execute(sql, table, str(key))

    async def count(self) -> int:
        sql = "SELECT count(*) FROM set_aside WHERE at IS NOT NULL"
        return int(await self.database.value(sql))

    async def tell(self, owners: Collection[str], notice: Notice) -> bool:
        """Post notices of what was set aside: at once to the chat it belonged to; of updates to the owners,
        silently and once a day at most. Return whether there was anything to tell."""
        async with self.database.write() as tx:
            untold = await tx.all(_UNTOLD, tx.now, DAY)
            for chat, table, count in untold:
                for reader in [chat] if chat else owners:
                    if payload := notice(reader, table, count):
                        await chats.ensure(tx, reader)
                        await outbox.put(tx, reader, [payload], silent=not chat)
            told = json.dumps([chat for chat, _, _ in untold])
            await tx.run(_TOLD, tx.now, told)
        return bool(untold)


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


async def _set_aside(
    tx: Transaction, table: str, key: object, error: BaseException, raw: str
) -> None:
    chat = ""
    if table != UPDATES:
        chat = await tx.value(f"SELECT chat FROM {table} WHERE id = ?", key) or ""
        for sql in ENDS[table]:
            await tx.run(sql, key)
    why = storable(f"{type(error).__name__}: {error}"[:LONGEST_ERROR])
    log.error("set aside table=%s row=%s: %s", table, key, why)
    await tx.run(_KEEP, table, str(key), chat, storable(raw), why, tx.now)


# An update delivered again is not told again.
_KEEP = f"""
INSERT INTO set_aside (table_name, row_id, chat, raw, error, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT DO UPDATE SET chat = ?3, raw = ?4, error = ?5, at = ?6, told_at = NULL
WHERE at IS NULL OR table_name <> '{UPDATES}'
"""
_UNTOLD = """
SELECT chat, table_name, count(*) FROM set_aside WHERE told_at IS NULL AND at IS NOT NULL
AND (chat <> '' OR NOT EXISTS (SELECT 1 FROM set_aside WHERE chat = '' AND ?1 - told_at BETWEEN 0 AND ?2))
GROUP BY chat, table_name ORDER BY min(id)
"""
_TOLD = """
UPDATE set_aside SET told_at = ?1 WHERE told_at IS NULL AND at IS NOT NULL
AND chat IN (SELECT value FROM json_each(?2))
"""
