"""A row that cannot be read is set aside and told, once; what stands beside it is read as ever."""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.errors import AgentError
from agent.events import TokenUsage
from agent.messages import Assistant, ToolCall, ToolResult, User
from agent.model import Completion
from agent.plan import PlanStep
from agent.schedule.times.rule import Calendar, Once, dump
from agent.store import Incoming, Store, open_store
from agent.store.database import migrations
from agent.store.errors import StoreDamaged
from agent.store.jobs import JobSpec
from agent.store.overview import Overview, TurnFilter
from agent.store.retention import Retention, prune
from agent.store.set_aside import CRASHES
from agent.store.transcript import Compaction
from agent.store.turns import OpenTurn, RenderedMessage, TurnEnd
from agent.store.unreadable import UPDATES
from agent.store.usage import CacheReuse
from fakes.patience import SECONDS
from tests.agent.store.conftest import Clock

CHAT = "tg:1"
DAILY = Calendar((480,), "UTC")


async def fill(store: Store) -> OpenTurn:
    """Two of everything; the first of each is damaged by the tests."""
    for text in ("one", "two"):
        await store.inbox.add(Incoming(CHAT, "s", text, text, files=("a",)))
        await store.jobs.add(JobSpec(CHAT, "task", "", dump(DAILY), "UTC", text, {}, next_at=5))
        await store.outbox.add(CHAT, ['{"text": "x"}'])
        await store.key_values.put(text, 1)
    await store.inbox.add(Incoming(CHAT, "t", "1", "turn"))
    rows = await store.inbox.waiting(CHAT, ["t"])
    turn = await store.turns.begin("turn", rows, RenderedMessage("", User("old")))
    await store.turns.add(turn, Assistant("", (ToolCall("c1", "bash", "{}"),)))
    await store.turns.add(turn, ToolResult("c1", "bash", "done"))
    await store.turns.end(turn, TurnEnd(Assistant("bye"), "bye", "done", TokenUsage()))
    await store.inbox.add(Incoming(CHAT, "t", "2", "turn"))
    rows = await store.inbox.waiting(CHAT, ["t"])
    return await store.turns.begin("next", rows, RenderedMessage("", User("new")))


async def texts(store: Store) -> list[str]:
    return [row.incoming.text for row in await store.inbox.waiting(CHAT, ["s"])]


async def tasks(store: Store) -> list[str]:
    return [job.spec.task for job in await store.jobs.active()]


async def outgoing(store: Store) -> list[int]:
    row = await store.outbox.next(CHAT)
    return [row.id] if row else []


async def prompt(store: Store) -> list[str]:
    _, entries = await store.transcript.current(CHAT)
    return [entry.message.text for entry in entries]


async def values(store: Store) -> dict[str, int]:
    return await store.key_values.with_prefix("", int)


async def chat_settings(store: Store) -> object:
    chat = await store.chats.get(CHAT)
    return chat and chat.settings


# Columns that are counted on, or summed up.
COUNTS = (
    *(("conversations", "compacted"), ("turns", "resumed"), ("turns", "steps"), ("set_aside", "crashes")),
    *(("occurrences", "attempts"), ("outbox", "attempts"), ("documents", "attempts"), ("documents", "bytes")),
    *(("budgets", "used"), ("budgets", "allowed")),
    *(("usage", f"{name}_tokens") for name in ("prompt", "cached", "completion", "new")),
    *(("usage", "reread"), ("usage", "ttft_ms")),
)  # fmt: skip

# Tables whose numbers say which row came first, or are never used again.
NUMBERED = (
    *(("inbox", "id"), ("outbox", "id"), ("transcript", "id"), ("taints", "id")),
    *(("passages", "id"), ("document_folders", "number")),
)


Read = Callable[[Store], Awaitable[Any]]
DAMAGE: list[tuple[str, str, str, Read, Any]] = [
    ("inbox", "extra = '[1]'", "id = 1", texts, ["two"]),
    ("inbox", """extra = '{"files": 5}'""", "id = 1", texts, ["two"]),
    ("inbox", "extra = 'no JSON'", "id = 1", texts, ["two"]),
    ("jobs", """timing = '{"kind": "lunar"}'""", "id = 1", tasks, ["two"]),
    ("jobs", "timing = json_set(timing, '$.moon', 1)", "id = 1", tasks, ["two"]),
    ("jobs", "timing = json_set(timing, '$.times', json('[9999]'))", "id = 1", tasks, ["two"]),
    ("jobs", "timing = json_set(timing, '$.zone', 'Mars/Base')", "id = 1", tasks, ["two"]),
    ("jobs", "timing = '[]'", "id = 1", tasks, ["two"]),
    ("jobs", "timezone = 'Mars/Base'", "id = 1", tasks, ["two"]),
    ("jobs", "options = '3'", "id = 1", tasks, ["two"]),
    ("outbox", """message_ids = '{"a": 1}'""", "id = 1", outgoing, [2]),
    ("transcript", """extra = '{"calls": [1]}'""", "id = 2", prompt, ["new"]),
    ("transcript", "extra = '{}'", "id = 3", prompt, ["new"]),
    ("transcript", "short = '5'", "id = 1", prompt, ["new"]),
    ("facts", """value = '"text"'""", "key = 'one'", values, {"two": 1}),
    ("chats", "settings = '[]'", "key = 'tg:1'", chat_settings, {}),
]


