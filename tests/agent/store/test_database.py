import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from agent.store import Incoming, Store, backup, open_store
from agent.store.database import migrations, open_database, open_read_only
from agent.store.errors import StoreBusy, StoreDamaged, StoreError, StoreFull
from fakes.patience import SECONDS

WRITER = """
import asyncio, sys
from pathlib import Path
from agent.store import Incoming, open_store

async def main():
    async with open_store(Path(sys.argv[1])) as store:
        for number in range(100_000):
            await store.inbox.add(Incoming("cli", sys.argv[2], str(number), f"message {number}"))
            print(number, flush=True)

asyncio.run(main())
"""

STARTER = """
import asyncio, sqlite3, sys
from contextlib import closing, suppress
from pathlib import Path
from agent.store import open_store
from agent.store.errors import StoreFull

async def main():
    path = Path(sys.argv[1])
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
    with suppress(OSError), path.with_name("ballast").open("wb", buffering=0) as ballast:
        while ballast.write(bytes(4096)):
            pass
    try:
        async with open_store(path):
            pass
    except StoreFull as error:
        print(error)

asyncio.run(main())
"""


async def test_a_cancelled_opening_leaves_no_thread_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    began, gate = threading.Event(), threading.Event()

    def slow(*words: Any, **more: Any) -> sqlite3.Connection:
        began.set()
        gate.wait(SECONDS)
        return connect(*words, **more)

    monkeypatch.setattr(sqlite3, "connect", slow)
    stack = AsyncExitStack()
    opening = asyncio.create_task(stack.enter_async_context(open_database(tmp_path / "v.db")))
    await asyncio.to_thread(began.wait, SECONDS)
    opening.cancel()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not opening.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await opening


async def words(store: Store, source: str = "s") -> list[str]:
    return [
        row.incoming.text
        for row in await store.inbox.waiting("cli")
        if row.incoming.source == source
    ]


async def test_a_new_file_has_the_newest_schema_and_is_its_owners_alone(store: Store) -> None:
    path = store.database.path
    async with store.database.read() as tx:
        version = await tx.value("PRAGMA user_version")
        mode = await tx.value("PRAGMA journal_mode")
    assert (version, mode) == (len(migrations()), "wal")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert all(p.stat().st_mode & 0o077 == 0 for p in path.parent.iterdir())


async def test_a_commit_is_on_the_disk_and_foreign_keys_hold(store: Store) -> None:
    async with store.database.write() as tx:
        assert await tx.value("PRAGMA synchronous") == 2
        assert await tx.value("PRAGMA foreign_keys") == 1


async def test_only_what_may_be_lost_in_a_power_cut_does_not_wait_for_the_disk(
    store: Store,
) -> None:
    async with store.database.write(durable=False) as tx:
        assert await tx.value("PRAGMA synchronous") == 1
    with pytest.raises(RuntimeError):
        async with store.database.write(durable=False) as tx:
            await tx.run("INSERT INTO facts VALUES ('a', '1')")
            raise RuntimeError
    async with store.database.write() as tx:
        assert await tx.value("PRAGMA synchronous") == 2
    async with store.database.write(durable=False), store.database.read():
        pass
    async with store.database.without_transaction() as tx:
        assert await tx.value("PRAGMA synchronous") == 2


async def test_what_raises_is_rolled_back(store: Store) -> None:
    with pytest.raises(RuntimeError):
        async with store.database.write() as tx:
            await tx.run("INSERT INTO facts VALUES ('a', '1')")
            raise RuntimeError
    assert await store.key_values.get("a", int) is None
    await store.key_values.put("a", 2)
    assert await store.key_values.get("a", int) == 2


async def test_what_is_only_run_holds_nobody_up_before_the_commit(store: Store) -> None:
    async with store.database.write() as tx:
        await tx.run("INSERT INTO facts VALUES ('a', '1')")
        await tx.many("INSERT INTO facts VALUES (?, ?)", [("b", "2"), ("c", "3")])
        with closing(sqlite3.connect(store.database.path, timeout=0)) as other, other:
            other.execute("INSERT INTO facts VALUES ('d', '4')")
    async with store.database.read() as tx:
        found = await tx.all("SELECT key, value FROM facts ORDER BY key")
    assert found == [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]


