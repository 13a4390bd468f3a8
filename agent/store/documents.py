"""Documents and their passages: of a chat, or of a folder that the owner has named.

A document waits until it has been read. The index holds each passage's scope as a word ('c<number of the
chat>', 'f<number of the folder>'), so that a search never scans passages it may not see.
"""

import asyncio
import json
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agent.store import chats
from agent.store.database import Database, Transaction, columns, storable
from agent.store.search import PASSAGES, Vector, best_matches

RECEIVED = "received"  # agent.sandbox.files.RECEIVED: what came with messages
BATCH = 200  # passages in one transaction, for which a turn waits some 10 ms at most


@dataclass(frozen=True, slots=True)
class SavedDocument:
    """A document of a `chat` or a `folder`; the other is None. `pages` counts in `unit`; `note` says why it
    failed, or what is missing."""

    id: int
    chat: str | None
    folder: str | None
    path: str
    scope: str
    state: Literal["waiting", "ready", "failed"]
    unit: str
    pages: int
    note: str

    @property
    def title(self) -> str:
        """The name by which it is shown and cited; it begins with the folder's name, if any."""
        if self.folder is not None:
            return f"{self.folder}/{self.path}"
        return self.path.removeprefix(f"{RECEIVED}/")

    @property
    def file_name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def length(self) -> str:
        """The length of the document, such as "12 pages"."""
        return f"{self.pages} {self.unit}{'' if self.pages == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class SavedPassage:
    id: int
    document: int
    page: int
    heading: str
    text: str


