"""Vectors of notes and messages, compared one chat at a time."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.store.database import Database
from agent.store.search import SearchHit
from agent.store.unreadable import readable

if TYPE_CHECKING:
    Vector = array[float]
else:
    Vector = array

NEWEST = 2_000  # messages of a chat that are compared; its notes all are


@dataclass(frozen=True)
class EmbeddingTable:
    database: Database

    async def missing(self, chat: str, model: str, limit: int) -> list[SearchHit]:
        """Notes and messages, newest first, that have no vector of that model yet."""
        return [SearchHit(*row) for row in await self.database.all(_MISSING, chat, model, limit)]

    async def put(
        self, chat: str, model: str, texts: Sequence[SearchHit], vectors: Sequence[Vector]
    ) -> None:
        rows = [
            ("note" if text.kind == "note" else "said", text.id, chat, model, vector.tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        async with self.database.write() as tx:
            await tx.many("INSERT OR REPLACE INTO meanings VALUES (?, ?, ?, ?, ?)", rows)

    async def all(self, chat: str, model: str) -> list[tuple[SearchHit, Vector]]:
        """What is to be compared, with its vectors."""
        rows = await self.database.all(_ALL, chat, model, NEWEST)
        return await readable(
            self.database,
            "meanings",
            rows,
            lambda row: (SearchHit(*row[1:-1]), array("f", row[-1])),
        )


_MISSING = """
SELECT 'note', n.id, n.text, n.saved_at, n.stranger FROM notes n
WHERE n.chat = ?1 AND n.deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM meanings WHERE chat = ?1 AND model = ?2 AND kind = 'note' AND row = n.id)
UNION ALL
SELECT * FROM (
    SELECT t.role, t.id, t.text, t.at, t.stranger FROM transcript t JOIN conversations c ON c.id = t.conversation
    WHERE c.chat = ?1 AND t.role <> 'tool' AND t.own = 0 AND length(t.text) > 20 AND NOT EXISTS (
        SELECT 1 FROM meanings WHERE chat = ?1 AND model = ?2 AND kind = 'said' AND row = t.id)
    ORDER BY t.id DESC LIMIT ?3)
LIMIT ?3
"""
_ALL = """
SELECT m.row, 'note', n.id, n.text, n.saved_at, n.stranger, m.vector FROM meanings m JOIN notes n ON n.id = m.row
WHERE m.chat = ?1 AND m.model = ?2 AND m.kind = 'note' AND n.deleted_at IS NULL
UNION ALL
SELECT * FROM (
    SELECT m.row, t.role, t.id, t.text, t.at, t.stranger, m.vector FROM meanings m JOIN transcript t ON t.id = m.row
    WHERE m.chat = ?1 AND m.model = ?2 AND m.kind = 'said' ORDER BY m.row DESC LIMIT ?3)
"""
