"""Which messages an account has, and their words for the search: a SQLite file that is made anew where it is lost.

It holds no text of a body, only its words in no order. Its methods block.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from agent.documents.reading import MailMessage
from agent.store.search import all_terms
from agent.store.terms import words

SCHEMA = """
PRAGMA journal_mode = wal;
CREATE TABLE folders (name TEXT PRIMARY KEY, validity INTEGER, following INTEGER);
CREATE TABLE messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, folder TEXT, uid INTEGER, arrived REAL, size INTEGER, sender TEXT,
    recipients TEXT, subject TEXT, files INTEGER, UNIQUE (folder, uid)
);
CREATE INDEX by_arrival ON messages (arrived, uid, folder);
CREATE TABLE ids (id TEXT, number INTEGER);
CREATE INDEX by_id ON ids (id);
CREATE INDEX by_number ON ids (number);
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', detail = 'none', tokenize = 'ascii');
"""
# Those that share an answered message, or share one with such a message.
THREAD = """number = ?1 OR number IN (SELECT number FROM ids WHERE id IN (SELECT id FROM ids WHERE number IN (
    SELECT number FROM ids WHERE id IN (SELECT id FROM ids WHERE number = ?1))))"""
ALL = range(1 << 32)  # UIDs


class KnownMessage(NamedTuple):
    """An indexed message: people and models name it by `number`; `arrived` is in seconds since the epoch."""

    number: int
    folder: str
    uid: int
    arrived: float
    size: int
    sender: str
    recipients: str
    subject: str
    files: int


@dataclass(frozen=True)
class MessageIndex:
    path: Path

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path, timeout=30)) as database, database:
            database.create_function("lower", 1, str.casefold)  # SQLite's own knows ASCII alone
            if not database.execute("SELECT 1 FROM sqlite_master").fetchone():
                database.executescript(SCHEMA)
            yield database

    def missing(
        self, folder: str, state: tuple[int, int, int], uids: Callable[[], Sequence[int]]
    ) -> list[int]:
        """Remove messages that the folder no longer has; return the UIDs that the index lacks, newest first. `state` is
        UIDVALIDITY, UIDNEXT, number of messages; `uids` lists all UIDs, and is called if the state has changed."""
        with self._open() as database:
            sql = "SELECT validity, following FROM folders WHERE name = ?"
            before = database.execute(sql, (folder,)).fetchone() or (0, 0)
            if before[0] != state[0]:
                database.execute("DELETE FROM messages WHERE folder = ?", (folder,))
            count = "SELECT count(*) FROM messages WHERE folder = ?"
            if (*before, *database.execute(count, (folder,)).fetchone()) == state:
                return []
            rows = database.execute("SELECT uid FROM messages WHERE folder = ?", (folder,))
            known = {uid for (uid,) in rows}
            there = {*uids()}
            gone = [(folder, uid) for uid in known - there]
            database.executemany("DELETE FROM messages WHERE folder = ? AND uid = ?", gone)
            sql = "INSERT OR REPLACE INTO folders VALUES (?, ?, ?)"
            database.execute(sql, (folder, *state[:2]))
        return sorted(there - known, reverse=True)

    def add(
        self, folder: str, heads: Sequence[tuple[int, float, int]], read: Sequence[MailMessage]
    ) -> None:
        """Add messages: the n-th of `heads` is (UID, arrival, bytes), the n-th of `read` what was parsed of it."""
        insert = (
            "INSERT OR IGNORE INTO messages (folder, uid, arrived, size, sender, recipients, subject, files)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING number"
        )
        with self._open() as database:
            for head, each in zip(heads, read, strict=True):
                said = (each.sender, each.recipients, each.subject)
                row = (folder, *head, *said, len(each.parts))
                for (number,) in database.execute(insert, row).fetchall():
                    ids = [(id, number) for id in each.ids]
                    database.executemany("INSERT INTO ids VALUES (?, ?)", ids)
                    text = words("\n".join((*said, each.text)))
                    sql = "INSERT INTO words (rowid, text) VALUES (?, ?)"
                    database.execute(sql, (number, text))

    def find(
        self,
        folders: Sequence[str],
        limit: int,
        *,
        query: str = "",
        sender: str = "",
        since: float = 0.0,
        came: range = ALL,
        uids: Sequence[int] | None = None,
    ) -> list[KnownMessage]:
        """The newest messages of these folders, newest first, with all words of a query; `came` and `uids` are UIDs. What
        is not given counts for nothing."""
        marks = ", ".join("?" * len(folders))
        # The signs have SQLite go by arrival, and end with the last one wanted: else it sorts all that it finds.
        where = f"+folder IN ({marks}) AND arrived >= ? AND +uid >= ? AND +uid < ?"
        values: list[Any] = [*folders, since, came.start, came.stop]
        if sender:
            where += " AND instr(lower(sender), lower(?))"
            values.append(sender)
        if query:
            where += " AND +number IN (SELECT rowid FROM words WHERE words MATCH ?)"
            values.append(all_terms(query) or '""')
        if uids is not None:
            where += " AND uid IN (SELECT value FROM json_each(?))"
            values.append(json.dumps(uids))
        return self._select(f"{where} ORDER BY arrived DESC, uid DESC LIMIT {limit}", *values)

    def get(self, number: int) -> KnownMessage | None:
        return next(iter(self._select("number = ?", number)), None)

    def thread(self, number: int) -> list[KnownMessage]:
        """The message with those that answer it or that it answers, oldest first."""
        return self._select(f"{THREAD} ORDER BY arrived", number)

    def ids(self, number: int) -> list[str]:
        with self._open() as database:
            rows = database.execute("SELECT id FROM ids WHERE number = ? ORDER BY rowid", (number,))
            return [id for (id,) in rows]

    def _select(self, where: str, *values: Any) -> list[KnownMessage]:
        columns = ", ".join(KnownMessage._fields)
        sql = f"SELECT {columns} FROM messages WHERE {where}"  # noqa: S608 - of this file
        with self._open() as database:
            return [KnownMessage._make(row) for row in database.execute(sql, values)]
