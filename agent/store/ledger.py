"""A tamper-evident log of what was asked, decided, allowed, reached, vouched for and administered.

Each row holds the SHA-256 of the hash before it and of its own canonical bytes, and is written in the
transaction of what it records. A row that was changed, removed, inserted or moved breaks the chain. Rows
cut off at the end, or rewritten from some row on, show by a head ("NUMBER:HASH") that is kept elsewhere:
one goes to the owners' chats every day. Rows are removed by age alone, and a later row holds the number
and hash of the last one removed. Of texts it holds the SHA-256 only.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from agent.store import chats, key_values, outbox
from agent.store.database import Database, Transaction, columns, storable

EntryKind = Literal[
    "question",  # to an owner: id, SHA-256 of what was shown, scope, what of strangers was the reason
    "decision",  # on a question (its id), or without one: the answer, by whom
    "message",  # of a terminal, which a turn answers: its SHA-256
    "grant",  # a standing permission: scope, by whom
    "grant-ended",
    "connection",  # host, and why if it was refused
    "secret",  # which was used, for which address; once a day each
    "withheld",  # a secret or key was kept from leaving: the turn, what was withheld
    "taint",  # strangers' text in a chat or its files: its source
    "taint-cleared",  # of what, by whom
    "leak",  # one chat could read another in the model server: what was found and done
    "admin",  # backup, restore, pairing, model, settings, freezing
    "removed",  # rows by age: the last one's number and hash
]
RecordUse = Callable[[], Awaitable[None]]
"""Awaited before a secret is used; raises StoreError when that cannot be recorded."""
CONNECTIONS = 500  # rows of a chat in 24 hours, then one that says there were more
CHARACTERS = 500  # of a fact
DAY = 86_400.0
SLACK = 30 * DAY  # rows are removed a month's worth at a time, since each removal adds a row
BATCH = 5_000  # rows verified at once
TOLD = "ledger_told"  # key of the head that was last sent to the owners


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A row of the ledger; `facts` is JSON with sorted keys; `at` in seconds since the epoch."""

    number: int
    at: float
    kind: str
    chat: str
    facts: str
    hash: str

    def follows(self, before: str) -> bool:
        """Whether its hash is right behind a row with the hash `before`."""
        return self.hash == chained(before, self)


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check of the ledger found: how many rows, the hash of the last, and what is wrong ("": nothing)."""

    rows: int
    head: str
    problem: str = ""


def without_password(address: str) -> str:
    """A URL without its user and password; any other text unchanged."""
    parts = urlsplit(address)
    if not parts.netloc:
        return address
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


async def unrecorded() -> None:
    """Record nothing: for an address without a password, which has no secret to use."""


class Broken(Exception):
    """The chain does not hold; `str` is a sentence."""


def chained(before: str, row: LedgerRow) -> str:
    """Hash a row together with the hash of the row before it ("" for the first row)."""
    own = json.dumps([before, row.number, row.at, row.kind, row.chat, row.facts])
    return hashlib.sha256(own.encode()).hexdigest()


def digest(text: str) -> str:
    """The hexadecimal SHA-256 of a text, as `sha256sum` prints it for a file of it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


async def record(tx: Transaction, kind: EntryKind, chat: str = "", /, **facts: str | float) -> None:
    """Append a row in the transaction of what it records."""
    last = await tx.one(_LAST)
    number, before = (last[0] + 1, last[5]) if last else (1, "")
    row = LedgerRow(number, float(tx.now), kind, storable(chat), canonical(facts), "")
    values = (row.number, row.at, row.kind, row.chat, row.facts, chained(before, row))
    await tx.run("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", *values)


def canonical(facts: dict[str, str | float]) -> str:
    bounded = {
        name: storable(value)[:CHARACTERS] if isinstance(value, str) else value
        for name, value in facts.items()
    }
    return json.dumps(bounded, ensure_ascii=False, sort_keys=True)


