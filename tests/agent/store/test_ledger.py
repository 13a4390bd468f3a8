"""The ledger: what is written, and that whatever is done to it shows."""

import asyncio
import json
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent.store import Store, open_store
from agent.store.ledger import CONNECTIONS, SLACK, LedgerRow, chained, tell_head
from agent.store.retention import DAY, Retention, prune
from fakes.patience import soon
from fakes.stored import grant
from fakes.words import saying
from tests.agent.store.conftest import Clock

ROWS = 6


@pytest.fixture
async def full(store: Store) -> AsyncIterator[Store]:
    for number in range(1, ROWS + 1):
        await store.ledger.record("admin", "tg:1", act=f"act {number}", by="Zoë \u202e")
    yield store


def tampered(store: Store, *statements: str) -> None:
    with closing(sqlite3.connect(store.database.path)) as other:
        for sql in statements:
            other.execute(sql)
        other.commit()


SWAP = (
    "UPDATE ledger SET number = -1 WHERE number = 2",
    "UPDATE ledger SET number = 2 WHERE number = 5",
    "UPDATE ledger SET number = 5 WHERE number = -1",
)
COPY = "INSERT INTO ledger SELECT 7, at, kind, chat, facts, hash FROM ledger WHERE number = 6"
TAMPERING = {
    "facts changed": ("UPDATE ledger SET facts = '{}' WHERE number = 3",),
    "time changed": ("UPDATE ledger SET at = at + 0.001 WHERE number = 3",),
    "chat changed": ("UPDATE ledger SET chat = 'tg:2' WHERE number = 1",),
    "kind changed": ("UPDATE ledger SET kind = 'grant' WHERE number = 6",),
    "hash changed": ("UPDATE ledger SET hash = 'x' WHERE number = 4",),
    "first deleted": ("DELETE FROM ledger WHERE number = 1",),
    "middle deleted": ("DELETE FROM ledger WHERE number = 3",),
    "middle deleted and renumbered": (
        "DELETE FROM ledger WHERE number = 3",
        "UPDATE ledger SET number = -number WHERE number > 3",
        "UPDATE ledger SET number = -number - 1 WHERE number < 0",
    ),
    "inserted at the end": (COPY,),
    "inserted before the first": ("UPDATE ledger SET number = 0 WHERE number = 6",),
    "two swapped": SWAP,
    "two neighbours swapped": (
        "UPDATE ledger SET number = -1 WHERE number = 2",
        "UPDATE ledger SET number = 2 WHERE number = 3",
        "UPDATE ledger SET number = 3 WHERE number = -1",
    ),
    "reversed": (
        "UPDATE ledger SET number = -number",
        f"UPDATE ledger SET number = {ROWS + 1} + number",
    ),
    "a removal made up": (
        """INSERT INTO ledger VALUES (7, 0, 'removed', '', '{"upto": 2, "hash": "x"}', 'x')""",
        "DELETE FROM ledger WHERE number <= 2",
    ),
}


@pytest.mark.parametrize("statements", TAMPERING.values(), ids=TAMPERING)
async def test_tampering_shows(full: Store, statements: tuple[str, ...]) -> None:
    assert not (whole := await full.ledger.verify()).problem
    assert (whole.rows, whole.head.partition(":")[0]) == (ROWS, str(ROWS))
    tampered(full, *statements)
    assert (await full.ledger.verify()).problem


def rewritten(store: Store, change: Callable[[LedgerRow], LedgerRow | None]) -> None:
    """What somebody does who knows the program: rows changed or left out, all hashes made anew."""
    with closing(sqlite3.connect(store.database.path)) as other:
        rows = [LedgerRow(*row) for row in other.execute("SELECT * FROM ledger ORDER BY number")]
        kept = [new for row in rows if (new := change(row))]
        other.execute("DELETE FROM ledger")
        before = ""
        for number, row in enumerate(kept, 1):
            new = LedgerRow(number, row.at, row.kind, row.chat, row.facts, "")
            before = chained(before, new)
            other.execute(
                "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)",
                (number, row.at, row.kind, row.chat, row.facts, before),
            )
        other.commit()


