"""One SQLite file: a writer connection, readers beside it. The only file that knows aiosqlite.

    async with open_database(path) as database:
        async with database.write() as tx:      # BEGIN IMMEDIATE ... COMMIT
            await tx.run("INSERT ...", value)
        async with database.read() as tx:
            rows = await tx.all("SELECT ...")

A caller cancelled inside `write` finds its transaction rolled back, or, when the
commit had begun, committed; never half of it.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiosqlite

from agent.store.errors import StoreError, told

BUSY_SECONDS = 10.0
READERS = 2
_PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # NORMAL may lose committed inbox rows in a power cut
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA temp_store = MEMORY",
)


Step = tuple[str, Sequence[Any]]


class Tx:
    """One connection inside a transaction (of a writer) or a read.

    What is only run goes to the database's thread together with the next statement
    that is waited for, or with the commit: a way there costs more than a statement.
    """

    def __init__(self, connection: aiosqlite.Connection, *first: str) -> None:
        self.ended = False
        self._connection = connection
        self._steps: list[Step] = [(sql, ()) for sql in first]

    async def run(self, sql: str, *values: Any) -> None:
        self._steps.append((sql, values))

    async def all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        [rows] = await self._go((sql, values))
        return rows

    async def each(self, *steps: Step) -> list[list[tuple[Any, ...]]]:
        """The rows of several statements, for one way to the thread."""
        return await self._go(*steps)

    async def last(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a transaction's last statement, which goes with the commit."""
        rows, _ = await self._go((sql, values), ("COMMIT", ()))
        self.ended = True
        return rows

    async def one(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        rows = await self.all(sql, *values)
        return rows[0] if rows else None

    async def value(self, sql: str, *values: Any) -> Any:
        """The first column of the first row; None without a row."""
        row = await self.one(sql, *values)
        return row[0] if row else None

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._steps.extend((sql, row) for row in rows)

    async def end(self, *last: str) -> None:
        """Run what has not been yet, and then `last`."""
        await self._go(*[(sql, ()) for sql in last])

    async def _go(self, *last: Step) -> list[list[tuple[Any, ...]]]:
        """Run what has not been yet, and then `last`; the rows of each of these."""
        steps, self._steps = [*self._steps, *last], []
        if not steps:
            return []
        connection = self._connection
        # aiosqlite has no public way for more than one statement with values.
        rows = await connection._execute(_each, connection._conn, steps)  # type: ignore[no-untyped-call]
        return rows[len(steps) - len(last) :]  # type: ignore[no-any-return]


def _each(connection: sqlite3.Connection, steps: Sequence[Step]) -> list[list[tuple[Any, ...]]]:
    """Run the steps in order; the rows of each."""
    return [connection.execute(sql, values).fetchall() for sql, values in steps]


class Database:
    def __init__(self, path: Path, writer: aiosqlite.Connection, stack: AsyncExitStack) -> None:
        self.path = path
        self._writer = writer
        self._writing = asyncio.Lock()
        self._stack = stack
        self._idle: list[aiosqlite.Connection] = []
        self._readers = asyncio.Semaphore(READERS)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Tx]:
        """One transaction; it is rolled back when the block raises."""
        async with self._writing:
            with told(self.path):
                try:
                    tx = Tx(self._writer, "BEGIN IMMEDIATE")
                    yield tx
                    if not tx.ended:
                        await tx.end("COMMIT")
                except BaseException:
                    # Queued behind whatever the cancelled wait left with the thread.
                    await asyncio.shield(asyncio.ensure_future(self._writer.rollback()))
                    raise

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Tx]:
        """A reader of the last committed state; sees each statement's own snapshot."""
        async with self._readers:
            with told(self.path):
                reader = self._idle.pop() if self._idle else await self._open_reader()
                try:
                    yield Tx(reader)
                finally:
                    self._idle.append(reader)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Tx]:
        """The writer outside a transaction, for VACUUM and its like."""
        async with self._writing:
            with told(self.path):
                tx = Tx(self._writer)
                yield tx
                await tx.end()

    async def _open_reader(self) -> aiosqlite.Connection:
        reader = await self._stack.enter_async_context(_connect(self.path))
        await reader.execute("PRAGMA query_only = ON")
        return reader


@asynccontextmanager
async def open_database(path: Path) -> AsyncIterator[Database]:
    """Open or create the file (0600) and bring its schema up to date; StoreError says what fails."""
    with told(path):
        _create(path)
        async with AsyncExitStack() as stack:
            writer = await stack.enter_async_context(_connect(path))
            await _prepare(writer)
            await _migrate(writer, path)
            yield Database(path, writer, stack)


def _connect(path: Path) -> aiosqlite.Connection:
    return aiosqlite.connect(path, isolation_level=None, timeout=BUSY_SECONDS)


async def _prepare(writer: aiosqlite.Connection) -> None:
    """Set what holds for a connection; a new file becomes WAL once, for good.

    While another process makes it so, SQLite says busy at once, without the wait that
    statements have.
    """
    end = time.monotonic() + BUSY_SECONDS
    for pragma in _PRAGMAS:
        while not await _set(writer, pragma, last=time.monotonic() > end):
            await asyncio.sleep(0.01)


async def _set(writer: aiosqlite.Connection, pragma: str, *, last: bool) -> bool:
    try:
        await writer.execute_fetchall(pragma)
    except sqlite3.OperationalError as error:
        if last or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


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
        if version > len(steps):
            raise StoreError(f"{path} was written by a newer version of Voltaire: update this one.")
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
