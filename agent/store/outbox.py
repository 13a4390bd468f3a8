"""What is to be sent: in order per chat, delivered only with a message id, never lost silently.

    waiting ── claim ──> sending ── delivered | failed
       ^                    ├────── postponed (surely not sent) ──> waiting
       └── again ───────────┴────── uncertain (nobody knows)

The payload is JSON of the messaging app's own.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agent.store import chats
from agent.store.chats import Clock
from agent.store.database import Database, Tx

State = Literal["waiting", "sending", "delivered", "uncertain", "failed"]


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """One row. `message_ids` are the app's ids of what was delivered so far."""

    id: int
    chat: str
    turn: str | None
    payload: str
    silent: bool
    state: State
    message_ids: tuple[str, ...]
    notice_id: str
    attempts: int
    not_before: float
    error: str
    created_at: float


@dataclass(frozen=True)
class OutboxTable:
    """`added` is set whenever this process has put something in; whoever delivers clears it.

    `ended` are called whenever a row has met its end, or is in doubt.
    """

    database: Database
    clock: Clock
    added: asyncio.Event = field(default_factory=asyncio.Event)
    ended: list[Callable[[], None]] = field(default_factory=list)

    async def add(
        self, chat: str, payloads: Sequence[str], *, silent: bool = False, turn: str | None = None
    ) -> list[int]:
        """Put payloads behind whatever waits for that chat; their ids."""
        async with self.database.write() as tx:
            await chats.ensure(tx, chat, self.clock())
            ids = await put(tx, chat, payloads, self.clock(), silent=silent, turn=turn)
        self.added.set()
        return ids

    async def chats_waiting(self, prefix: str = "") -> list[str]:
        """Chats, not resting, for which something waits; the longest waiting first."""
        async with self.database.read() as tx:
            rows = await tx.all(
                "SELECT o.chat FROM outbox o INDEXED BY outbox_open JOIN chats c ON c.key = o.chat"
                " WHERE o.state IN ('waiting', 'sending') AND o.state <> 'sending'"
                " AND c.resting = 0 AND substr(o.chat, 1, ?) = ?"
                " GROUP BY o.chat ORDER BY min(o.id)",
                len(prefix),
                prefix,
            )
        return [row[0] for row in rows]

    async def claim(self, chat: str) -> OutboxRow | None:
        """The chat's oldest waiting row, now "sending"; None when nothing waits or one is being sent.

        A row whose `not_before` lies ahead is not claimed: read it by `next`.
        """
        async with self.database.write() as tx:
            rows = await tx.last(
                "UPDATE outbox SET state = 'sending', attempts = attempts + 1, changed_at = ?2"
                " WHERE id = (SELECT min(id) FROM outbox WHERE chat = ?1 AND state IN ('waiting', 'sending'))"
                f" AND state = 'waiting' AND not_before <= ?2 RETURNING {_COLUMNS}",
                chat,
                self.clock(),
            )
        return _parcel(rows[0]) if rows else None

    async def next(self, chat: str) -> OutboxRow | None:
        """The chat's oldest row that is not at an end, unchanged."""
        async with self.database.read() as tx:
            row = await tx.one(
                f"SELECT {_COLUMNS} FROM outbox WHERE chat = ? AND state IN ('waiting', 'sending')"
                " ORDER BY id LIMIT 1",
                chat,
            )
        return _parcel(row) if row else None

    async def get(self, id: int) -> OutboxRow | None:
        async with self.database.read() as tx:
            row = await tx.one(f"SELECT {_COLUMNS} FROM outbox WHERE id = ?", id)
        return _parcel(row) if row else None

    async def delivered(self, id: int, message_ids: Sequence[str]) -> None:
        """Delivered with the app's ids; a scheduled occurrence is done then, also one that was in doubt."""
        async with self.database.write() as tx:
            await _move(tx, id, "delivered", self.clock())
            await tx.many(_SENT, [(message_id, id) for message_id in message_ids])
            await tx.run(_OCCURRED, id, self.clock())
        self._tell()

    async def part_delivered(self, id: int, message_id: str, payload: str) -> None:
        """One message of several is out: keep its id, and as payload what is left."""
        async with self.database.write() as tx:
            await tx.run(_SENT, message_id, id)
            await tx.run("UPDATE outbox SET payload = ? WHERE id = ?", payload, id)

    async def postponed(self, id: int, not_before: float, error: str = "") -> None:
        """Surely not sent: it waits again, until that instant."""
        async with self.database.write() as tx:
            await _move(tx, id, "waiting", self.clock(), error)
            await tx.run("UPDATE outbox SET not_before = ? WHERE id = ?", not_before, id)

    async def uncertain(self, id: int, error: str = "") -> None:
        async with self.database.write() as tx:
            await _move(tx, id, "uncertain", self.clock(), error)
        self._tell()

    async def failed(self, id: int, error: str) -> None:
        """The app refuses it for good; the error is a sentence for a person."""
        async with self.database.write() as tx:
            await _move(tx, id, "failed", self.clock(), error)
        self._tell()

    async def noticed(self, id: int, notice_id: str) -> None:
        """The notice of an uncertain send is out; no longer of note where it was pressed already."""
        async with self.database.write() as tx:
            await tx.run(
                "UPDATE outbox SET notice_id = ? WHERE id = ? AND state = 'uncertain'",
                notice_id,
                id,
            )

    async def again(self, id: int) -> bool:
        """Send an uncertain row once more, because a person asked; False when it is not uncertain.

        Should it be in doubt again, a notice is due again.
        """
        async with self.database.write() as tx:
            rows = await tx.all(
                "UPDATE outbox SET state = 'waiting', not_before = 0, notice_id = '', changed_at = ?"
                " WHERE id = ? AND state = 'uncertain' RETURNING id",
                self.clock(),
                id,
            )
        self.added.set()
        return bool(rows)

    async def unnoticed(self, prefix: str = "") -> list[OutboxRow]:
        """Uncertain rows of which nobody was told yet."""
        async with self.database.read() as tx:
            rows = await tx.all(
                f"SELECT {_COLUMNS} FROM outbox INDEXED BY outbox_uncertain"
                " WHERE state = 'uncertain' AND notice_id = ''"
                " AND substr(chat, 1, ?) = ? ORDER BY id",
                len(prefix),
                prefix,
            )
        return [_parcel(row) for row in rows]

    async def recover(self, prefix: str = "") -> list[OutboxRow]:
        """At start: what was being sent when the process died is uncertain now."""
        async with self.database.write() as tx:
            rows = await tx.all(
                "UPDATE outbox INDEXED BY outbox_open"
                " SET state = 'uncertain', changed_at = ?, error = 'stopped while sending'"
                " WHERE state IN ('waiting', 'sending') AND state <> 'waiting'"
                f" AND substr(chat, 1, ?) = ? RETURNING {_COLUMNS}",
                self.clock(),
                len(prefix),
                prefix,
            )
        return [_parcel(row) for row in rows]

    async def counts(self) -> dict[State, int]:
        """Rows that are not delivered, by state."""
        async with self.database.read() as tx:
            rows = await tx.all(
                "SELECT state, count(*) FROM outbox WHERE state <> 'delivered' GROUP BY state"
            )
        return {row[0]: row[1] for row in rows}

    def _tell(self) -> None:
        for hear in self.ended:
            hear()


