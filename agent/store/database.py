"""One SQLite file: a writer connection, readers beside it. The only file that knows aiosqlite.

    async with open_database(path) as database:
        async with database.write() as tx:      # BEGIN IMMEDIATE ... COMMIT
            await tx.run("INSERT ...", value)
        rows = await database.all("SELECT ...")

A caller cancelled inside `write` finds its transaction rolled back, or, when the
commit had begun, committed; never half of it.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiosqlite

from agent.aio import complete
from agent.store.errors import StoreError, StoreNewer, as_store_errors, damaged
from agent.store.terms import add_functions

BUSY_SECONDS = 10.0
READERS = 2
# A commit returns with FULL once it is on the disk, with NORMAL once other processes see it: a kill
# cannot undo that, a power cut can.
DURABLE = "PRAGMA synchronous = FULL"
VISIBLE = "PRAGMA synchronous = NORMAL"

_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    DURABLE,
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA temp_store = MEMORY",
)

Clock = Callable[[], float]  # seconds since the epoch
Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Any]]


def columns(row: type) -> str:
    """The fields of a dataclass as a list of columns of the same names."""
    return ", ".join(field.name for field in fields(row))


class Transaction:
    """One connection inside a transaction (of a writer) or a read; `now` is when it began.

    A statement without a result (`run`, `many`, `insert`) is sent to the database's thread together with
    the next one that has one, or with the commit: the trip there costs more than a statement.
    """

    def __init__(self, connection: aiosqlite.Connection, now: float, *first: str) -> None:
        self.now = now
        self.ended = False
        self._connection = connection
        self._queued: list[Statement] = [(sql, ()) for sql in first]

    async def run(self, sql: str, *values: Any) -> None:
        self._queued.append((sql, values))

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._queued.extend((sql, row) for row in rows)

    async def insert(self, table: str, **values: Any) -> None:
        """Insert a row; the names are its columns."""
        await self.run(_insert(table, values), *values.values())

    async def insert_returning(self, returning: str, table: str, **values: Any) -> Row:
        """Insert a row; return the values of its columns named in `returning`."""
        sql = f"{_insert(table, values)} RETURNING {returning}"
        return (await self.all(sql, *values.values()))[0]

    async def all(self, sql: str, *values: Any) -> list[Row]:
        [rows] = await self.batch((sql, values))
        return rows

    async def one(self, sql: str, *values: Any) -> Row | None:
        rows = await self.all(sql, *values)
        return rows[0] if rows else None

    async def value(self, sql: str, *values: Any) -> Any:
        """The first column of the first row; None without a row."""
        row = await self.one(sql, *values)
        return row[0] if row else None

    async def dicts(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """The rows by the names of their columns."""
        await self.batch()
        connection = self._connection
        return await connection._execute(_run_named, connection._conn, sql, values)  # type: ignore[no-any-return, no-untyped-call]

    async def commit_with(self, sql: str, *values: Any) -> list[Row]:
        """Run the transaction's last statement together with the commit; return its rows."""
        rows, _ = await self.batch((sql, values), ("COMMIT", ()))
        self.ended = True
        return rows

    async def batch(self, *statements: Statement) -> list[list[Row]]:
        """Run what is queued, then these statements, in one trip to the thread; return the rows of each of these."""
        every, self._queued = [*self._queued, *statements], []
        if not every:
            return []
        connection = self._connection
        # aiosqlite has no public method for several statements with values.
        rows = await connection._execute(_run_each, connection._conn, every)  # type: ignore[no-untyped-call]
        return rows[len(every) - len(statements) :]  # type: ignore[no-any-return]


def _run_each(connection: sqlite3.Connection, statements: Sequence[Statement]) -> list[list[Row]]:
    return [connection.execute(sql, values).fetchall() for sql, values in statements]


