"""Full-text search over notes, messages and passages of documents, and the vectors of notes and messages."""

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from agent.store.database import Database, Transaction
from agent.store.people import LINKED
from agent.store.terms import query_terms, term_expression, undivided

CANDIDATES = 30
RANKED = 2_000  # rows that one search ranks at most


@dataclass(frozen=True, slots=True)
class SearchHit:
    """`kind` is "note", or the role of a message: "user" or "assistant". `at` is UNIX seconds; `stranger`
    names the source of strangers' text in it. `score`: how well its words match, the more the better."""

    kind: str
    id: int
    text: str
    at: float
    stranger: str = ""
    score: float = 0.0


@dataclass(frozen=True)
class SearchTable:
    database: Database

    async def candidates(self, chat: str, query: str) -> list[SearchHit]:
        """The notes (of linked chats, too) and messages of that chat that match best, best first; not those of a turn
        that runs, which are what it is asked."""
        async with self.database.read() as tx:
            numbers: dict[str, int] = dict(await tx.all(_NUMBERS, chat))
            if chat not in numbers:
                return []
            scopes = [f"c{numbers[chat]}", *(f"n{number}" for number in numbers.values())]
            best = await best_matches(tx, SAID, scopes, query, CANDIDATES)
            rows = await tx.all(_HITS, json.dumps([*best]))
        hits = [replace(SearchHit(*row), score=best[id]) for id, *row in rows]
        return sorted(hits, key=lambda hit: -hit.score)


@dataclass(frozen=True)
class WordIndex:
    """An FTS5 table whose first column is the scope of its rows; `weights` of bm25() by column."""

    table: str
    weights: str


SAID = WordIndex("said", "0.0, 1.0, 0.2")
PASSAGES = WordIndex("passage_words", "0.0, 3.0, 1.0, 0.2")


async def best_matches(
    tx: Transaction,
    index: WordIndex,
    scopes: Sequence[str],
    query: str,
    limit: int,
    rows: tuple[int, int] = (0, 1 << 62),
) -> dict[int, float]:
    """Search `scopes` (words of the index's first column); return {rowid: score}, best first, at most `limit`: of the
    rowids `rows[0]` to `rows[1]` those with all terms of the query, then those with any. The second search uses terms
    that stand in more than RANKED rows, and so say little, only when there is no rarer one."""
    terms = [*map(term_expression, {*query_terms(query), *query_terms(undivided(query))})]
    if not terms or not scopes:
        return {}
    mine = "scope : (" + " OR ".join(f'"{scope}"' for scope in scopes) + ")"

    async def ranked(among: str) -> dict[int, float]:
        expression = f"{mine} AND - scope : ({among})"
        sql = _RANKED.format(table=index.table, weights=index.weights)
        return dict(await tx.all(sql, expression, *rows, RANKED, limit))

    found = await ranked(all_terms(query))
    if len(found) < limit and len(terms) > 1:
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {index.table} WHERE {index.table} MATCH ? LIMIT ?)"
        counts = await tx.batch(*((sql, (f"- scope : {term}", RANKED + 1)) for term in terms))
        rare = [term for term, [(n,)] in zip(terms, counts, strict=True) if n <= RANKED]
        found |= {
            k: v for k, v in (await ranked(" OR ".join(rare or terms))).items() if k not in found
        }
    return dict([*found.items()][:limit])


def all_terms(query: str) -> str:
    """The FTS5 expression of texts that hold all terms of the query; "" when it has none."""
    either = [query_terms(spelled) for spelled in dict.fromkeys([query, undivided(query)])]
    return " OR ".join(
        f"({' AND '.join(map(term_expression, terms))})" for terms in either if terms
    )


_NUMBERS = f"SELECT key, number FROM chats WHERE key IN {LINKED}"
_HITS = """
SELECT found.value, t.role, t.id, t.text, t.at, t.stranger FROM json_each(?1) found
JOIN transcript t ON t.id = found.value LEFT JOIN turns ON turns.id = t.turn
WHERE coalesce(turns.state, 'done') = 'done'
UNION ALL
SELECT found.value, 'note', n.id, n.text, n.saved_at, n.stranger FROM json_each(?1) found
JOIN notes n ON n.id = found.value - (1 << 40) AND n.deleted_at IS NULL
"""
# Ranking takes 3 us a row, so only the newest RANKED matches are ranked, before any text is read.
_RANKED = """
SELECT rowid, -score FROM (SELECT rowid, bm25({table}, {weights}) AS score FROM {table}
    WHERE {table} MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?) ORDER BY score LIMIT ?
"""


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