@pytest.mark.parametrize(("table", "change", "which", "read", "left"), DAMAGE)
async def test_a_row_that_cannot_be_read_is_set_aside(
    store: Store, table: str, change: str, which: str, read: Read, left: object
) -> None:
    await fill(store)
    async with store.database.without_transaction() as tx:
        await tx.run("PRAGMA ignore_check_constraints = ON")
        await tx.run(f"UPDATE {table} SET {change} WHERE {which}")
    for _ in range(3):
        found = await read(store)
    assert found == left
    [row] = await store.set_aside.all()
    assert (row.table_name, row.chat) == (table, "" if table == "facts" else CHAT)
    assert row.error and json.loads(row.raw)


@pytest.mark.parametrize("plan", ["x", "[1]", '[["a", 5]]', "[" * 3000])
async def test_a_plan_that_cannot_be_read_is_taken_from_its_chat(store: Store, plan: str) -> None:
    await fill(store)
    await store.database.execute("UPDATE conversations SET plan = ?", plan)
    assert await store.plans.of_chat(CHAT) == await store.plans.of_turn("next") == ()
    assert (await store.turns.pending(CHAT, ["t"])).chat is not None
    for _ in range(3):
        chat = await store.chats.get(CHAT)
        assert chat and chat.plan == () and await store.chats.recent() == [chat]
    assert [row.table_name for row in await store.set_aside.all()] == ["chats"]
    await store.database.execute("UPDATE conversations SET plan = ?", plan)
    assert await store.plans.change(CHAT, lambda plan: (*plan, PlanStep("tea"))) == (
        PlanStep("tea"),
    )


async def test_what_is_set_aside_is_told_once_to_its_chat_and_once_a_day_to_the_owners(
    store: Store, clock: Clock
) -> None:
    async def told(*owners: str) -> list[list[object]]:
        await store.database.execute("DELETE FROM outbox")
        any = await store.set_aside.tell(
            owners or ["tg:9"], lambda *of: json.dumps(of), lambda counts: json.dumps(counts)
        )
        rows = await store.database.all("SELECT chat, payload FROM outbox ORDER BY id")
        assert any == bool(rows)
        return [[chat, json.loads(payload)] for chat, payload in rows]

    await fill(store)
    for key in (1, 2):
        await store.set_aside.add("inbox", key, ValueError("\udc80"))
    await store.set_aside.add(UPDATES, "s:1", ValueError(), "{}")
    assert await told() == [
        ["tg:1", ["tg:1", "inbox", 2]],
        ["tg:9", {"inbox": 2, "updates": 1}],
    ]
    assert await told() == []
    await store.set_aside.add("jobs", 1, ValueError())
    await store.set_aside.add(UPDATES, "s:1", ValueError(), "{}")  # delivered once more
    assert await told() == [["tg:1", ["tg:1", "jobs", 1]]]
    clock.now += 86_401
    assert await told() == [["tg:9", {"jobs": 1}]]
    await store.set_aside.add("jobs", 2, ValueError())
    clock.now += 86_401
    assert await told("tg:1") == [["tg:1", ["tg:1", "jobs", 1]]]  # its own chat has told the owner
    assert await store.set_aside.count() == 5


async def test_text_that_is_no_text_does_not_hide_what_stands_beside_it(store: Store) -> None:
    await fill(store)
    await store.database.execute("UPDATE inbox SET words = CAST(x'ff41' AS TEXT) WHERE id = 1")
    assert await texts(store) == ["\ufffdA", "two"]


async def test_the_third_crash_at_a_row_sets_it_aside(store: Store) -> None:
    await fill(store)
    crash = KeyError("x")
    assert [await store.set_aside.crashed("jobs", 1, crash) for _ in range(2)] == [False] * 2
    await store.set_aside.passed("jobs", 1)
    assert [await store.set_aside.crashed("jobs", 1, crash) for _ in range(3)] == [
        False,
        False,
        True,
    ]
    assert await tasks(store) == ["two"]
    [row] = await store.set_aside.all()
    assert (row.row_id, row.error) == ("1", "KeyError: 'x'")


