"""Lasting notes of a chat: saved with their source, corrected, deleted, and that undone."""

from dataclasses import dataclass
from typing import Any

from agent.store import chats
from agent.store.chats import Clock
from agent.store.codec import storable
from agent.store.database import Database, Tx

NOTE_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class Note:
    """`source` is the transcript row it came from, None when it was written by hand."""

    id: int
    chat: str
    text: str
    pinned: bool
    source: int | None
    saved_at: float
    changed_at: float


@dataclass(frozen=True)
class NoteTable:
    database: Database
    clock: Clock

    async def add(
        self, chat: str, text: str, *, turn: str = "", pinned: bool = False
    ) -> tuple[Note, bool]:
        """Save a note; (the note, True), or an older one with the same words and False."""
        text, now = tidy(text), self.clock()
        async with self.database.write() as tx:
            await chats.ensure(tx, chat, now)
            old = await tx.one(
                f"{_SELECT} WHERE chat = ? AND deleted_at IS NULL AND lower(text) = lower(?)",
                chat,
                text,
            )
            if old:
                return _note(old), False
            source = await tx.value(
                "SELECT min(id) FROM transcript WHERE turn = ? AND role = 'user'", turn
            )
            row = await tx.one(
                "INSERT INTO notes (chat, text, source, pinned, saved_at, changed_at)"
                f" VALUES (?1, ?2, ?3, ?4, ?5, ?5) RETURNING {_COLUMNS}",
                chat,
                text,
                source,
                pinned,
                now,
            )
        assert row
        return _note(row), True

    async def all(self, chat: str) -> list[Note]:
        """The chat's notes, oldest first."""
        async with self.database.read() as tx:
            return await standing(tx, chat)

    async def get(self, chat: str, id: int) -> Note | None:
        """A note of that chat, deleted or not."""
        async with self.database.read() as tx:
            row = await tx.one(f"{_SELECT} WHERE chat = ? AND id = ?", chat, id)
        return _note(row) if row else None

    async def correct(self, chat: str, id: int, text: str) -> bool:
        """Replace its words; False when there is no such note in that chat."""
        async with self.database.write() as tx:
            return bool(
                await tx.all(
                    "UPDATE notes SET text = ?, changed_at = ? WHERE id = ? AND chat = ?"
                    " AND deleted_at IS NULL RETURNING 1",
                    tidy(text),
                    self.clock(),
                    id,
                    chat,
                )
            )

    async def pin(self, chat: str, id: int, pinned: bool) -> None:
        async with self.database.write() as tx:
            await tx.run("UPDATE notes SET pinned = ? WHERE id = ? AND chat = ?", pinned, id, chat)

    async def delete(self, chat: str, id: int) -> bool:
        """Delete a note and every line of the prompts that shows it; `restore` undoes it."""
        async with self.database.write() as tx:
            gone = await tx.all(
                "UPDATE notes SET deleted_at = ? WHERE id = ? AND chat = ? AND deleted_at IS NULL"
                " RETURNING 1",
                self.clock(),
                id,
                chat,
            )
            if gone:
                await tx.run(_BLOT_SHORT, id)
                await tx.run(_BLOT, id)
                await tx.run("DELETE FROM notes_shown WHERE note = ?", id)
        return bool(gone)

    async def restore(self, chat: str, id: int) -> bool:
        """Undo a delete; False when there is nothing to undo."""
        async with self.database.write() as tx:
            return bool(
                await tx.all(
                    "UPDATE notes SET deleted_at = NULL, changed_at = ? WHERE id = ? AND chat = ?"
                    " AND deleted_at IS NOT NULL RETURNING 1",
                    self.clock(),
                    id,
                    chat,
                )
            )

    async def to_show(self, chat: str) -> tuple[list[Note], dict[int, str]]:
        """The chat's notes, and those that its current conversation shows: {note: line}."""
        async with self.database.read() as tx:
            notes, shown = await tx.each((_STANDING, (chat,)), (_SHOWN_NOW, (chat,)))
        return [_note(row) for row in notes], {row[0]: row[1] for row in shown}

    async def shown_in(self, conversation: int) -> list[str]:
        """The lines by which a conversation's prompt shows notes, pinned ones first."""
        async with self.database.read() as tx:
            rows = await tx.all(
                "SELECT line FROM notes_shown JOIN notes ON id = note WHERE conversation = ?"
                " AND deleted_at IS NULL ORDER BY pinned DESC, id",
                conversation,
            )
        return [row[0] for row in rows]


_COLUMNS = "id, chat, text, pinned, source, saved_at, changed_at"
_SELECT = f"SELECT {_COLUMNS} FROM notes"
_STANDING = f"{_SELECT} WHERE chat = ? AND deleted_at IS NULL ORDER BY id"
_SHOWN_NOW = """
SELECT note, line FROM notes_shown
WHERE conversation = (SELECT conversation FROM chats WHERE key = ?)
"""
# A prompt that still tells a deleted fact has not forgotten it: its line goes,
# at the price of reading the conversation again from there.
_SHOWN = """
FROM notes_shown s WHERE s.note = ?1 AND s.conversation = transcript.conversation
AND instr({text}, s.line || char(10)) > 0
"""
_WHERE = "conversation IN (SELECT conversation FROM notes_shown WHERE note = ?1)"
_BLOT = f"""
UPDATE transcript SET head = replace(head, (SELECT s.line || char(10) {_SHOWN.format(text="head")}), '')
WHERE {_WHERE} AND role = 'user' AND head <> '' AND EXISTS (SELECT 1 {_SHOWN.format(text="head")})
"""
_BLOT_SHORT = f"""
UPDATE transcript SET short = json_set(short, '$[0]', replace(json_extract(short, '$[0]'),
    (SELECT s.line || char(10) {_SHOWN.format(text="json_extract(short, '$[0]')")}), ''))
WHERE {_WHERE} AND role = 'user' AND short IS NOT NULL
AND EXISTS (SELECT 1 {_SHOWN.format(text="json_extract(short, '$[0]')")})
"""


async def standing(tx: Tx, chat: str) -> list[Note]:
    rows = await tx.all(_STANDING, chat)
    return [_note(row) for row in rows]


def tidy(text: str) -> str:
    """One line, bounded: what a note may be."""
    return storable(" ".join(text.split()))[:NOTE_CHARACTERS]


def _note(row: tuple[Any, ...]) -> Note:
    number, chat, text, pinned, source, saved, changed = row
    return Note(number, chat, text, bool(pinned), source, saved, changed)