async def test_the_last_statement_gives_its_rows_and_is_committed_with_them(store: Store) -> None:
    async with store.database.write() as tx:
        await tx.run("INSERT INTO facts VALUES ('a', '1')")
        assert await tx.commit_with("INSERT INTO facts VALUES ('b', '2') RETURNING key") == [("b",)]
        async with store.database.read() as other:
            keys = ("SELECT key FROM facts ORDER BY key", ())
            assert await other.batch(keys, ("SELECT 1", ())) == [[("a",), ("b",)], [(1,)]]


async def test_a_last_statement_that_fails_takes_all_with_it(store: Store) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        async with store.database.write() as tx:
            await tx.run("INSERT INTO facts VALUES ('a', '1')")
            await tx.commit_with("INSERT INTO facts VALUES ('a', '2') RETURNING key")
    assert await store.key_values.get("a", int) is None
    await store.key_values.put("b", 1)


async def test_a_cancelled_writer_leaves_nothing_behind_and_nobody_locked(store: Store) -> None:
    begun = asyncio.Event()

    async def write() -> None:
        async with store.database.write() as tx:
            await tx.run("INSERT INTO facts VALUES ('a', '1')")
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(write())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await store.key_values.get("a", int) is None
    await store.key_values.put("b", 1)


async def test_cancelled_anywhere_a_write_is_whole_or_not_there(store: Store) -> None:
    for turns in range(12):
        task = asyncio.create_task(store.inbox.add(Incoming("cli", "s", str(turns), str(turns))))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    await store.inbox.add(Incoming("cli", "s", "last", "last"))
    assert (await words(store))[-1] == "last"
    async with store.database.write() as tx:
        assert await tx.value("PRAGMA integrity_check") == "ok"


async def test_a_file_of_a_newer_version_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "v.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 999")
    with pytest.raises(StoreError, match="newer version of Voltaire"):
        async with open_database(path):
            pass
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (999,)


async def test_a_file_of_an_earlier_version_is_brought_up_to_date_with_all_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.db"
    async with open_store(path) as store:
        await store.inbox.add(Incoming("cli", "s", "1", "from then"))
    added = "CREATE TABLE later (x ANY) STRICT;\nCREATE INDEX later_x ON later (x);\n"
    later = [*migrations(), added]
    monkeypatch.setattr("agent.store.database.migrations", lambda: later)
    async with open_store(path) as store:
        assert await words(store) == ["from then"]
        assert await store.database.value("PRAGMA user_version") == len(later)
        assert await store.database.all("SELECT x FROM later") == []


@pytest.mark.parametrize("at", [0, 100])
async def test_a_damaged_file_is_told_and_left_as_it_is(tmp_path: Path, at: int) -> None:
    path = tmp_path / "v.db"
    async with open_store(path) as store:
        await store.inbox.add(Incoming("cli", "s", "1", "words"))
    damage(path, at)
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match="is damaged and was left as it is; restore a backup"):
        async with open_store(path):
            pass
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("at", "byte"), [(47, 9), (47, 255), (60, 255), (63, 0), (18, 77), (16, 3), (100, 99)]
)
async def test_one_wrong_byte_of_a_head_is_told(tmp_path: Path, at: int, byte: int) -> None:
    """Format, version of the schema, version to write, size of a page, kind of the first page."""
    path = tmp_path / "v.db"
    async with open_store(path):
        pass
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([byte]))
    with pytest.raises(StoreError, match=f"{path} "):
        async with open_store(path) as store:
            await store.inbox.add(Incoming("cli", "s", "1", "words"))


async def test_text_that_is_none_is_told(tmp_path: Path) -> None:
    path = tmp_path / "v.db"
    async with open_store(path) as store:
        await store.inbox.add(Incoming("cli", "s", "1", "words"))
        await store.database.execute("UPDATE inbox SET words = CAST(x'77fe' AS TEXT)")
        with pytest.raises(StoreDamaged, match="is damaged and was left as it is"):
            await words(store)


