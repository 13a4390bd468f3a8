"""Vectors of what was said and noted: found by nearness, one chat at a time."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.store.database import Database
from agent.store.search import Found

if TYPE_CHECKING:
    Vector = array[float]
else:
    Vector = array

NEWEST = 2_000  # words of a chat that are compared; its notes all are


@dataclass(frozen=True)
class MeaningTable:
    database: Database

    async def missing(self, chat: str, model: str, limit: int) -> list[Found]:
        """Notes and words, newest first, that have no vector of that model yet."""
        async with self.database.read() as tx:
            rows = await tx.all(_MISSING, chat, model, limit)
        return [Found(*row) for row in rows]

    async def put(
        self, chat: str, model: str, found: Sequence[Found], vectors: Sequence[Vector]
    ) -> None:
        rows = [
            (_kind(one), one.id, chat, model, vector.tobytes())
            for one, vector in zip(found, vectors, strict=True)
        ]
        async with self.database.write() as tx:
            await tx.many("INSERT OR REPLACE INTO meanings VALUES (?, ?, ?, ?, ?)", rows)

    async def all(self, chat: str, model: str) -> list[tuple[Found, Vector]]:
        """What is to be compared, with its vectors."""
        async with self.database.read() as tx:
            rows = await tx.all(_ALL, chat, model, NEWEST)
        return [(Found(*row[:4]), _vector(row[4])) for row in rows]


_MISSING = """
SELECT 'note', n.id, n.text, n.saved_at FROM notes n
WHERE n.chat = ?1 AND n.deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM meanings WHERE chat = ?1 AND model = ?2 AND kind = 'note' AND row = n.id)
UNION ALL
SELECT * FROM (
    SELECT t.role, t.id, t.text, t.at FROM transcript t JOIN conversations c ON c.id = t.conversation
    WHERE c.chat = ?1 AND t.role <> 'tool' AND t.own = 0 AND length(t.text) > 20 AND NOT EXISTS (
        SELECT 1 FROM meanings WHERE chat = ?1 AND model = ?2 AND kind = 'said' AND row = t.id)
    ORDER BY t.id DESC LIMIT ?3)
LIMIT ?3
"""
_ALL = """
SELECT 'note', n.id, n.text, n.saved_at, m.vector FROM meanings m JOIN notes n ON n.id = m.row
WHERE m.chat = ?1 AND m.model = ?2 AND m.kind = 'note' AND n.deleted_at IS NULL
UNION ALL
SELECT * FROM (
    SELECT t.role, t.id, t.text, t.at, m.vector FROM meanings m JOIN transcript t ON t.id = m.row
    WHERE m.chat = ?1 AND m.model = ?2 AND m.kind = 'said' ORDER BY m.row DESC LIMIT ?3)
"""


def _kind(found: Found) -> str:
    return "note" if found.kind == "note" else "said"


def _vector(blob: bytes) -> Vector:
    vector = array("f")
    vector.frombytes(blob)
    return vector
