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
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiosqlite

from agent.aio import complete
from agent.store.errors import StoreError, StoreNewer, as_store_errors, damaged

BUSY_SECONDS = 10.0
NEWEST = 999  # no schema has such a version: the number itself is damaged
READERS = 2
# How far a transaction's commit waits: FULL until it is on the disk, whatever happens then; NORMAL
# until other processes see it, which a kill cannot undo, but a power cut can.
DURABLE = "PRAGMA synchronous = FULL"
VISIBLE = "PRAGMA synchronous = NORMAL"

_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    DURABLE,
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA temp_store = MEMORY",
)

# A damaged count may stand at the end of 64 bits, where SQLite goes on with REAL, which no column of a number
# takes: statements count from a `counted` column.
MOST_COUNTED = 1 << 53

MOST_FOUND = 1000  # lines of a check
OF_A_ROW = re.compile("ok|CHECK constraint failed in .*|[A-Za-z-]+ value in .*")

Clock = Callable[[], float]  # seconds since the epoch
Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Any]]


def columns(row: type, *without: str) -> str:
    """The fields of a dataclass as a list of columns of the same names."""
    return ", ".join(field.name for field in fields(row) if field.name not in without)


def counted(column: str) -> str:
    """SQL: a column's count, to which something may be added."""
    return f"max(min({column}, {MOST_COUNTED}), -{MOST_COUNTED})"


def next_id(table: str, key: str = "id") -> str:
    """SQL: the number of a table's next row. Behind a damaged one with the largest there is SQLite itself would
    take any, or none: rows whose numbers say which came first would be out of order."""
    newest = f"SELECT coalesce(max({key}), 0) FROM {table} WHERE {key} < {MOST_COUNTED}"
    return f"(({newest}) + 1)"


def unused_id(table: str, key: str = "id") -> str:
    """SQL: the same, of a table with AUTOINCREMENT: a number that no row has ever had."""
    used = f"SELECT max(seq) FROM sqlite_sequence WHERE name = '{table}' AND seq < {MOST_COUNTED}"
    return f"max({next_id(table, key)}, coalesce(({used}), 0) + 1)"


def summed(column: str) -> str:
    """SQL: the sum of a column of numbers, 0 without rows; one that is too large is the largest there is."""
    return f"CAST(total({column}) AS INTEGER)"


class Transaction:
    """One connection inside a transaction (of a writer) or a read; `now` is when it began.

    What is only run goes to the database's thread together with the next statement
    that is waited for, or with the commit: a way there costs more than a statement.
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
        """Insert a row, which gives the columns named."""
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

    async def commit_with(self, sql: str, *values: Any) -> list[Row]:
        """The rows of the transaction's last statement, which goes with the commit."""
        rows, _ = await self.batch((sql, values), ("COMMIT", ()))
        self.ended = True
        return rows

    async def batch(self, *statements: Statement) -> list[list[Row]]:
        """Run what is queued, then these in one way to the thread; the rows of each of these."""
        every, self._queued = [*self._queued, *statements], []
        if not every:
            return []
        connection = self._connection
        # aiosqlite has no public way for more than one statement with values.
        rows = await connection._execute(_run_each, connection._conn, every)  # type: ignore[no-untyped-call]
        return rows[len(every) - len(statements) :]  # type: ignore[no-any-return]


def _run_each(connection: sqlite3.Connection, statements: Sequence[Statement]) -> list[list[Row]]:
    return [connection.execute(sql, values).fetchall() for sql, values in statements]


def _insert(table: str, values: dict[str, Any]) -> str:
    return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"


class Database:
    """`clock` gives the instant of every transaction."""

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

    async def execute(self, sql: str, *values: Any, durable: bool = True) -> list[Row]:
        """One statement that writes, as a transaction of its own; the rows it returns."""
        async with self.write(durable=durable) as tx:
            return await tx.commit_with(sql, *values)

    @asynccontextmanager
    async def write(self, *, durable: bool = True) -> AsyncIterator[Transaction]:
        """One transaction; it is rolled back when the block raises. What is not `durable` may be lost
        in a power cut: for what means nothing afterwards, or may be missing."""
        level = DURABLE if durable else VISIBLE
        async with self._writing:
            with as_store_errors(self.path):
                try:
                    tx = Transaction(self._writer, self.clock(), level, "BEGIN IMMEDIATE")
                    yield tx
                    if not tx.ended:
                        await tx.batch(("COMMIT", ()))
                except BaseException as error:
                    # Queued behind whatever the cancelled wait left with the thread.
                    await complete(self._writer.rollback())
                    if isinstance(error, sqlite3.IntegrityError) and not await self._sound():
                        raise damaged(self.path) from error
                    raise

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Transaction]:
        """A reader of the last committed state; sees each statement's own snapshot."""
        async with self._reading:
            with as_store_errors(self.path):
                reader = (
                    self._idle_readers.pop() if self._idle_readers else await self._open_reader()
                )
                try:
                    yield Transaction(reader, self.clock())
                finally:
                    self._idle_readers.append(reader)

    @asynccontextmanager
    async def without_transaction(self) -> AsyncIterator[Transaction]:
        """The writer outside a transaction, for VACUUM and its like."""
        async with self._writing:
            with as_store_errors(self.path):
                tx = Transaction(self._writer, self.clock(), DURABLE)
                yield tx
                await tx.batch()

    async def _sound(self) -> bool:
        """Whether the file is whole; where it is not, rows that are there are not found.

        What a row holds against its table's rules is damage of that row alone.
        """
        found = await self._writer.execute_fetchall(f"PRAGMA quick_check({MOST_FOUND})")
        return all(OF_A_ROW.fullmatch(text) for (text,) in found)

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
            await _prepare(writer)
            try:
                await _migrate(writer, path)
                await writer.execute_fetchall(_SCHEMA_CHECK)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                    raise
                raise damaged(path) from error  # its tables are not those of its version
            yield Database(path, writer, stack, clock)