async def test_a_damage_inside_never_reaches_the_last_good_copy(tmp_path: Path) -> None:
    path = tmp_path / "v.db"
    async with open_store(path) as store:
        for number in range(300):
            await store.inbox.add(Incoming("cli", "s", str(number), "words " * 20))
        good = await backup.snapshot(store)
        assert good == tmp_path / "v.last-good"
        kept = good.read_bytes()
    damage(path, path.read_bytes().index(b"words words") // 4096 * 4096)
    async with open_store(path) as store:
        with pytest.raises(StoreError, match="is damaged"):
            await backup.snapshot(store)
        with pytest.raises(StoreDamaged, match="the last good copy is .*v.last-good"):
            await words(store)
    assert good.read_bytes() == kept
    good.rename(tmp_path / "restored.db")
    async with open_store(tmp_path / "restored.db") as store:
        assert len(await words(store)) == 300


def damage(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xa5" * 4096)


async def test_a_row_against_the_rules_of_its_table_is_found(store: Store) -> None:
    assert not await store.database.damage()
    await store.chats.open("cli")
    with closing(sqlite3.connect(store.database.path)) as database, database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute("UPDATE chats SET settings = '['")
    assert await store.database.damage()


async def test_something_else_than_a_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "v.db"
    path.write_text("these are my holiday notes\n" * 100)
    with pytest.raises(StoreDamaged, match="v.db is damaged and was left as it is"):
        async with open_store(path):
            pass
    assert path.read_text().startswith("these are my holiday notes")


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"):
        async with open_store(tmp_path / "file" / "v.db"):
            pass


async def test_a_locked_file_is_told_and_takes_the_next_write(store: Store) -> None:
    await store.database.execute("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(store.database.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match=r"Another process keeps .* locked\."):
            await store.inbox.add(Incoming("cli", "s", "1", "hello"))
        other.execute("ROLLBACK")
    await store.inbox.add(Incoming("cli", "s", "1", "hello"))
    assert len(await store.inbox.waiting("cli")) == 1


async def test_reading_where_nothing_was_written_makes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state" / "voltaire.db"
    with pytest.raises(StoreError, match="There is no state in"):
        async with open_read_only(path):
            pass
    assert not path.parent.exists()


async def test_a_full_disk_is_told_and_what_was_there_survives(store: Store) -> None:
    await store.inbox.add(Incoming("cli", "s", "0", "before"))
    async with store.database.without_transaction() as tx:
        pages = await tx.value("PRAGMA page_count")
        await tx.run(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFull, match="is full: nothing can be saved until there is room"):
        for number in range(1, 1000):
            await store.inbox.add(Incoming("cli", "s", str(number), "x" * 2000))
    kept = await words(store)
    assert kept[0] == "before"
    async with store.database.without_transaction() as tx:
        await tx.run("PRAGMA max_page_count = 100000")
    await store.inbox.add(Incoming("cli", "s", "after", "after"))
    assert await words(store) == [*kept, "after"]


def test_no_room_to_start_is_told_as_that(tmp_path: Path) -> None:
    small = ["bwrap", "--dev-bind", "/", "/", "--size", "262144", "--tmpfs", str(tmp_path)]
    starter = [*small, sys.executable, "-c", STARTER, str(tmp_path / "v.db")]
    done = subprocess.run(starter, capture_output=True, text=True)
    wanted = "is full: nothing can be saved until there is room.\n"
    assert (done.stdout, done.stderr) == (f"The disk that holds {tmp_path / 'v.db'} {wanted}", "")


async def test_a_log_cut_off_anywhere_gives_the_last_good_state(tmp_path: Path) -> None:
    async with open_store(tmp_path / "v.db") as store:
        async with store.database.without_transaction() as tx:
            await tx.run("PRAGMA wal_checkpoint(TRUNCATE)")
            await tx.run("PRAGMA wal_autocheckpoint = 0")
        for number in range(20):
            await store.inbox.add(Incoming("cli", "s", str(number), f"message {number}"))
        whole, log = (tmp_path / "v.db").read_bytes(), (tmp_path / "v.db-wal").read_bytes()
    counts = []
    for cut in range(0, len(log), len(log) // 40):
        path = tmp_path / f"cut{cut}.db"
        path.write_bytes(whole)
        Path(f"{path}-wal").write_bytes(log[:cut])
        async with open_store(path) as store:
            found = await words(store)
        assert found == [f"message {number}" for number in range(len(found))]
        counts.append(len(found))
    assert counts == sorted(counts)
    assert counts[0] == 0 < counts[-1]


async def test_killed_while_writing_no_acknowledged_row_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "v.db"
    for life in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), f"life{life}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout
        with writer.stdout:
            told = [writer.stdout.readline() for _ in range(20 + life)]
            os.kill(writer.pid, signal.SIGKILL)
            told += writer.stdout.readlines()
            writer.wait(10)
        acknowledged = len([line for line in told if line.endswith("\n")])
        async with open_store(path) as store:
            found = await words(store, f"life{life}")
        assert found == [f"message {number}" for number in range(len(found))]
        assert acknowledged <= len(found) <= acknowledged + 1