_COLUMNS = "id, chat, turn, payload, silent, state, message_ids, notice_id, attempts, not_before, error, created_at"

_SENT = "UPDATE outbox SET message_ids = json_insert(message_ids, '$[#]', ?) WHERE id = ?"
_OCCURRED = """
UPDATE occurrences SET state = 'done', ended_at = ?2, detail = '', message_id = (
    SELECT coalesce(json_extract(message_ids, '$[#-1]'), '') FROM outbox WHERE id = ?1)
WHERE outbox = ?1 AND state IN ('running', 'failed')
"""


def _parcel(row: tuple[Any, ...]) -> OutboxRow:
    number, chat, turn, payload, silent, state, ids, *rest = row
    ids = tuple(str(i) for i in json.loads(ids))
    return OutboxRow(number, chat, turn, payload, bool(silent), state, ids, *rest)


async def put(
    tx: Tx,
    chat: str,
    payloads: Sequence[str],
    now: float,
    *,
    silent: bool = False,
    turn: str | None = None,
) -> list[int]:
    return [
        await tx.value(
            "INSERT INTO outbox (chat, turn, payload, silent, created_at, changed_at)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?5) RETURNING id",
            chat,
            turn,
            payload,
            silent,
            now,
        )
        for payload in payloads
    ]


async def _move(tx: Tx, id: int, state: State, now: float, error: str = "") -> None:
    await tx.run(
        "UPDATE outbox SET state = ?, error = ?, changed_at = ? WHERE id = ?", state, error, now, id
    )
