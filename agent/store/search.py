"""What past words match a query: candidates by FTS5, one chat at a time. agent.recall ranks them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.store.database import Database

CANDIDATES = 300


@dataclass(frozen=True, slots=True)
class Found:
    """A note, or something said by a person ("user") or the model ("assistant"). `at` is UNIX seconds."""

    kind: str
    id: int
    text: str
    at: float


@dataclass(frozen=True)
class SearchTable:
    database: Database

    async def candidates(self, chat: str, query: str, limit: int = CANDIDATES) -> list[Found]:
        """Whatever of that chat holds a word of the query (the newest `limit`), notes first.

        Words of four letters and more also match as beginnings of words. Without
        any match the query is looked for as it stands, in what was said last.
        """
        async with self.database.read() as tx:
            number = await tx.value("SELECT number FROM chats WHERE key = ?", chat)
            if number is None:
                return []
            expression = match(terms(query), number)
            if expression is None:
                return []
            notes = await tx.all(_NOTED, expression, limit)
            said = await tx.all(_SAID, expression, limit)
            if not notes and not said:
                said = await tx.all(_PLAIN, chat, query.strip(), limit)
        return [Found(*row) for row in (*notes, *said)]


_NOTED = """
SELECT 'note', n.id, n.text, n.saved_at FROM noted JOIN notes n ON n.id = noted.rowid
WHERE noted MATCH ? AND n.deleted_at IS NULL ORDER BY noted.rowid DESC LIMIT ?
"""
_SAID = """
SELECT t.role, t.id, t.text, t.at FROM said JOIN transcript t ON t.id = said.rowid
WHERE said MATCH ? ORDER BY said.rowid DESC LIMIT ?
"""
# For scripts without spaces between words, which the tokenizer takes for one word.
_PLAIN = """
SELECT role, id, text, at FROM (
    SELECT t.role, t.id, t.text, t.at FROM transcript t JOIN conversations c ON c.id = t.conversation
    WHERE c.chat = ?1 AND t.role <> 'tool' AND t.own = 0 ORDER BY t.id DESC LIMIT 2000)
WHERE instr(lower(text), lower(?2)) > 0 LIMIT ?3
"""


def terms(query: str) -> list[str]:
    """The words of a query, each once, at most twelve."""
    return list(dict.fromkeys(re.findall(r"[^\W_]+", query.lower())))[:12]


def match(words: Sequence[str], chat_number: int) -> str | None:
    """The FTS5 expression: any of the words, in that chat alone; None without words."""
    if not words:
        return None
    either = " OR ".join(f'"{word}"*' if len(word) > 3 else f'"{word}"' for word in words)
    return f"chat : c{chat_number} AND text : ({either})"
