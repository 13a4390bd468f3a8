"""What messaging apps told us: committed before it is acknowledged, answered once, in order."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agent.store import chats
from agent.store.chats import Clock
from agent.store.codec import storable
from agent.store.database import Database, Tx

Kind = Literal["message", "edit", "job"]


@dataclass(frozen=True, slots=True)
class Incoming:
    """One thing that was said to us.

    `source` and `update` together are unique: the same pair twice is a duplicate.
    `ref` is the app's id of the message; an "edit" names the message it corrects.
    `files` are lines naming what came along, `images` data URLs, `more` further
    lines for the model's context block. `body` is JSON of the app's own, given
    back untouched. A turn starts once the newest waiting message is `settle_s`
    old, so that albums and pastes in pieces become one. `at` is when it was said
    (seconds since the epoch; 0: now).
    """

    chat: str
    source: str
    update: str
    words: str
    kind: Kind = "message"
    ref: str = ""
    sender: str = ""
    quote: str = ""
    files: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    body: str = "{}"
    settle_s: float = 0.0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """An Incoming in the inbox, `id` in order of arrival."""

    id: int
    received_at: float
    incoming: Incoming


@dataclass(frozen=True)
class InboxTable:
    database: Database
    clock: Clock

    async def add(self, incoming: Incoming) -> bool:
        """Keep it for good; False for a duplicate. Committed when this returns."""
        async with self.database.write() as tx:
            return bool(await tx.last(*await _arrival(tx, incoming, self.clock())))

    async def waiting(self, chat: str, sources: Collection[str]) -> list[Waiting]:
        async with self.database.read() as tx:
            return await waiting(tx, chat, sources)

    async def chats_waiting(self, sources: Collection[str]) -> list[str]:
        """Chats with unanswered rows, the longest waiting first."""
        async with self.database.read() as tx:
            rows = await tx.all(
                "SELECT chat FROM inbox WHERE state <> 'done' AND source IN (SELECT value FROM json_each(?))"
                " GROUP BY chat ORDER BY min(id)",
                json.dumps(list(sources)),
            )
        return [row[0] for row in rows]

    async def count_waiting(self) -> int:
        async with self.database.read() as tx:
            return int(await tx.value("SELECT count(*) FROM inbox WHERE state <> 'done'"))

    async def discard(self, chat: str, ids: Sequence[int]) -> int:
        """Put waiting rows aside unanswered (the person chose so); returns how many."""
        async with self.database.write() as tx:
            rows = await tx.all(
                "UPDATE inbox SET state = 'done' WHERE chat = ? AND state = 'waiting'"
                " AND id IN (SELECT value FROM json_each(?)) RETURNING id",
                chat,
                json.dumps(list(ids)),
            )
        return len(rows)

    async def earlier(self, edit: Incoming) -> str:
        """The words, as they were, of the message that an edit corrects; empty when unknown."""
        async with self.database.read() as tx:
            words = await tx.value(
                "SELECT words FROM inbox WHERE chat = ? AND source = ? AND ref = ? AND ref <> ''"
                " AND state <> 'waiting' AND update_id <> ? ORDER BY id DESC LIMIT 1",
                edit.chat,
                edit.source,
                edit.ref,
                edit.update,
            )
        return str(words or "")

    async def of_turn(self, turn: str) -> list[Waiting]:
        """What a turn answers, in order."""
        async with self.database.read() as tx:
            return await of_turn(tx, turn)


_COLUMNS = "id, received_at, chat, source, update_id, words, kind, ref, sender, extra, body, settle_s, said_at"
WAITING = f"""
SELECT {_COLUMNS} FROM inbox WHERE chat = ? AND state = 'waiting'
AND source IN (SELECT value FROM json_each(?)) ORDER BY id
"""


async def add(tx: Tx, incoming: Incoming, now: float) -> bool:
    return bool(await tx.all(*await _arrival(tx, incoming, now)))


async def _arrival(tx: Tx, incoming: Incoming, now: float) -> tuple[Any, ...]:
    """The statement that puts it in, with its values; it gives a row unless it is a duplicate."""
    await chats.ensure(tx, incoming.chat, now)
    await tx.run("UPDATE chats SET resting = 0 WHERE key = ? AND resting = 1", incoming.chat)
    in_place = incoming.kind == "edit" and await _corrected(tx, incoming)
    extra = {
        k: list(getattr(incoming, k)) for k in ("files", "images", "more") if getattr(incoming, k)
    }
    if incoming.quote:
        extra["quote"] = [incoming.quote]
    return (
        "INSERT INTO inbox (source, update_id, chat, kind, ref, words, sender, extra, body,"
        " settle_s, state, said_at, received_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (source, update_id) DO NOTHING RETURNING id",
        incoming.source,
        incoming.update,
        incoming.chat,
        incoming.kind,
        incoming.ref,
        storable(incoming.words),
        storable(incoming.sender),
        storable(json.dumps(extra, ensure_ascii=False)),
        incoming.body,
        incoming.settle_s,
        "done" if in_place else "waiting",
        incoming.at or now,
        now,
    )


async def _corrected(tx: Tx, edit: Incoming) -> bool:
    """Correct a message that still waits in its place; False when it was taken already."""
    rows = await tx.all(
        "UPDATE inbox SET words = ? WHERE chat = ? AND source = ? AND ref = ? AND ref <> ''"
        " AND state = 'waiting' AND kind = 'message' RETURNING id",
        storable(edit.words),
        edit.chat,
        edit.source,
        edit.ref,
    )
    return bool(rows)


async def waiting(tx: Tx, chat: str, sources: Collection[str]) -> list[Waiting]:
    return said(await tx.all(WAITING, chat, json.dumps(list(sources))))


def said(rows: Sequence[tuple[Any, ...]]) -> list[Waiting]:
    """The rows that WAITING gives."""
    return [_waiting(row) for row in rows]


async def of_turn(tx: Tx, turn: str) -> list[Waiting]:
    rows = await tx.all(f"SELECT {_COLUMNS} FROM inbox WHERE turn = ? ORDER BY id", turn)
    return [_waiting(row) for row in rows]


async def take(tx: Tx, turn: str, ids: Sequence[int]) -> None:
    await tx.run(
        "UPDATE inbox SET state = 'taken', turn = ? WHERE id IN (SELECT value FROM json_each(?))",
        turn,
        json.dumps(list(ids)),
    )


async def done(tx: Tx, turn: str) -> None:
    await tx.run("UPDATE inbox SET state = 'done' WHERE turn = ?", turn)


def _waiting(row: tuple[Any, ...]) -> Waiting:
    number, received, chat, source, update, words, kind, ref, sender, extra, body, settle, said = (
        row
    )
    more: dict[str, list[str]] = json.loads(extra)
    return Waiting(
        number,
        received,
        Incoming(
            chat,
            source,
            update,
            words,
            kind,
            ref,
            sender,
            "".join(more.get("quote", ())),
            tuple(more.get("files", ())),
            tuple(more.get("images", ())),
            tuple(more.get("more", ())),
            body,
            settle,
            said,
        ),
    )
