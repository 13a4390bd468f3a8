"""Messages to be sent: in order per chat, delivered only with a message id, never lost silently.

    waiting ── claim ──> sending ── delivered | failed
       ^                    ├────── postponed (surely not sent, or may be repeated) ──> waiting
       └── send_again ──────┴────── uncertain (the send got no answer)

The payload is JSON of the messaging app's own.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import TypeAdapter

from agent.store import chats
from agent.store.database import Database, Row, Transaction, columns

IDS: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[str, ...])
# The longest wait in seconds that an app may ask for.
FARTHEST = 2 * 86_400.0
OutboxState = Literal["waiting", "sending", "delivered", "uncertain", "failed"]


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """`message_ids` are the app's ids of the messages delivered so far; `notice_id` that of the notice of an
    uncertain send."""

    id: int
    chat: str
    turn: str | None
    payload: str
    silent: bool
    state: OutboxState
    message_ids: tuple[str, ...]
    notice_id: str
    attempts: int
    not_before: float
    error: str
    created_at: float
    changed_at: float

    def ahead(self, now: float) -> float:
        """Return the seconds until a row may be sent: never more than was asked for, though the clock was set back."""
        return max(0.0, self.not_before - max(now, self.changed_at))


@dataclass(frozen=True)
class OutboxTable:
    """`on_wake` are called whenever this process has added something to deliver; `on_end` whenever a row is
    delivered, refused or uncertain.
    """

    database: Database
    on_wake: list[Callable[[], None]] = field(default_factory=list)
    on_end: list[Callable[[], None]] = field(default_factory=list)

    async def add(
        self, chat: str, payloads: Sequence[str], *, silent: bool = False, turn: str | None = None
    ) -> list[int]:
        """Append payloads to the chat's queue; return their ids."""
        async with self.database.write() as tx:
            await chats.ensure(tx, chat)
            ids = await put(tx, chat, payloads, silent=silent, turn=turn)
        self.wake()
        return ids

    async def add_once(
        self, key: str, to: Sequence[str], payload: str, *, silent: bool = False
    ) -> bool:
        """Append a payload to the queue of each chat, but only on the first call with this `key` (of
        KeyValueTable); return whether this was it."""
        async with self.database.write() as tx:
            sql = "INSERT INTO facts (key, value) VALUES (?, 'true') ON CONFLICT DO NOTHING RETURNING 1"
            first = bool(await tx.all(sql, key))
            for chat in to if first else ():
                await chats.ensure(tx, chat)
                await put(tx, chat, [payload], silent=silent)
        if first:
            self.wake()
        return first

    async def chats_waiting(self, prefix: str = "") -> list[str]:
        """Unblocked chats with waiting rows; the longest waiting first."""
        sql = (
            "SELECT o.chat FROM outbox o INDEXED BY outbox_open JOIN chats c ON c.key = o.chat"
            " WHERE o.state IN ('waiting', 'sending') AND o.state <> 'sending'"
            " AND c.resting = 0 AND substr(o.chat, 1, ?) = ?"
            " GROUP BY o.chat ORDER BY min(o.id)"
        )
        rows = await self.database.all(sql, len(prefix), prefix)
        return [row[0] for row in rows]

    async def claim(self, chat: str) -> OutboxRow | None:
        """Set the chat's oldest waiting row to "sending" and return it; None when nothing waits or a row is
        being sent. A row whose `not_before` lies ahead is not claimed: `next` returns it."""
        sql = (
            "UPDATE outbox SET state = 'sending', attempts = attempts + 1, changed_at = ?2"
            " WHERE id = (SELECT min(id) FROM outbox WHERE chat = ?1 AND state IN ('waiting', 'sending'))"
            " AND state = 'waiting'"
            " AND (not_before <= ?2 OR changed_at > ?2)"
            f" RETURNING {_COLUMNS}"
        )
        rows = await self.database.execute(sql, chat, self.database.clock())
        return _first(rows)

    async def next(self, chat: str) -> OutboxRow | None:
        """The chat's oldest row that is waiting or being sent, unchanged."""
        sql = (
            f"SELECT {_COLUMNS} FROM outbox WHERE chat = ? AND state IN ('waiting', 'sending')"
            " ORDER BY id LIMIT 1"
        )
        return _first(await self.database.all(sql, chat))

    async def get(self, id: int) -> OutboxRow | None:
        sql = f"SELECT {_COLUMNS} FROM outbox WHERE id = ?"
        return _first(await self.database.all(sql, id))

    async def delivered(self, id: int, message_ids: Sequence[str]) -> None:
        """Record the delivery and the app's message ids. The job's occurrence becomes done, even a failed one."""
        async with self.database.write() as tx:
            await _set_state(tx, id, "delivered")
            await tx.many(_ADD_MESSAGE_ID, [(message_id, id) for message_id in message_ids])
            await tx.run(_END_OCCURRENCE, id, tx.now)
        self._ended()

    async def part_delivered(self, id: int, message_id: str, payload: str) -> None:
        """Record one of several messages as delivered; `payload` is the rest."""
        async with self.database.write() as tx:
            await tx.run(_ADD_MESSAGE_ID, message_id, id)
            await tx.run("UPDATE outbox SET payload = ? WHERE id = ?", payload, id)

    async def postponed(self, id: int, not_before: float, error: str = "") -> None:
        """Let a row that was certainly not sent wait again until that instant."""
        async with self.database.write() as tx:
            await _set_state(tx, id, "waiting", error)
            at = min(not_before, tx.now + FARTHEST)
            await tx.run("UPDATE outbox SET not_before = ? WHERE id = ?", at, id)

    async def uncertain(self, id: int, error: str = "") -> None:
        """Mark a row that may have been sent; it is sent again only if a person asks."""
        async with self.database.write() as tx:
            await _set_state(tx, id, "uncertain", error)
        self._ended()

    async def failed(self, id: int, error: str, chat: str = "", payload: str = "") -> None:
        """Mark a row that the app refuses for good; the error is a sentence for a person. A `payload` is sent to `chat`
        instead."""
        async with self.database.write() as tx:
            await _set_state(tx, id, "failed", error)
            if payload:
                await chats.ensure(tx, chat)
                await put(tx, chat, [payload])
        self._ended()
        if payload:
            self.wake()

    async def notice_sent(self, id: int, notice_id: str) -> None:
        """Record the notice of an uncertain send; without effect if the row is no longer uncertain."""
        sql = "UPDATE outbox SET notice_id = ? WHERE id = ? AND state = 'uncertain'"
        await self.database.execute(sql, notice_id, id)

    async def send_again(self, id: int) -> bool:
        """Send an uncertain row once more, because a person asked; False when it is not uncertain. Should it
        become uncertain again, a new notice is due."""
        sql = (
            "UPDATE outbox SET state = 'waiting', not_before = 0, notice_id = '', changed_at = ?"
            " WHERE id = ? AND state = 'uncertain' RETURNING id"
        )
        rows = await self.database.execute(sql, self.database.clock(), id)
        self.wake()
        return bool(rows)

    async def without_notice(self, prefix: str = "") -> list[OutboxRow]:
        """Uncertain rows without a notice."""
        sql = (
            f"SELECT {_COLUMNS} FROM outbox INDEXED BY outbox_uncertain"
            " WHERE state = 'uncertain' AND notice_id = ''"
            " AND substr(chat, 1, ?) = ? ORDER BY id"
        )
        return [_outbox_row(row) for row in await self.database.all(sql, len(prefix), prefix)]

    async def recover(self, prefix: str = "", repeatable: float = math.inf) -> list[OutboxRow]:
        """Make rows uncertain, at start, that were being sent when the process died, or wait again if they
        were made after the instant `repeatable`; return them."""
        sql = (
            "UPDATE outbox INDEXED BY outbox_open"
            " SET state = iif(created_at > ?4, 'waiting', 'uncertain'), changed_at = ?1,"
            " error = 'stopped while sending'"
            " WHERE state IN ('waiting', 'sending') AND state <> 'waiting'"
            f" AND substr(chat, 1, ?2) = ?3 RETURNING {_COLUMNS}"
        )
        values = self.database.clock(), len(prefix), prefix, repeatable
        return [_outbox_row(row) for row in await self.database.execute(sql, *values)]

    async def requeue(self, chat: str) -> None:
        """Have rows of a chat wait again whose send was cut off, because a repetition harms nobody there."""
        sql = "UPDATE outbox SET state = 'waiting', changed_at = ? WHERE chat = ? AND state = 'sending'"
        await self.database.execute(sql, self.database.clock(), chat)

    async def counts(self) -> dict[OutboxState, int]:
        """How many rows are not delivered, by state."""
        sql = "SELECT state, count(*) FROM outbox WHERE state <> 'delivered' GROUP BY state"
        return dict(await self.database.all(sql))

    def wake(self) -> None:
        """Have this process deliver at once."""
        for callback in self.on_wake:
            callback()

    def _ended(self) -> None:
        for callback in self.on_end:
            callback()


