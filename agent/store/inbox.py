"""Messages that came in: committed before they are acknowledged, answered once, in order."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter

from agent.store import chats, outbox
from agent.store.database import Database, Row, Transaction, storable
from agent.trust import Origin

EXTRA = TypeAdapter(dict[str, list[str]])  # quote, files, images, more
IncomingKind = Literal["message", "edit", "job"]
CLI = "cli"  # the source of what terminals ask
JOB = "job"  # that of the tasks of jobs


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message, a correction, or the task of a job.

    `source` and `update` together are unique: the same pair twice is a duplicate. `ref` is the app's id
    of the message, in an "edit" that of the message it corrects. `files` are lines that name attachments,
    `images` data URLs of pictures to show, `context_lines` further lines for the model's context block.
    `body` is JSON of the app's own, returned untouched. A turn starts once the newest waiting message is
    `settle_s` old, so that albums and pastes in pieces become one. `at` is when it was sent (seconds since
    the epoch; 0: now). `origin` is who wrote it; `stranger` names the parts that strangers may have
    written (a forwarded message, a file). `author` is the app's id of who wrote it: nobody else corrects it
    or takes it back. `language` is that of the sender's app, kept with the chat.
    """

    chat: str
    source: str
    update: str
    text: str
    kind: IncomingKind = "message"
    ref: str = ""
    sender: str = ""
    quote: str = ""
    files: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    context_lines: tuple[str, ...] = ()
    body: str = "{}"
    settle_s: float = 0.0
    at: float = 0.0
    origin: Origin = "person"
    stranger: str = ""
    author: str = ""
    language: str = ""


class MessageChanged(Exception):
    """A message was edited or taken back since it was read."""


@dataclass(frozen=True, slots=True)
class InboxRow:
    """An Incoming in the inbox, `id` in order of arrival; `received_at` is also when it was last edited."""

    id: int
    received_at: float
    incoming: Incoming


@dataclass(frozen=True)
class InboxTable:
    database: Database

    async def add(self, incoming: Incoming) -> bool:
        """Store a message; False for a duplicate. Committed when this returns."""
        async with self.database.write() as tx:
            return await add(tx, incoming)

    async def waiting(self, chat: str) -> list[InboxRow]:
        rows = await self.database.all(WAITING, chat)
        return [inbox_row(row) for row in rows]

    async def chats_waiting(self) -> list[tuple[str, str]]:
        """Chats with unanswered rows, and their sources; the longest waiting first."""
        rows = await self.database.all(
            "SELECT chat, source FROM inbox WHERE state <> 'done'"
            " GROUP BY chat, source ORDER BY min(id)"
        )
        return [(chat, source) for chat, source in rows]

    async def count_waiting(self) -> int:
        return int(await self.database.value("SELECT count(*) FROM inbox WHERE state <> 'done'"))

    async def discard(self, chat: str, ids: Sequence[int]) -> int:
        """Mark waiting rows as done unanswered (the person chose so); returns how many."""
        sql = (
            "UPDATE inbox SET state = 'done' WHERE chat = ? AND state = 'waiting'"
            " AND id IN (SELECT value FROM json_each(?)) RETURNING id"
        )
        rows = await self.database.execute(sql, chat, json.dumps(list(ids)))
        return len(rows)

    async def wait_again(self, source: str, update: str) -> None:
        """Have a message answered that was dropped because nobody seemed to wait for the answer."""
        sql = "UPDATE inbox SET state = 'waiting' WHERE source = ? AND update_id = ? AND state = 'done'"
        await self.database.execute(sql, source, update)

    async def take_back(self, source: str, ref: str, author: str) -> str:
        """Leave a waiting message unanswered, if its author is who deleted it; returns the chat whose turn
        answers it already, or ""."""
        sql = (
            "UPDATE inbox SET state = 'done' WHERE source = ? AND ref = ? AND author = ?"
            " AND state = 'waiting' AND kind <> 'job'"
        )
        await self.database.execute(sql, source, ref, author)
        sql = (
            "SELECT chat FROM inbox WHERE source = ? AND ref = ? AND author = ? AND state = 'taken'"
        )
        return str(await self.database.value(sql, source, ref, author) or "")

    async def heard(self, row: InboxRow, payloads: Sequence[str]) -> None:
        """Store the transcription of a recording as its message's words and post `payloads` to its chat,
        silently; in one transaction, so that neither happens twice. Without effect if it was edited meanwhile."""
        incoming = row.incoming
        texts = storable(incoming.text), storable(lists_json(incoming)), incoming.body
        async with self.database.write() as tx:
            sql = (
                "UPDATE inbox SET words = ?, extra = ?, body = ?, stranger = ?"
                " WHERE id = ? AND received_at = ? RETURNING id"
            )
            if await tx.all(sql, *texts, storable(incoming.stranger), row.id, row.received_at):
                await outbox.put(tx, incoming.chat, payloads, silent=True)

    async def text_of(self, chat: str, source: str, ref: str) -> str:
        """The newest text of a message, with the words of recordings that were heard; "" when unknown."""
        sql = "SELECT words FROM inbox WHERE chat = ? AND source = ? AND ref = ? ORDER BY id DESC"
        return str(await self.database.value(sql, chat, source, ref) or "")

    async def text_before_edit(self, edit: Incoming) -> str:
        """The earlier text of the message that an edit corrects; empty when unknown."""
        sql = (
            "SELECT words FROM inbox WHERE chat = ? AND source = ? AND ref = ? AND ref <> ''"
            " AND state <> 'waiting' AND update_id <> ? ORDER BY id DESC LIMIT 1"
        )
        text = await self.database.value(sql, edit.chat, edit.source, edit.ref, edit.update)
        return str(text or "")

    async def changes_message(self, edit: Incoming) -> bool:
        """Whether an edit says something new: not where the stored message has this text or another author."""
        sql = (
            "SELECT words, author FROM inbox WHERE chat = ? AND source = ? AND ref = ? AND ref <> ''"
            " ORDER BY id DESC LIMIT 1"
        )
        found = await self.database.one(sql, edit.chat, edit.source, edit.ref)
        return found is None or (found[1] == edit.author and found[0] != storable(edit.text))

    async def of_turn(self, turn: str) -> list[InboxRow]:
        """The messages that a turn answers, in order."""
        return [inbox_row(row) for row in await self.database.all(_OF_TURN, turn)]