@asynccontextmanager
async def open_read_only(path: Path, clock: Clock = time.time) -> AsyncIterator[Database]:
    """The file beside whoever writes it, by one connection that cannot write: a write raises StoreError.

    Raises StoreError where there is none, or one of another version.
    """
    if not path.exists():
        raise StoreError(f"There is no state in {path.parent} yet: the bot makes it.")
    with as_store_errors(path):
        async with AsyncExitStack() as stack:
            reader = await _connect(stack, f"{path.absolute().as_uri()}?mode=ro")
            version, known = await _version(reader), len(migrations())
            if version != known:
                newer = version > known
                raise StoreError(
                    f"{path} was written by {'a newer' if newer else 'an older'} version of Voltaire: "
                    + (
                        "update this one."
                        if newer
                        else "start the bot, which brings it up to date."
                    )
                )
            database = Database(path, reader, stack, clock)
            database._idle_readers.append(reader)
            database._reading = asyncio.Semaphore(1)
            yield database


_SCHEMA_CHECK = """
SELECT 0 FROM chats, conversations, inbox, turns, transcript, notes, jobs, occurrences, outbox, facts,
    set_aside, taints, ledger, addresses LIMIT 0
"""


def storable(text: str) -> str:
    """Lone surrogates, which no file can hold, become "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


async def _connect(stack: AsyncExitStack, path: Path | str) -> aiosqlite.Connection:
    """`path` may be a URI of SQLite, as text."""
    connection = aiosqlite.connect(
        path, isolation_level=None, timeout=BUSY_SECONDS, uri=isinstance(path, str)
    )
    await stack.enter_async_context(connection)
    # Bytes that are no UTF-8 must not make the rows beside them unreadable.
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


async def _prepare(writer: aiosqlite.Connection) -> None:
    """Set what holds for a connection; a new file becomes WAL once, for good.

    While another process makes it so, SQLite says busy at once, without the wait that
    statements have.
    """
    end = time.monotonic() + BUSY_SECONDS
    left = list(_PRAGMAS)
    while left:
        try:
            await writer.execute_fetchall(left[0])
            del left[0]
        except sqlite3.OperationalError as error:
            if time.monotonic() > end or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            await asyncio.sleep(0.01)


def _create(path: Path) -> None:
    """A file that is there is not opened: closing it would drop this process's locks on it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {error.strerror}.") from None


def migrations() -> list[str]:
    """The SQL of each schema version, the first brings version 1."""
    folder = files("agent.store").joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [folder.joinpath(name).read_text("utf-8") for name in names]


async def _migrate(writer: aiosqlite.Connection, path: Path) -> None:
    steps = migrations()
    if await _version(writer) == len(steps):
        return
    await writer.execute("BEGIN IMMEDIATE")
    try:
        version = await _version(writer)  # another process may have been quicker
        if version > NEWEST:
            raise damaged(path)
        if version > len(steps):
            raise StoreNewer(f"{path} was written by a newer version of Voltaire: update this one.")
        for step in steps[version:]:
            for statement in statements(step):
                await writer.execute(statement)
        await writer.execute(f"PRAGMA user_version = {len(steps)}")
        await writer.commit()
    except BaseException:
        await writer.rollback()
        raise


async def _version(writer: aiosqlite.Connection) -> int:
    rows = list(await writer.execute_fetchall("PRAGMA user_version"))
    return int(rows[0][0])


def statements(script: str) -> list[str]:
    """A script cut into its statements, triggers whole."""
    found, rest = [], ""
    for line in script.splitlines(keepends=True):
        rest += line
        if sqlite3.complete_statement(rest):
            found.append(rest.strip())
            rest = ""
    return found