_COLUMNS = columns(OutboxRow)
_ADD_MESSAGE_ID = "UPDATE outbox SET message_ids = json_insert(message_ids, '$[#]', ?) WHERE id = ?"
_END_OCCURRENCE = """
UPDATE occurrences SET state = 'done', ended_at = ?2, detail = '', message_id = (
    SELECT coalesce(json_extract(message_ids, '$[#-1]'), '') FROM outbox WHERE id = ?1)
WHERE outbox = ?1 AND state IN ('running', 'failed')
"""


def _outbox_row(row: Row) -> OutboxRow:
    number, chat, turn, payload, silent, state, ids, *rest = row
    return OutboxRow(
        number, chat, turn, payload, bool(silent), state, IDS.validate_json(ids), *rest
    )


def _first(rows: Sequence[Row]) -> OutboxRow | None:
    return _outbox_row(rows[0]) if rows else None


_PUT = """
INSERT INTO outbox (payload, chat, turn, silent, created_at, changed_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?5) RETURNING id
"""


async def put(
    tx: Transaction,
    chat: str,
    payloads: Sequence[str],
    *,
    silent: bool = False,
    turn: str | None = None,
) -> list[int]:
    rows = [await tx.all(_PUT, payload, chat, turn, silent, tx.now) for payload in payloads]
    return [row[0][0] for row in rows]


async def _set_state(tx: Transaction, id: int, state: OutboxState, error: str = "") -> None:
    sql = "UPDATE outbox SET state = ?, error = ?, changed_at = ? WHERE id = ?"
    await tx.run(sql, state, error, tx.now, id)