@dataclass(frozen=True)
class DocumentTable:
    """`added` is set when a document is added; `reading` are those that are being read, by id."""

    database: Database
    added: asyncio.Event = field(default_factory=asyncio.Event)
    reading: dict[int, SavedDocument] = field(default_factory=dict)

    async def add(self, chat: str, path: str, size: int, mtime: float) -> SavedDocument:
        """Queue a file of the chat's workspace to be read, again if it was read before."""
        async with self.database.write() as tx:
            await chats.ensure(tx, chat)
            number = await tx.value("SELECT number FROM chats WHERE key = ?", chat)
            key = (chat, None, storable(path), f"c{number}")
            row = await tx.one(f"{_ADD} RETURNING {_COLUMNS}", *key, size, mtime, tx.now)
            assert row
            self.reading.pop(row[0], None)  # it is not that file any more
        self.added.set()
        return SavedDocument(*row)

    async def sync_folder(self, folder: str, files: Mapping[str, tuple[int, float]]) -> None:
        """Follow a folder's files, {path: (size, mtime)}: new and changed ones are queued to be read, deleted
        ones forgotten."""
        async with self.database.write() as tx:
            await tx.run(_ADD_FOLDER, folder)
            number = await tx.value("SELECT number FROM document_folders WHERE name = ?", folder)
            scope = f"f{number}"
            sql = "SELECT path, size, mtime, id FROM documents WHERE scope = ?"
            rows = await tx.all(sql, scope)
            known = {path: (size, mtime, id) for path, size, mtime, id in rows}
            for path, (size, mtime) in files.items():
                *old, id = known.get(path, (0,))
                if old != [size, mtime]:
                    await tx.run(_ADD, None, folder, path, scope, size, mtime, tx.now)
                    self.reading.pop(int(id), None)
        for path, _, _, id in rows:
            if path not in files:
                await self.forget(id)

    async def keep_folders(self, names: Collection[str]) -> None:
        """Forget the documents of all other folders."""
        for (name,) in await self.database.all("SELECT name FROM document_folders"):
            if name not in names:
                sql = "SELECT id FROM documents WHERE folder = ?"
                for (id,) in await self.database.all(sql, name):
                    await self.forget(id)
                await self.database.execute("DELETE FROM document_folders WHERE name = ?", name)

    async def begin(self, ids: Collection[int] | None = None) -> SavedDocument | None:
        """Claim the next waiting document (of `ids`, if given) to be read; a chat's before a folder's. `release`
        ends that."""
        async with self.database.write() as tx:  # so that no two readers find the same one
            only = None if ids is None else json.dumps(list(ids))
            row = await tx.one(_NEXT, json.dumps(list(self.reading)), only)
            if row is None:
                return None
            document = SavedDocument(*row)
            self.reading[document.id] = document
        return document

    async def finish(
        self,
        document: SavedDocument,
        passages: Sequence[tuple[int, str, str]],
        unit: str,
        pages: int,
        note: str = "",
    ) -> None:
        """Replace its passages by these (page, heading, text), unless it has changed meanwhile."""
        await self._empty(document.id, document)
        for start in range(0, len(passages), BATCH):
            async with self.database.write() as tx:
                for page, heading, text in passages[start : start + BATCH]:
                    if self.reading.get(document.id) is document:
                        texts = storable(heading), storable(text)
                        await tx.run(_PASSAGE, document.scope, page, *texts, document.id)
        sql = "UPDATE documents SET state = 'ready', unit = ?, pages = ?, note = ? WHERE id = ?"
        await self._end(document, sql, unit, pages, storable(note))

    async def fail(self, document: SavedDocument, why: str) -> None:
        await self._empty(document.id, document)
        sql = "UPDATE documents SET state = 'failed', note = ? WHERE id = ?"
        await self._end(document, sql, storable(why))

    async def _end(self, document: SavedDocument, sql: str, *values: Any) -> None:
        async with self.database.write() as tx:
            if self.reading.get(document.id) is document:
                await tx.run(sql, *values, document.id)

    def release(self, document: SavedDocument) -> None:
        """End the reading of a document; without `finish` or `fail` it waits again."""
        if self.reading.get(document.id) is document:
            del self.reading[document.id]

    async def forget(self, id: int) -> None:
        await self._empty(id)
        await self.database.execute("DELETE FROM documents WHERE id = ?", id)

    async def seen_by(self, chat: str, folders: Collection[str]) -> list[SavedDocument]:
        """The chat's documents, then those of the folders, by name."""
        sql = (
            f"SELECT {_COLUMNS} FROM documents WHERE chat = ?1"
            " OR folder IN (SELECT value FROM json_each(?2)) ORDER BY chat IS NULL, folder, path"
        )
        rows = await self.database.all(sql, chat, json.dumps(list(folders)))
        return [SavedDocument(*row) for row in rows]

    async def waiting(self, chat: str, folders: Collection[str]) -> list[int]:
        """Ids of the waiting documents of the chat and of the folders."""
        sql = (
            "SELECT id FROM documents WHERE state = 'waiting'"
            " AND (chat = ?1 OR folder IN (SELECT value FROM json_each(?2)))"
        )
        return [id for (id,) in await self.database.all(sql, chat, json.dumps(list(folders)))]

    async def get(self, ids: Collection[int]) -> dict[int, SavedDocument]:
        sql = f"SELECT {_COLUMNS} FROM documents WHERE id IN (SELECT value FROM json_each(?))"
        rows = await self.database.all(sql, json.dumps(list(ids)))
        return {row[0]: SavedDocument(*row) for row in rows}

    async def search(
        self,
        chat: str,
        folders: Collection[str],
        query: str,
        limit: int,
        document: int | None = None,
    ) -> list[SavedPassage]:
        """The passages (of one `document`, if given) that match the query best, best first."""
        async with self.database.read() as tx:
            scopes, rows = await _scopes(tx, chat, folders), (0, 1 << 62)
            if document is not None:
                sql = "SELECT coalesce(min(id), 1), coalesce(max(id), 0) FROM passages WHERE document = ?"
                [rows] = await tx.all(sql, document)
            best = await best_matches(tx, PASSAGES, scopes, query, limit, rows)
            found = await tx.all(_FOUND, json.dumps([*best]), json.dumps(scopes), document)
        return [SavedPassage(*row) for row in found]

    async def pages(self, document: int, first: int, last: int) -> list[SavedPassage]:
        """The passages of these pages, in their order."""
        sql = f"{_PASSAGES} WHERE document = ? AND page BETWEEN ? AND ? ORDER BY id"
        rows = await self.database.all(sql, document, first, last)
        return [SavedPassage(*row) for row in rows]

    async def _empty(self, id: int, reading: SavedDocument | None = None) -> None:
        """Delete a document's passages in batches; with `reading` only as long as that is being read."""
        sql = (
            "DELETE FROM passages WHERE id IN (SELECT id FROM passages WHERE document = ?1 LIMIT ?2)"
            " RETURNING 1"
        )
        while self.reading.get(id) is reading or reading is None:
            if len(await self.database.execute(sql, id, BATCH)) < BATCH:
                return

    # -- meaning --------------------------------------------------------------

    async def without_vector(self, model: str, limit: int) -> list[SavedPassage]:
        rows = await self.database.all(
            f"{_PASSAGES} WHERE NOT EXISTS (SELECT 1 FROM passage_vectors WHERE passage = p.id AND model = ?)"
            " ORDER BY id DESC LIMIT ?",
            model,
            limit,
        )
        return [SavedPassage(*row) for row in rows]

    async def put_vectors(
        self, model: str, passages: Sequence[SavedPassage], vectors: Sequence[Vector]
    ) -> None:
        sql = (
            "INSERT OR REPLACE INTO passage_vectors (scope, model, code, vector, passage)"
            " SELECT scope, ?1, ?2, ?3, id FROM passages WHERE id = ?4"
        )
        async with self.database.write() as tx:
            for passage, vector in zip(passages, vectors, strict=True):
                await tx.run(sql, model, sign_code(vector), vector.tobytes(), passage.id)

    async def codes(
        self, chat: str, folders: Collection[str], model: str, after: int
    ) -> list[tuple[int, bytes]]:
        """(id, sign_code) of each passage that the chat may see, with ids after `after`, in order of id."""
        async with self.database.read() as tx:
            scopes = json.dumps(await _scopes(tx, chat, folders))
            sql = (
                "SELECT passage, code FROM passage_vectors WHERE scope IN (SELECT value FROM json_each(?1))"
                " AND model = ?2 AND passage > ?3 ORDER BY passage"
            )
            return [(id, code) for id, code in await tx.all(sql, scopes, model, after)]

    async def vectors(
        self, chat: str, folders: Collection[str], model: str, ids: Collection[int]
    ) -> list[tuple[SavedPassage, Vector]]:
        """The given passages that still exist and that the chat may see, with their vectors."""
        async with self.database.read() as tx:
            scopes = json.dumps(await _scopes(tx, chat, folders))
            rows = await tx.all(_VECTORS, scopes, model, json.dumps(list(ids)))
        return [(SavedPassage(*row), array("f", vector)) for *row, vector in rows]


