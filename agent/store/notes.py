"""Lasting notes of a chat: saved with their source, corrected, deleted and restored."""

import unicodedata
from dataclasses import dataclass

from agent.store import chats
from agent.store.database import Database, Row, storable
from agent.store.people import LINKED

NOTE_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class SavedNote:
    """`source` is the transcript row it came from, None for one written by hand. `stranger` names the
    strangers' text that its chat held when the model saved it."""

    id: int
    chat: str
    text: str
    pinned: bool
    source: int | None
    saved_at: float
    changed_at: float
    stranger: str = ""


@dataclass(frozen=True)
class NoteTable:
    database: Database

    async def add(
        self, chat: str, text: str, *, turn: str = "", pinned: bool = False, stranger: str = ""
    ) -> tuple[SavedNote, bool]:
        """Save a note and return it with True, or an older one with the same words and False."""
        text = normalize(text)
        async with self.database.write() as tx:
            await chats.ensure(tx, chat)
            for old in map(_note, await tx.all(_OF_CHAT, chat)):
                if old.text.casefold() == text.casefold():
                    return old, False
            sql = "SELECT min(id) FROM transcript WHERE turn = ? AND role = 'user'"
            row = await tx.insert_returning(
                _COLUMNS,
                "notes",
                chat=chat,
                text=text,
                pinned=pinned,
                source=await tx.value(sql, turn),
                saved_at=tx.now,
                changed_at=tx.now,
                stranger=storable(stranger),
            )
        return _note(row), True

    async def all(self, chat: str) -> list[SavedNote]:
        """The notes of the chat and of those linked with it, oldest first."""
        return [_note(row) for row in await self.database.all(_OF_CHAT, chat)]

    async def correct(self, chat: str, id: int, text: str) -> bool:
        """Replace a note's text by a person's; False when there is no such note in that chat."""
        sql = (
            "UPDATE notes SET text = ?2, changed_at = ?3, stranger = ''"
            f" WHERE id = ?4 AND chat IN {LINKED} AND deleted_at IS NULL RETURNING 1"
        )
        now = self.database.clock()
        return bool(await self.database.execute(sql, chat, normalize(text), now, id))

    async def pin(self, chat: str, id: int, pinned: bool) -> bool:
        """Pin or unpin; False when there is no such note in that chat."""
        sql = (
            f"UPDATE notes SET pinned = ?2 WHERE id = ?3 AND chat IN {LINKED}"
            " AND deleted_at IS NULL RETURNING 1"
        )
        return bool(await self.database.execute(sql, chat, pinned, id))

    async def delete(self, chat: str, id: int) -> bool:
        """Delete a note and the lines that show it in prompts; `restore` undoes it."""
        async with self.database.write() as tx:
            sql = (
                f"UPDATE notes SET deleted_at = ?2 WHERE id = ?3 AND chat IN {LINKED}"
                " AND deleted_at IS NULL RETURNING 1"
            )
            deleted = await tx.all(sql, chat, tx.now, id)
            if deleted:
                await tx.run(_DELETE_SHORT_LINE, id)
                await tx.run(_DELETE_LINE, id)
                await tx.run("DELETE FROM notes_shown WHERE note = ?", id)
        return bool(deleted)

    async def restore(self, chat: str, id: int) -> bool:
        """Undo a delete; False when there is nothing to undo."""
        sql = (
            f"UPDATE notes SET deleted_at = NULL, changed_at = ?2 WHERE id = ?3 AND chat IN {LINKED}"
            " AND deleted_at IS NOT NULL RETURNING 1"
        )
        return bool(await self.database.execute(sql, chat, self.database.clock(), id))

    async def to_show(self, chat: str) -> tuple[list[SavedNote], dict[int, str]]:
        """All notes as from `all`, and the lines that the current conversation shows already: {note id: line}."""
        async with self.database.read() as tx:
            notes, shown = await tx.batch((_OF_CHAT, (chat,)), (_SHOWN_NOW, (chat,)))
        return [_note(row) for row in notes], {row[0]: row[1] for row in shown}

    async def shown_in(self, conversation: int) -> list[str]:
        """The lines by which a conversation's prompt shows notes, pinned ones first."""
        rows = await self.database.all(
            "SELECT line FROM notes_shown JOIN notes ON id = note WHERE conversation = ?"
            " AND deleted_at IS NULL ORDER BY pinned DESC, id",
            conversation,
        )
        return [row[0] for row in rows]


_COLUMNS = "id, chat, text, pinned, source, saved_at, changed_at, stranger"
_SELECT = f"SELECT {_COLUMNS} FROM notes"
_OF_CHAT = f"{_SELECT} WHERE chat IN {LINKED} AND deleted_at IS NULL ORDER BY id"
_SHOWN_NOW = """
SELECT note, line FROM notes_shown
WHERE conversation = (SELECT conversation FROM chats WHERE key = ?)
"""
# A deleted note's line is removed from prompts, although the conversation must then be prefilled again
# from there.
_LINE_SHOWN = """
FROM notes_shown s WHERE s.note = ?1 AND s.conversation = transcript.conversation
AND instr({text}, s.line || char(10)) > 0
"""
_IN_CONVERSATIONS = "conversation IN (SELECT conversation FROM notes_shown WHERE note = ?1)"
_DELETE_LINE = f"""
UPDATE transcript SET head = replace(head, (SELECT s.line || char(10) {_LINE_SHOWN.format(text="head")}), '')
WHERE {_IN_CONVERSATIONS} AND role = 'user' AND head <> '' AND EXISTS (SELECT 1 {_LINE_SHOWN.format(text="head")})
"""
_DELETE_SHORT_LINE = f"""
UPDATE transcript SET short = json_set(short, '$[0]', replace(json_extract(short, '$[0]'),
    (SELECT s.line || char(10) {_LINE_SHOWN.format(text="json_extract(short, '$[0]')")}), ''))
WHERE {_IN_CONVERSATIONS} AND role = 'user' AND short IS NOT NULL
AND EXISTS (SELECT 1 {_LINE_SHOWN.format(text="json_extract(short, '$[0]')")})
"""


def normalize(text: str) -> str:
    """The text on one line, of NOTE_CHARACTERS at most."""
    return storable(unicodedata.normalize("NFC", " ".join(text.split())))[:NOTE_CHARACTERS]


def _note(row: Row) -> SavedNote:
    number, chat, text, pinned, *rest = row
    return SavedNote(number, chat, text, bool(pinned), *rest)