_COLUMNS = "id, received_at, chat, source, update_id, words, kind, ref, sender, extra, body, settle_s, said_at, origin, stranger, author"
WAITING = f"""
SELECT {_COLUMNS} FROM inbox WHERE chat = ? AND state = 'waiting' ORDER BY id
"""
_OF_TURN = f"SELECT {_COLUMNS} FROM inbox WHERE turn = ? ORDER BY id"


async def add(tx: Transaction, incoming: Incoming) -> bool:
    """Insert a message, or correct one that still waits by an edit of it; False for a duplicate."""
    await chats.ensure(tx, incoming.chat, language=incoming.language)
    await tx.run("UPDATE chats SET resting = 0 WHERE key = ? AND resting <> 0", incoming.chat)
    in_place = incoming.kind == "edit" and await _correct_waiting(tx, incoming)
    sql = (
        "INSERT INTO inbox (source, update_id, chat, kind, ref, words, sender, extra, body,"
        " settle_s, state, said_at, received_at, origin, stranger, author)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (source, update_id) DO NOTHING RETURNING id"
    )
    key = (incoming.source, incoming.update, incoming.chat, incoming.kind, incoming.ref)
    lists = storable(lists_json(incoming))
    texts = (storable(incoming.text), storable(incoming.sender), lists, incoming.body)
    state = "done" if in_place else "waiting"
    whose = (incoming.origin, storable(incoming.stranger), incoming.author)
    times = (incoming.at or tx.now, tx.now)
    return bool(await tx.all(sql, *key, *texts, incoming.settle_s, state, *times, *whose))


def lists_json(incoming: Incoming) -> str:
    """The message's lists as JSON, for the column `extra`."""
    extra = {
        "files": incoming.files,
        "images": incoming.images,
        "more": incoming.context_lines,
        "quote": [incoming.quote] if incoming.quote else [],
    }
    return json.dumps({k: v for k, v in extra.items() if v}, ensure_ascii=False)


async def _correct_waiting(tx: Transaction, edit: Incoming) -> bool:
    """Change the text of the author's message that an edit names, if it still waits; False when it does not."""
    sql = (
        "UPDATE inbox SET words = ?1, stranger = iif(?2 = '', stranger, ?2), received_at = ?7"
        " WHERE chat = ?3 AND source = ?4 AND ref = ?5 AND ref <> ''"
        " AND author = ?6 AND state = 'waiting' AND kind = 'message' RETURNING id"
    )
    texts = storable(edit.text), storable(edit.stranger)
    rows = await tx.all(sql, *texts, edit.chat, edit.source, edit.ref, edit.author, tx.now)
    return bool(rows)


async def take(tx: Transaction, turn: str, rows: Sequence[InboxRow]) -> None:
    """Mark waiting rows as taken by a turn. Raises MessageChanged if one of them waits no more as it was read."""
    sql = (
        "UPDATE inbox SET state = 'taken', turn = ?"
        " WHERE id = ? AND received_at = ? AND state = 'waiting' RETURNING id"
    )
    for row in rows:
        if not await tx.all(sql, turn, row.id, row.received_at):
            raise MessageChanged


async def done(tx: Transaction, turn: str) -> None:
    await tx.run("UPDATE inbox SET state = 'done' WHERE turn = ?", turn)


def inbox_row(row: Row) -> InboxRow:
    """The message in a row of WAITING."""
    number, received, chat, source, update, text, kind, ref, sender, extra, *rest = row
    lists = EXTRA.validate_json(extra)
    quote = "".join(lists.get("quote", ()))
    files, images, more = (tuple(lists.get(name, ())) for name in ("files", "images", "more"))
    named = (chat, source, update, text, kind, ref, sender)
    incoming = Incoming(*named, quote, files, images, more, *rest)
    return InboxRow(number, received, incoming)