def left_out(numbers: set[int]) -> Callable[[LedgerRow], LedgerRow | None]:
    return lambda row: None if row.number in numbers else row


@pytest.mark.parametrize("gone", [{6}, {5, 6}, {3}, {1}], ids=["last", "two", "middle", "first"])
async def test_what_the_chain_cannot_show_a_head_does(full: Store, gone: set[int]) -> None:
    head = (await full.ledger.verify()).head
    rewritten(full, left_out(gone))
    assert not (await full.ledger.verify()).problem
    assert (await full.ledger.verify(head)).problem
    for _ in gone:  # new rows take the place of those that are gone
        await full.ledger.record("admin", act="cover")
    assert not (await full.ledger.verify()).problem
    assert (await full.ledger.verify(head)).problem


async def test_a_head_holds_while_rows_are_added(full: Store) -> None:
    head = (await full.ledger.verify()).head
    await full.ledger.record("admin", act="later")
    assert not (await full.ledger.verify(f" {head.upper()} ")).problem
    assert (await full.ledger.verify("nonsense")).problem
    assert (await full.ledger.verify(f"9{head}")).problem


async def test_a_row_with_a_hash_of_its_own_does_not_lead_to_the_next(full: Store) -> None:
    rows = await full.ledger.rows()
    forged = replace(rows[2], facts="{}")
    new = chained(rows[1].hash, forged)
    tampered(full, f"UPDATE ledger SET facts = '{{}}', hash = '{new}' WHERE number = 3")
    assert (await full.ledger.verify()).problem == saying("row 4 ", "not what was written")


@pytest.mark.parametrize("table", ["grants", "ledger"])
async def test_an_act_and_its_row_are_there_or_neither(store: Store, table: str) -> None:
    trigger = f"CREATE TRIGGER no BEFORE INSERT ON {table} BEGIN SELECT raise(ABORT, 'no'); END"
    await store.database.execute(trigger)
    with pytest.raises(sqlite3.IntegrityError):
        await grant(store, "tg:1", "commit:web", "ann")
    assert (await store.ledger.verify()).rows == 0
    assert await store.approvals.grants("tg:1") == []


async def test_old_rows_go_and_the_rest_is_still_verified(store: Store, clock: Clock) -> None:
    for _ in range(3):
        await store.ledger.record("admin", act="old")
    old = (await store.ledger.verify()).head
    clock.pass_(20 * DAY)
    await store.ledger.record("admin", act="young")
    young = (await store.ledger.verify()).head
    kept = Retention(ledger=10)
    assert await prune(store, kept) == 0  # a month's worth is not there yet
    clock.pass_(SLACK - 8 * DAY)
    await store.ledger.record("admin", act="new")
    assert sum([await prune(store, kept) for _ in range(40)]) == 4  # each a day further
    rows = await store.ledger.rows()
    assert [(row.number, row.kind) for row in rows] == [(5, "admin"), (6, "removed")]
    assert not (await store.ledger.verify()).problem
    assert "removed by age" in (await store.ledger.verify(old)).problem
    assert "removed by age" in (await store.ledger.verify(young)).problem
    tampered(store, "DELETE FROM ledger WHERE number = 5")
    assert (await store.ledger.verify()).problem


async def test_a_ledger_that_is_wholly_old_keeps_what_says_so(store: Store, clock: Clock) -> None:
    await store.ledger.record("admin", act="old")
    clock.pass_(500 * DAY)
    assert await prune(store, Retention()) == 1
    assert not (found := await store.ledger.verify()).problem
    assert found.rows == 1


