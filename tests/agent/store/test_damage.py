"""A database file with damaged pages works, or is told to be damaged, with what to do."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.events import TokenUsage
from agent.messages import Assistant, User
from agent.schedule.times.rule import Once, dump
from agent.store import Incoming, open_store
from agent.store.database import migrations
from agent.store.errors import StoreDamaged, StoreNewer
from agent.store.errors import damaged as as_damaged
from agent.store.jobs import JobSpec
from agent.store.turns import RenderedMessage, TurnEnd

CHATS = 6
VERSION = 60  # where the file's header has the schema's version, four bytes


async def use(path: Path, chats: int = 1) -> None:
    """What a bot does with its database, after the check at its start."""
    async with open_store(path) as store:
        if await store.database.damage():
            raise as_damaged(path)
        for number in range(chats):
            chat, name = f"tg:{number}", str(random.random())
            await store.inbox.add(Incoming(chat, "tg", name, "hello " + "word " * 50))
            rows = await store.inbox.waiting(chat)
            if rows:
                message = RenderedMessage(name, User("words " * 100))
                turn = await store.turns.begin(name, rows, message)
                await store.turns.progress(turn)
                await store.turns.add(turn, Assistant("answer " * 200), own=False)
                end = TurnEnd(Assistant("done"), "done", "done", TokenUsage(), ['{"text":"x"}'])
                await store.turns.end(turn, end)
            await store.notes.add(chat, f"likes tea and cake {name}")
            timing = dump(Once(datetime.now(UTC)))
            await store.jobs.add(JobSpec(chat, "remind", "", timing, "UTC", "oven", {}, next_at=5))
            await store.outbox.add(chat, ['{"text":"hey"}'])
        await store.notes.all("tg:0")
        await store.jobs.of_chat("tg:0")
        await store.outbox.counts()
        await store.outbox.chats_waiting("tg:")
        if row := await store.outbox.claim("tg:0"):
            await store.outbox.delivered(row.id, ["1"])
        await store.chats.get("tg:0")
        await store.search.candidates("tg:0", "tea words")
        await store.transcript.current("tg:0")
        await store.set_aside.count()
        await store.taints.of_chat("tg:0")
        await store.turns.pending("tg:0")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("whole") / "v.db"


@pytest.fixture
async def content(whole: Path) -> bytes:
    if not whole.exists():
        await use(whole, CHATS)
        with sqlite3.connect(whole) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    return whole.read_bytes()


def damaged(content: bytes, chance: random.Random) -> tuple[int, bytes]:
    """A page, its head, or the file's head, changed or lost; where, and the rest. SQLite cannot tell that
    single letters of a text are others."""
    changed = bytearray(content)
    page = chance.randrange(len(content) // 4096) * 4096
    at = chance.choice((page + chance.randrange(12), chance.randrange(100)))
    kind: Callable[[], None] = chance.choice(
        [
            lambda: changed.__setitem__(at, changed[at] ^ chance.randrange(1, 256)),
            lambda: changed.__setitem__(slice(at, at + 32), chance.randbytes(32)),
            lambda: changed.__setitem__(slice(at, at + 64), bytes(64)),
            lambda: changed.__setitem__(slice(page, page + 4096), chance.randbytes(4096)),
            lambda: changed.__delitem__(slice(at, None)),
        ]
    )
    kind()
    return at, bytes(changed)


@pytest.mark.parametrize("count", [30, pytest.param(3000, marks=pytest.mark.slow)])
async def test_any_damage_is_told_as_that(tmp_path: Path, content: bytes, count: int) -> None:
    chance, told = random.Random(1), 0
    for number in range(count):
        path = tmp_path / str(number) / "v.db"
        path.parent.mkdir()
        at, changed = damaged(content, chance)
        path.write_bytes(changed)
        try:
            await use(path)
        except StoreDamaged:
            told += 1
        except StoreNewer:  # two bytes of the version that could be one
            assert VERSION - 32 <= at < VERSION + 4
        shutil.rmtree(path.parent)
    assert told > count / 4


Damage = Callable[[bytes, Path], bytes]


def overwritten(at: int, new: bytes) -> Damage:
    return lambda content, _path: content[:at] + new + content[at + len(new) :]


def lost_conversations(content: bytes, path: Path) -> bytes:
    """What their page says of the places of its rows is noise: what refers to one finds none."""
    with sqlite3.connect(path) as connection:
        sql = "SELECT rootpage FROM sqlite_master WHERE name = 'conversations'"
        (page,) = connection.execute(sql).fetchone()
    connection.close()
    return overwritten((page - 1) * 4096 + 7, random.Random(4).randbytes(32))(content, path)


def other_search_format(content: bytes, _path: Path) -> bytes:
    """The search index has another version than SQLite knows."""
    return content.replace(b"version\x04", b"version\x00")


def other_column(content: bytes, _path: Path) -> bytes:
    """A letter of the schema is another."""
    return content.replace(b" own  ", b" owm  ")


CASES: dict[str, Damage] = {
    "the version for writing": overwritten(18, b"\x19"),
    "the schema's format": overwritten(44, b"\xff" * 4),
    "the search index's format": other_search_format,
    "the name of a column": other_column,
    "rows that others refer to": lost_conversations,
}


@pytest.mark.parametrize("name", CASES)
async def test_what_sqlite_calls_otherwise_is_damage(
    tmp_path: Path, whole: Path, content: bytes, name: str
) -> None:
    path = tmp_path / "v.db"
    changed = CASES[name](content, whole)
    assert changed != content
    path.write_bytes(changed)
    with pytest.raises(StoreDamaged, match="is damaged and was left as it is; restore a backup"):
        await use(path)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE jobs SET state = 'x'",
        "UPDATE jobs SET timing = '['",
        "UPDATE transcript SET extra = '{'",
    ],
)
async def test_a_row_against_the_rules_of_its_table_is_damage(tmp_path: Path, sql: str) -> None:
    await use(tmp_path / "v.db")
    with closing(sqlite3.connect(tmp_path / "v.db")) as database, database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute(sql)
    with pytest.raises(StoreDamaged):
        await use(tmp_path / "v.db")


async def test_text_that_is_no_text_is_damage(tmp_path: Path) -> None:
    await use(tmp_path / "v.db")
    with closing(sqlite3.connect(tmp_path / "v.db")) as database, database:
        database.execute("UPDATE outbox SET payload = CAST(x'22ff22' AS TEXT)")
    with pytest.raises(StoreDamaged):
        await use(tmp_path / "v.db")


@pytest.mark.parametrize("sql", ["CREATE TABLE chats (x)", "PRAGMA user_version = {now}"])
async def test_a_database_of_something_else_is_told_with_its_remedy(
    tmp_path: Path, sql: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "v.db")) as other, other:
        other.execute(sql.format(now=len(migrations())))
    with pytest.raises(StoreDamaged, match="voltaire restore FILE"):
        await use(tmp_path / "v.db")