def sign_code(vector: Vector) -> bytes:
    """The signs of a vector's numbers, one bit each: near vectors are first found by counting the bits that
    differ, and then compared by cosine."""
    return int("".join("1" if value > 0 else "0" for value in vector), 2).to_bytes(
        (len(vector) + 7) // 8, "big"
    )


async def _scopes(tx: Transaction, chat: str, folders: Collection[str]) -> list[str]:
    rows = await tx.all(_SCOPES, chat, json.dumps(list(folders)))
    return [scope for (scope,) in rows]


_COLUMNS = columns(SavedDocument)
_ADD = """
INSERT INTO documents (chat, folder, path, scope, size, mtime, added_at) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (scope, path) DO UPDATE SET size = excluded.size, mtime = excluded.mtime,
    state = 'waiting'"""
_ADD_FOLDER = "INSERT INTO document_folders (name) VALUES (?) ON CONFLICT DO NOTHING"
_NEXT = f"""
SELECT {_COLUMNS} FROM documents WHERE state = 'waiting' AND id NOT IN (SELECT value FROM json_each(?1))
AND (?2 IS NULL OR id IN (SELECT value FROM json_each(?2))) ORDER BY chat IS NULL, id LIMIT 1
"""
_PASSAGE = """
INSERT INTO passages (scope, page, heading, text, document)
SELECT ?1, ?2, ?3, ?4, id FROM documents WHERE id = ?5
"""
_PASSAGE_COLUMNS = "p.id, p.document, p.page, p.heading, p.text"
_PASSAGES = f"SELECT {_PASSAGE_COLUMNS} FROM passages p"
_FOUND = f"""
SELECT {_PASSAGE_COLUMNS} FROM json_each(?1) best
JOIN passages p ON p.id = best.value JOIN documents d ON d.id = p.document
WHERE d.state = 'ready' AND d.scope IN (SELECT value FROM json_each(?2)) AND (?3 IS NULL OR p.document = ?3)
ORDER BY best.key
"""
_SCOPES = """
SELECT 'c' || number FROM chats WHERE key = ?1
UNION ALL SELECT 'f' || number FROM document_folders WHERE name IN (SELECT value FROM json_each(?2))
"""
_VECTORS = f"""
SELECT {_PASSAGE_COLUMNS}, v.vector FROM passages p JOIN passage_vectors v ON v.passage = p.id
JOIN documents d ON d.id = p.document
WHERE p.scope IN (SELECT value FROM json_each(?1)) AND v.model = ?2
AND p.id IN (SELECT value FROM json_each(?3)) AND d.state = 'ready'
"""