@dataclass(frozen=True)
class LedgerTable:
    database: Database

    async def record(self, kind: EntryKind, chat: str = "", /, **facts: str | float) -> None:
        """Append a row about something that writes nothing else to the database."""
        async with self.database.write() as tx:
            await record(tx, kind, chat, **facts)

    async def connection(self, chat: str, host: str, refused: str = "") -> None:
        """Record a connection to "name:port" before it is made, or after it was refused; CONNECTIONS rows a
        day for each chat, then one that says there were more."""
        facts = {"host": host, "refused": refused} if refused else {"host": host}
        async with self.database.write() as tx:
            today = "kind = 'connection' AND chat = ? AND at > ?"
            sql = f"SELECT count(*) FROM ledger WHERE {today}"
            count = await tx.value(sql, storable(chat), tx.now - DAY)
            if count < CONNECTIONS:
                await record(tx, "connection", chat, **facts)
            elif count == CONNECTIONS:
                await record(tx, "connection", chat, host="(more than are listed)")

    async def secret_used(self, name: str, where: str) -> None:
        """Record that a configured secret is sent to that address, once a day."""
        where = without_password(where)
        facts = canonical({"name": name, "to": where})
        sql = "SELECT 1 FROM ledger WHERE kind = 'secret' AND chat = '' AND at > ? AND facts = ?"
        if not await self.database.value(sql, self.database.clock() - DAY, facts):
            await self.record("secret", name=name, to=where)

    def use_of(self, name: str, url: str) -> RecordUse:
        """A function that records the use of the password in an address, which is the value of the setting `name`."""
        parts = urlsplit(url)
        if not (parts.username or parts.password):
            return unrecorded
        return partial(self.secret_used, name, url)

    async def rows(self, since: float = 0.0, chat: str | None = None) -> list[LedgerRow]:
        """Return the rows since an instant, of one chat if it is given, oldest first."""
        sql = f"{_SELECT} WHERE at >= ?1 AND (?2 IS NULL OR chat = ?2) ORDER BY number"
        return [LedgerRow(*row) for row in await self.database.all(sql, since, chat)]

    async def verify(self, head: str = "") -> Verification:
        """Check the whole chain, and that it contains `head` and the head last sent to the owners."""
        sought = dict(filter(None, map(parse_head, (await self.told(), head))))
        before, number, rows, problem = "", 0, 0, ""
        try:
            if head and not parse_head(head):
                raise Broken(f"{head} is no head: it looks like NUMBER:HASH.")
            async for row in self._all():
                if not rows and row.number > 1:
                    number, before = row.number - 1, await self._removed(row.number - 1)
                    if not before:
                        raise Broken(
                            f"Rows 1 to {number} are missing, and no row accounts for them."
                        )
                if row.number > number + 1:
                    raise Broken(f"Rows {number + 1} to {row.number - 1} are missing.")
                if row.number <= number or not row.follows(before):
                    raise Broken(f"Row {row.number} is not what was written there.")
                if sought.pop(row.number, row.hash) != row.hash:
                    raise Broken(
                        f"Row {row.number} is not the one of the head: it was written anew."
                    )
                rows, number, before = rows + 1, row.number, row.hash
            if beyond := [known for known in sought if known > number]:
                raise Broken(f"The ledger ends at row {number}, the head is of row {max(beyond)}.")
            if sought:
                raise Broken(
                    f"Row {min(sought)} was removed by age, so its head cannot be compared."
                )
        except Broken as error:
            problem = str(error)
        return Verification(rows, f"{number}:{before}" if rows else "", problem)

    async def withheld(self, turn: str) -> tuple[str, ...]:
        """What was withheld in a turn, oldest first."""
        sql = (
            "SELECT json_extract(facts, '$.what') FROM ledger WHERE kind = 'withheld'"
            " AND json_valid(facts) AND json_extract(facts, '$.turn') = ? ORDER BY number"
        )
        return tuple(str(row[0]) for row in await self.database.all(sql, turn))

    async def _all(self) -> AsyncIterator[LedgerRow]:
        sql = f"{_SELECT} WHERE number > ? ORDER BY number LIMIT {BATCH}"
        after = -(1 << 62)
        while batch := await self.database.all(sql, after):
            for row in batch:
                yield LedgerRow(*row)
            after = batch[-1][0]

    async def _removed(self, number: int) -> str:
        """The hash of the row with that number, if it was the last one removed by age; else empty."""
        sql = (
            "SELECT json_extract(facts, '$.hash') FROM ledger WHERE kind = 'removed'"
            " AND json_valid(facts) AND json_extract(facts, '$.upto') = ?"
        )
        return str(await self.database.value(sql, number) or "")

    async def told(self) -> str:
        """The head last sent to the owners; empty before the first."""
        sql = "SELECT json_extract(value, '$') FROM facts WHERE key = ? AND json_valid(value)"
        return str(await self.database.value(sql, TOLD) or "")

    async def prune(self, before: float) -> int:
        """Remove the rows older than that instant, once the oldest is a month older; how many. The row added
        about it lets the rest be verified."""
        async with self.database.write() as tx:
            first = await tx.one(f"{_SELECT} ORDER BY number LIMIT 1")
            if first is None or LedgerRow(*first).at >= before - SLACK:
                return 0
            sql = f"{_SELECT} WHERE number < coalesce((SELECT min(number) FROM ledger WHERE at >= ?), 1 << 53) ORDER BY number DESC LIMIT 1"
            last = LedgerRow(*(await tx.all(sql, before))[0])
            await record(tx, "removed", upto=last.number, hash=last.hash, reason="age")
            gone = await tx.all("DELETE FROM ledger WHERE number <= ? RETURNING 1", last.number)
        return len(gone)


def parse_head(head: str) -> tuple[int, str] | None:
    number, _, hash = head.strip().partition(":")
    return (int(number), hash.lower()) if number.isdecimal() and len(number) < 17 and hash else None


_SELECT = f"SELECT {columns(LedgerRow)} FROM ledger"
_LAST = f"{_SELECT} ORDER BY number DESC LIMIT 1"


# -- the head, told once a day ------------------------------------------------


BROKEN = "ledger_broken_told"  # key of the instant at which the owners were told of a fault in it


async def tell_head(
    ledger: LedgerTable,
    owners: Collection[str],
    payload: Callable[[Verification], str],
    before: float,
) -> bool:
    """Post the head to the owners' chats, silently, if the ledger has rows from before that instant (the start
    of the day) that are newer than the head told last, or ends before that head. Return whether it did.

    A fault is told once a day, since it stays.
    """
    told = parse_head(await ledger.told())
    since, db = told[0] if told else 0, ledger.database
    last = await db.value("SELECT max(number) FROM ledger") or 0
    new = await db.value("SELECT 1 FROM ledger WHERE number > ? AND at < ? LIMIT 1", since, before)
    if not owners or not (new or last < since):
        return False
    sql = (
        "SELECT at <= ?2 AND ?2 - at < ?3 FROM"
        " (SELECT json_extract(value, '$') AS at FROM facts WHERE key = ?1 AND json_valid(value))"
    )
    if await db.value(sql, BROKEN, db.clock(), DAY):
        return False
    found = await ledger.verify()
    async with db.write() as tx:
        if found.problem:
            await tx.run(key_values.PUT, BROKEN, json.dumps(tx.now))
        for chat in owners:
            await chats.ensure(tx, chat)
            await outbox.put(tx, chat, [payload(found)], silent=True)
        await tx.run(key_values.PUT, TOLD, json.dumps(found.head))
    return True