def _run_named(
    connection: sqlite3.Connection, sql: str, values: Sequence[Any]
) -> list[dict[str, Any]]:
    cursor = connection.execute(sql, values)
    names = [name for name, *_ in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _insert(table: str, values: dict[str, Any]) -> str:
    return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"


class Database:
    """An open database file; `clock` gives the instant of every transaction."""

    def __init__(
        self, path: Path, writer: aiosqlite.Connection, stack: AsyncExitStack, clock: Clock
    ) -> None:
        self.path = path
        self.clock = clock
        self._writer = writer
        self._writing = asyncio.Lock()
        self._stack = stack
        self._idle_readers: list[aiosqlite.Connection] = []
        self._reading = asyncio.Semaphore(READERS)

    async def all(self, sql: str, *values: Any) -> list[Row]:
        """The rows of one statement, by a reader."""
        async with self.read() as tx:
            return await tx.all(sql, *values)

    async def one(self, sql: str, *values: Any) -> Row | None:
        async with self.read() as tx:
            return await tx.one(sql, *values)

    async def value(self, sql: str, *values: Any) -> Any:
        """The first column of the first row, by a reader; None without a row."""
        async with self.read() as tx:
            return await tx.value(sql, *values)

    async def dicts(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """The rows of one statement by the names of their columns, by a reader."""
        async with self.read() as tx:
            return await tx.dicts(sql, *values)

    async def execute(self, sql: str, *values: Any, durable: bool = True) -> list[Row]:
        """Run one statement that writes, as a transaction of its own; return its rows."""
        async with self.write(durable=durable) as tx:
            return await tx.commit_with(sql, *values)

    @asynccontextmanager
    async def write(self, *, durable: bool = True) -> AsyncIterator[Transaction]:
        """One transaction; it is rolled back when the block raises. Without `durable` a power cut may lose
        it: for what is void after one anyway, or may be missing."""
        level = DURABLE if durable else VISIBLE
        async with self._writing:
            with as_store_errors(self.path):
                try:
                    tx = Transaction(self._writer, self.clock(), level, "BEGIN IMMEDIATE")
                    yield tx
                    if not tx.ended:
                        await tx.batch(("COMMIT", ()))
                except BaseException:
                    # It runs behind whatever the cancelled call left in the thread's queue.
                    await complete(self._writer.rollback())
                    raise

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Transaction]:
        """A reader; each statement sees the state last committed when it runs."""
        async with self._reading:
            with as_store_errors(self.path):
                reader = (
                    self._idle_readers.pop() if self._idle_readers else await self._open_reader()
                )
                try:
                    yield Transaction(reader, self.clock())
                finally:
                    self._idle_readers.append(reader)

    async def damage(self) -> str:
        """What SQLite's check finds wrong with the file, "" if nothing. It reads every page: 0.25 s for 112 MB."""
        found = await self.value("PRAGMA quick_check(1)")
        return "" if found == "ok" else str(found)

    @asynccontextmanager
    async def without_transaction(self) -> AsyncIterator[Transaction]:
        """The writer outside a transaction, for VACUUM."""
        async with self._writing:
            with as_store_errors(self.path):
                tx = Transaction(self._writer, self.clock(), DURABLE)
                yield tx
                await tx.batch()

    async def _open_reader(self) -> aiosqlite.Connection:
        reader = await _connect(self._stack, self.path)
        await reader.execute("PRAGMA query_only = ON")
        return reader


@asynccontextmanager
async def open_database(path: Path, clock: Clock = time.time) -> AsyncIterator[Database]:
    """Open or create the file (0600) and bring its schema up to date; StoreError says what fails."""
    with as_store_errors(path):
        _create(path)
        async with AsyncExitStack() as stack:
            writer = await _connect(stack, path)
            for pragma in _PRAGMAS:  # a new file is switched to WAL, which is permanent
                await writer.execute_fetchall(pragma)
            await _migrate(writer, path)
            yield Database(path, writer, stack, clock)


@asynccontextmanager
async def open_read_only(path: Path, clock: Clock = time.time) -> AsyncIterator[Database]:
    """Open the file beside the process that writes it; a write raises StoreError.

    Raises StoreError when there is no file, or one of another version.
    """
    if not path.exists():
        raise StoreError(f"There is no state in {path.parent} yet: the bot makes it.")
    with as_store_errors(path):
        async with AsyncExitStack() as stack:
            reader = await _connect(stack, f"{path.absolute().as_uri()}?mode=ro")
            version, known = await _version(reader), len(migrations())
            if version > known:
                raise StoreError(_NEWER.format(path=path))
            if version < known:
                raise StoreError(
                    f"{path} was written by an older version of Voltaire: start the bot, which brings it up to date."
                )
            database = Database(path, reader, stack, clock)
            database._idle_readers.append(reader)
            database._reading = asyncio.Semaphore(1)
            yield database


_NEWER = "{path} was written by a newer version of Voltaire: update this one."


def storable(text: str) -> str:
    """The text with "?" in place of lone surrogates, which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


async def _connect(stack: AsyncExitStack, path: Path | str) -> aiosqlite.Connection:
    """`path` as text is a URI of SQLite. A cancelled caller's connection is opened, and closed with the stack:
    left on the way, its thread would meet a closed event loop.
    """
    connection = aiosqlite.connect(
        path, isolation_level=None, timeout=BUSY_SECONDS, uri=isinstance(path, str)
    )
    await complete(stack.enter_async_context(connection))
    await connection._execute(add_functions, connection._conn)  # type: ignore[no-untyped-call]
    return connection


def _create(path: Path) -> None:
    """Create the file. An existing one is not opened: closing it would drop this process's locks on it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}.") from None


@cache
def migrations() -> list[str]:
    """The SQL that leads to each schema version, from version 1."""
    folder = files("agent.store").joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [folder.joinpath(name).read_text("utf-8") for name in names]


async def _migrate(writer: aiosqlite.Connection, path: Path) -> None:
    steps = migrations()
    if await _version(writer) == len(steps):
        return
    tx = Transaction(writer, 0.0, "BEGIN IMMEDIATE")
    try:
        version = await tx.value("PRAGMA user_version")  # another process may have been quicker
        if version > len(steps):
            raise StoreNewer(_NEWER.format(path=path))
        if version < 0 or (version == 0 and await tx.value("SELECT count(*) FROM sqlite_master")):
            raise damaged(path)
        missing = [(sql, ()) for step in steps[version:] for sql in statements(step)]
        await tx.batch(*missing, (f"PRAGMA user_version = {len(steps)}", ()), ("COMMIT", ()))
    except BaseException:
        await complete(writer.rollback())
        raise


async def _version(writer: aiosqlite.Connection) -> int:
    rows = list(await writer.execute_fetchall("PRAGMA user_version"))
    return int(rows[0][0])


@cache
def statements(script: str) -> list[str]:
    """A script's statements; one that creates a trigger is not split at its inner semicolons."""
    found, rest = [], ""
    for line in script.splitlines(keepends=True):
        rest += line
        if sqlite3.complete_statement(rest):
            found.append(rest.strip())
            rest = ""
    return found
