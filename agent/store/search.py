"""Notes and messages of one chat that may match a query: by full-text search, and their vectors, to be
compared. agent.memory.search ranks them."""

import json
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agent.store.database import Database
from agent.store.links import LINKED

CANDIDATES = 300


@dataclass(frozen=True, slots=True)
class SearchHit:
    """`kind` is "note", or the role of a message: "user" or "assistant". `at` is UNIX seconds; `stranger`
    names the source of strangers' text in it."""

    kind: str
    id: int
    text: str
    at: float
    stranger: str = ""


@dataclass(frozen=True)
class SearchTable:
    database: Database

    async def candidates(self, chat: str, query: str) -> list[SearchHit]:
        """Notes (of linked chats, too), then messages of that chat that hold a word of the query, the
        newest CANDIDATES of each.

        Words also match with common endings added or removed ("ovens", "oven"). Without any match the
        terms are searched inside the words of the newest messages.
        """
        async with self.database.read() as tx:
            numbers: dict[str, int] = dict(await tx.all(_NUMBERS, chat))
            words = terms(query)
            if chat not in numbers or not words:
                return []
            rows = await tx.all(_NOTES, fts_expression(words, *numbers.values()), CANDIDATES)
            rows += await tx.all(_MESSAGES, fts_expression(words, numbers[chat]), CANDIDATES)
            rows = rows or await tx.all(_INSIDE_WORDS, chat, json.dumps(words), CANDIDATES)
        return [SearchHit(*row) for row in rows]


_NUMBERS = f"SELECT key, number FROM chats WHERE key IN {LINKED}"
_NOTES = """
SELECT 'note', n.id, n.text, n.saved_at, n.stranger FROM noted JOIN notes n ON n.id = noted.rowid
WHERE noted MATCH ? AND n.deleted_at IS NULL ORDER BY noted.rowid DESC LIMIT ?
"""
_MESSAGES = """
SELECT t.role, t.id, t.text, t.at, t.stranger FROM said JOIN transcript t ON t.id = said.rowid
WHERE said MATCH ? ORDER BY said.rowid DESC LIMIT ?
"""
# Finds parts of compounds, and words of scripts without spaces, which the tokenizer takes for one.
_INSIDE_WORDS = """
SELECT role, id, text, at, stranger FROM (
    SELECT t.role, t.id, t.text, t.at, t.stranger FROM transcript t JOIN conversations c ON c.id = t.conversation
    WHERE c.chat = ?1 AND t.role <> 'tool' AND t.own = 0 ORDER BY t.id DESC LIMIT 2000)
WHERE EXISTS (SELECT 1 FROM json_each(?2) WHERE instr(lower(text), value) > 0) LIMIT ?3
"""
_ENDINGS = ("s", "es", "n", "en", "e", "ed", "ing", "r")


def terms(query: str) -> list[str]:
    """The words of a query, each once, at most twelve."""
    return list(dict.fromkeys(re.findall(r"[^\W_]+", query.lower())))[:12]


def fts_expression(words: Sequence[str], *chat_numbers: int) -> str:
    """The FTS5 expression for any of the words in those chats.

    Prefix queries would scan the words of all chats (100 ms and more over a million messages), so likely
    forms are listed one by one.
    """
    either = " OR ".join(f'"{form}"' for word in words for form in forms(word))
    chats = " OR ".join(f"c{number}" for number in chat_numbers)
    return f"chat : ({chats}) AND text : ({either})"


def forms(word: str) -> list[str]:
    """A word with common endings added and removed; short words and numbers as they are."""
    if len(word) < 4 or not word.isalpha():
        return [word]
    longer = [word + ending for ending in _ENDINGS]
    shorter = [
        word.removesuffix(e) for e in _ENDINGS if word.endswith(e) and len(word) >= len(e) + 3
    ]
    return list(dict.fromkeys([word, *longer, *shorter]))


Vector: TypeAlias = "array[float]"

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
        # The chat may have been forgotten while the server was asked.
        sql = "INSERT OR REPLACE INTO meanings SELECT ?1, ?2, key, ?4, ?5 FROM chats WHERE key = ?3"
        async with self.database.write() as tx:
            await tx.many(sql, rows)

    async def all(self, chat: str, model: str) -> list[tuple[SearchHit, Vector]]:
        """The notes, and the newest messages, with their vectors."""
        rows = await self.database.all(_ALL, chat, model, NEWEST)
        return [(SearchHit(*row), array("f", vector)) for *row, vector in rows]


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
_ALL = f"""
SELECT 'note', n.id, n.text, n.saved_at, n.stranger, m.vector FROM meanings m JOIN notes n ON n.id = m.row
WHERE m.chat IN {LINKED} AND m.model = ?2 AND m.kind = 'note' AND n.deleted_at IS NULL
UNION ALL
SELECT * FROM (
    SELECT t.role, t.id, t.text, t.at, t.stranger, m.vector FROM meanings m JOIN transcript t ON t.id = m.row
    WHERE m.chat = ?1 AND m.model = ?2 AND m.kind = 'said' ORDER BY m.row DESC LIMIT ?3)
"""
