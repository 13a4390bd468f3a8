"""Updates that cannot be handled: kept as they came, so that nothing waits behind them."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.store import chats, outbox
from agent.store.database import Database
from agent.store.message_codec import storable

MOST_CRASHES = 3
DAY = 86_400.0
LONGEST_ERROR = 500  # characters


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An update set aside. `update` is its number, "" where it has none; `raw` its JSON."""

    update: str
    raw: str
    error: str
    crashes: int


@dataclass(frozen=True)
class DeadLetterTable:
    """`added` is set when an update has been set aside."""

    database: Database
    added: asyncio.Event = field(default_factory=asyncio.Event)

    async def unreadable(self, source: str, update: str, raw: str, error: str) -> None:
        """Set an update aside that cannot be parsed; again: nothing new."""
        now = self.database.clock()
        await self.database.execute(_UNREADABLE, source, *_columns(update, raw, error), now)
        self.added.set()

    async def crashed(self, source: str, update: str, raw: str, error: str) -> bool:
        """Count a crash of a handler; whether the update is set aside now."""
        now = self.database.clock()
        values = (source, *_columns(update, raw, error), now, MOST_CRASHES)
        [(set_aside,)] = await self.database.execute(_CRASHED, *values)
        if set_aside:
            self.added.set()
        return bool(set_aside)

    async def all(self, source: str) -> list[DeadLetter]:
        """What is set aside, oldest first."""
        rows = await self.database.all(
            "SELECT update_id, raw, error, crashes FROM dead_letters"
            " WHERE source = ? AND set_aside_at IS NOT NULL ORDER BY id",
            source,
        )
        return [DeadLetter(*row) for row in rows]

    async def count(self, source: str | None = None) -> int:
        """How many are set aside, of one source or of all."""
        sql = (
            "SELECT count(*) FROM dead_letters"
            " WHERE set_aside_at IS NOT NULL AND (?1 IS NULL OR source = ?1)"
        )
        return int(await self.database.value(sql, source))

    async def tell(
        self, source: str, to: Sequence[str], payload: Callable[[int], str]
    ) -> float | None:
        """Put a silent notice of what was set aside since the last one into each chat's queue, once a day.

        `payload` makes it of how many there are. Returns the seconds until the next
        notice is due; None when there is nothing to tell.
        """
        async with self.database.write() as tx:
            row = await tx.one(_UNTOLD, source)
            assert row
            untold, last = row
            if not untold or not to:
                return None
            if last is not None and 0 <= tx.now - last < DAY:
                return float(last + DAY - tx.now)
            for chat in to:
                await chats.ensure(tx, chat)
                await outbox.put(tx, chat, [payload(untold)], silent=True)
            await tx.run(_TOLD, tx.now, source)
        return None


def _columns(update: str, raw: str, error: str) -> tuple[str, str, str, str]:
    raw = storable(raw)
    digest = hashlib.sha256(raw.encode()).hexdigest()
    return storable(update), digest, raw, storable(error[:LONGEST_ERROR])


_INSERT = "INSERT INTO dead_letters (source, update_id, digest, raw, error, at, "
_UNREADABLE = (
    f"{_INSERT} set_aside_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)"
    " ON CONFLICT DO UPDATE SET set_aside_at = coalesce(set_aside_at, ?6)"
)
_CRASHED = (
    f"{_INSERT} crashes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)"
    " ON CONFLICT DO UPDATE SET crashes = crashes + 1, error = ?5,"
    " set_aside_at = CASE WHEN crashes + 1 >= ?7 THEN coalesce(set_aside_at, ?6) END"
    " RETURNING set_aside_at IS NOT NULL"
)
_UNTOLD = (
    "SELECT count(*) FILTER (WHERE set_aside_at IS NOT NULL AND told_at IS NULL), max(told_at)"
    " FROM dead_letters WHERE source = ?"
)
_TOLD = (
    "UPDATE dead_letters SET told_at = ?"
    " WHERE source = ? AND set_aside_at IS NOT NULL AND told_at IS NULL"
)