def died_at(store: Store, *keys: int) -> None:
    """What a process leaves that ends while these messages are attempted."""
    for key in keys:
        file = store.set_aside.attempts / f"inbox-{key}"
        with file.open("x" if not file.exists() else "a") as again:
            again.write("." if again.mode == "a" else "")


async def attempted(store: Store, key: int) -> bool:
    async with store.set_aside.attempt("inbox", key) as allowed:
        return allowed


async def test_a_message_at_which_three_programs_ended_is_set_aside(store: Store) -> None:
    await fill(store)
    for _ in range(CRASHES - 1):
        died_at(store, 1)
    assert await attempted(store, 1)
    for _ in range(CRASHES):
        died_at(store, 1)
    assert not await attempted(store, 1)
    assert await texts(store) == ["two"]
    assert await attempted(store, 2)
    assert not list(store.set_aside.attempts.iterdir())


async def test_what_a_program_died_at_is_attempted_alone(store: Store) -> None:
    """So that what ran beside it is not counted when the next program ends."""
    died_at(store, 1, 2)
    first, second = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with store.set_aside.attempt("inbox", 1):
            first.set()
            await second.wait()

    async with asyncio.TaskGroup() as tasks, asyncio.timeout(SECONDS):
        tasks.create_task(hold())
        await first.wait()
        waiting = tasks.create_task(attempted(store, 2))
        async with store.set_aside.attempt("inbox", 3) as allowed:
            assert allowed
        sizes = {file.name: file.stat().st_size for file in store.set_aside.attempts.iterdir()}
        assert sizes == {"inbox-1": 1, "inbox-2": 0}
        second.set()
        assert await waiting


async def test_attempts_that_cannot_be_written_down_hold_nothing_up(store: Store) -> None:
    store.set_aside.attempts.rmdir()
    for _ in range(CRASHES + 1):
        assert await attempted(store, 1)


async def test_a_job_of_a_rule_that_is_past_is_read_as_ever(store: Store) -> None:
    past = dump(Once(datetime(2001, 1, 1, tzinfo=UTC)))
    job = await store.jobs.add(JobSpec(CHAT, "task", "", past, "UTC", "x", {}))
    assert await store.jobs.get(job.id) == job


# -- a damaged file -----------------------------------------------------------


async def everything(path: Path) -> None:
    """What a start and a turn read and write."""
    async with open_store(path) as store:
        await texts(store)
        await tasks(store)
        await outgoing(store)
        await prompt(store)
        await values(store)
        await chat_settings(store)
        await store.search.candidates(CHAT, "old new")
        await store.occurrences.settle()
        await store.inbox.add(Incoming(CHAT, "u", "1", "more"))
        await store.jobs.active_and_next()
        await store.outbox.counts()
        await store.set_aside.all()


@pytest.mark.parametrize("sql", ["CREATE TABLE chats (x)", "PRAGMA user_version = {now}"])
async def test_a_database_of_something_else_is_told_with_its_remedy(
    tmp_path: Path, sql: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db")) as other, other:
        other.execute(sql.format(now=len(migrations())))
    with pytest.raises(StoreDamaged, match="voltaire restore FILE"):
        await everything(tmp_path / "s.db")


@given(
    place=st.floats(0, 1),
    junk=st.one_of(st.binary(min_size=1, max_size=64), st.just(b"\0" * 5000)),
    cut=st.booleans(),
)
@settings(max_examples=60, deadline=None)
async def test_a_damaged_file_is_told_with_its_remedy(
    tmp_path_factory: pytest.TempPathFactory, place: float, junk: bytes, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "s.db"
    async with open_store(path) as store:
        await fill(store)
    whole = path.read_bytes()
    at = int(place * (len(whole) - 1))
    path.write_bytes(whole[:at] + junk + (b"" if cut else whole[at + len(junk) :]))
    try:
        await everything(path)
    except AgentError as error:
        assert "voltaire restore FILE" in str(error) or "newer version" in str(error)


# -- rows that say what cannot be ---------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE chats SET conversation = 4711",
        "UPDATE chats SET number = 9223372036854775807",
        "UPDATE transcript SET position = 9223372036854775807 WHERE id = 4",
        "UPDATE leases SET owner = 'nobody', heartbeat_at = 0",
        "UPDATE leases SET owner = 'a/b/c/d', heartbeat_at = -1e308",
    ],
)
async def test_a_turn_of_the_chat_and_of_a_new_one_begins_all_the_same(
    store: Store, damage: str
) -> None:
    await fill(store)
    assert await store.leases.acquire(CHAT, "x/1/2/3")
    async with store.database.without_transaction() as tx:
        await tx.run("PRAGMA foreign_keys = OFF")
        await tx.run(damage)
        await tx.run("PRAGMA foreign_keys = ON")
    for chat in (CHAT, "tg:2"):
        await store.inbox.add(Incoming(chat, "v", chat, "hello"))
        assert await store.leases.acquire(chat, "x/1/2/3")
        rows = await store.inbox.waiting(chat, ["v"])
        turn = await store.turns.begin(f"new {chat}", rows, RenderedMessage("", User("hello")))
        await store.turns.end(turn, TurnEnd(Assistant("bye"), "bye", "done", TokenUsage()))