async def test_a_chats_connections_are_bounded_each_day(store: Store, clock: Clock) -> None:
    for number in range(CONNECTIONS + 20):
        await store.ledger.connection("tg:1", f"h{number}:443")
    await store.ledger.connection("tg:2", "other:443", "no")
    hosts = [json.loads(row.facts)["host"] for row in await store.ledger.rows(chat="tg:1")]
    assert hosts == [*(f"h{number}:443" for number in range(CONNECTIONS)), "(more than are listed)"]
    [row] = await store.ledger.rows(chat="tg:2")
    assert json.loads(row.facts) == {"host": "other:443", "refused": "no"}
    clock.pass_(DAY + 1)
    await store.ledger.connection("tg:1", "again:443")
    assert len(await store.ledger.rows(clock.now - 1, "tg:1")) == 1


async def test_a_secret_is_recorded_once_a_day_for_each_place(store: Store, clock: Clock) -> None:
    for place in ("a", "a", "b"):
        await store.ledger.secret_used("key", place)
    clock.pass_(DAY + 1)
    await store.ledger.secret_used("key", "a")
    assert [json.loads(row.facts)["to"] for row in await store.ledger.rows()] == ["a", "b", "a"]


async def test_the_head_is_told_once_a_day_and_only_when_something_happened(
    full: Store, clock: Clock
) -> None:
    day = clock.now - 100

    async def told(before: float) -> bool:
        return await tell_head(full.ledger, ["tg:1", "tg:9"], lambda f: json.dumps(f.head), before)

    assert not await told(day)  # all of it is today's
    clock.pass_(DAY)
    day += DAY
    assert await told(day)
    assert not await told(day)
    clock.pass_(DAY)
    assert not await told(day + DAY)
    sent = await full.database.all("SELECT chat, payload, silent FROM outbox")
    head = (await full.ledger.verify()).head
    assert sent == [("tg:1", json.dumps(head), 1), ("tg:9", json.dumps(head), 1)]


async def test_what_was_told_and_is_gone_is_told(full: Store, clock: Clock) -> None:
    clock.pass_(DAY)
    problems: list[str] = []

    async def tell() -> bool:
        def payload(found: object) -> str:
            problems.append(getattr(found, "problem"))  # noqa: B009
            return "{}"

        return await tell_head(full.ledger, ["tg:1"], payload, clock.now)

    assert await tell()
    tampered(full, "DELETE FROM ledger WHERE number > 4")
    assert (await full.ledger.verify()).problem  # against the head that was told
    assert await tell()
    assert problems[0] == ""
    assert "ends at row 4" in problems[1]


async def test_what_is_wrong_is_told_once_a_day(full: Store, clock: Clock) -> None:
    """It stays wrong, and rows that come after it are never verified."""
    told = 0
    tampered(full, "UPDATE ledger SET facts = '{}' WHERE number = 3")
    for day in (1, 2):
        clock.pass_(DAY)
        for _ in range(3):
            await full.ledger.record("admin", act=f"day {day}")
            told += await tell_head(
                full.ledger, ["tg:1"], lambda f: json.dumps(f.problem), clock.now
            )
    assert told == 2
    sent = await full.database.all("SELECT payload FROM outbox")
    assert sent == [(saying("row 3 ", "not what was written"),)] * 2


WRITER = """
import asyncio, sys
from pathlib import Path
from agent.store import open_store
from fakes.stored import grant

async def main():
    async with open_store(Path(sys.argv[1])) as store:
        number = 0
        while True:
            number += 1
            await grant(store, "tg:1", f"commit:{number}", "ann")

asyncio.run(main())
"""


async def test_a_kill_leaves_each_act_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "voltaire.db"
    for _ in range(3):
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(path))

        def written() -> bool:
            with closing(sqlite3.connect(path)) as other:
                try:
                    return bool(other.execute("SELECT count(*) > 20 FROM ledger").fetchone()[0])
                except sqlite3.Error:
                    return False

        await soon(written)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        async with open_store(path) as store:
            assert not (await store.ledger.verify()).problem
            given = await store.approvals.grants("tg:1")
            rows = await store.ledger.rows()
            assert len(given) == len({json.loads(row.facts)["scope"] for row in rows})
            await store.ledger.record("admin", act="goes on")
            await store.database.execute("DELETE FROM grants")
            await store.database.execute("DELETE FROM ledger")