ENDS_OF_NUMBERS = (2**63 - 1, -(2**63))


async def counts(store: Store) -> None:
    """Whatever counts on from a number that is stored, or sums numbers up."""
    turn = await store.turns.unfinished(CHAT)
    assert turn
    entries = await store.transcript.prompt(turn.conversation)
    shorter = Compaction(entries[-1].id, {}, [entries[0].id], "short")
    assert await store.transcript.compact(turn.conversation, shorter)
    await store.turns.resume(turn)
    await store.turns.pending(CHAT, ["t"])
    for due in await store.occurrences.open():
        await store.occurrences.begin(due.id)
    if row := await store.outbox.claim(CHAT):
        await store.outbox.get(row.id)
    for table, key in (("inbox", 1), ("jobs", 1)):
        await store.set_aside.crashed(table, key, ValueError("x"))
    if document := await store.documents.begin():
        await store.documents.put_back(document)
    day = "2026-11-23"
    await store.budgets.settle(CHAT, day, {"calls": 1})
    await store.budgets.allow(CHAT, day, "calls", 1)
    await store.usage.since(0.0)
    await store.usage.read_ahead(0.0)
    overview = Overview(store.database)
    await overview.turns(TurnFilter())
    await overview.speeds()
    await prune(store, Retention(most_bytes=1 << 30))


@pytest.mark.parametrize("number", ENDS_OF_NUMBERS)
async def test_numbers_at_their_end_stop_nothing(store: Store, number: int) -> None:
    turn = await fill(store)
    job = (await store.jobs.active())[0]
    await store.occurrences.add(job.id, 5, None)
    for _ in range(2):
        await store.usage.add(
            CHAT, turn.conversation, turn.id, Completion("", (), "", "stop"), CacheReuse()
        )
    await store.set_aside.crashed("inbox", 1, ValueError("x"))
    await store.documents.add(CHAT, "received/a.txt", 5, 0.0)
    await store.budgets.settle(CHAT, "2026-11-23", {"calls": 1})
    async with store.database.without_transaction() as tx:
        await tx.run("PRAGMA ignore_check_constraints = ON")
        for table, column in COUNTS:
            await tx.run(f"UPDATE {table} SET {column} = {number}")
    await counts(store)


@pytest.mark.parametrize("number", ENDS_OF_NUMBERS)
async def test_what_comes_after_a_row_with_the_last_number_keeps_its_place(
    store: Store, number: int
) -> None:
    await fill(store)
    await store.documents.sync_folder("papers", {"a.txt": (5, 0.0)})
    document = await store.documents.begin()
    assert document
    await store.documents.finish(document, [(1, "tea", "Boil water.")], "page", 1)
    turn = await store.turns.unfinished(CHAT)
    assert turn
    await store.turns.add(turn, Assistant("x"), strangers=["page 1"])
    async with store.database.without_transaction() as tx:
        await tx.run("PRAGMA foreign_keys = OFF")
        for table, key in NUMBERED:
            highest = f"SELECT max({key}) FROM {table}"
            await tx.run(f"UPDATE {table} SET {key} = {number} WHERE {key} = ({highest})")
        await tx.run("DELETE FROM passage_words")
        await tx.run("PRAGMA foreign_keys = ON")
    for text in "abcdef":
        await store.inbox.add(Incoming(CHAT, "after", text, text))
        await store.outbox.add(CHAT, [json.dumps(text)])
        await store.turns.add(turn, Assistant(text), strangers=[f"page {text}"])
    await store.documents.sync_folder("letters", {"b.txt": (5, 0.0)})
    while document := await store.documents.begin():
        await store.documents.finish(document, [(1, "tea", "Boil water.")], "page", 1)
    waiting = await store.inbox.waiting(CHAT, ["after"])
    assert [row.incoming.text for row in waiting] == [*"abcdef"]
    sql = "SELECT payload FROM outbox WHERE length(payload) = 3 ORDER BY id"
    assert [row[0] for row in await store.database.all(sql)] == [json.dumps(x) for x in "abcdef"]
    sql = "SELECT text FROM transcript WHERE length(text) = 1 AND text <> 'x' ORDER BY id"
    assert [row[0] for row in await store.database.all(sql)] == [*"abcdef"]
    named = [taint.source for taint in await store.taints.of(turn.conversation)]
    assert [source for source in named if source != "page 1"] == [f"page {x}" for x in "abcdef"]
