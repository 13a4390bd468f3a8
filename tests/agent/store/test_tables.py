import asyncio
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.approvals import ApprovalRequest, question_id
from agent.model import Completion
from agent.schedule.times.rule import Every, dump
from agent.store import Incoming, Store, backup, open_store
from agent.store.errors import StoreError
from agent.store.jobs import JobSpec
from agent.store.retention import DAY, vacuum
from agent.store.usage import CacheReuse
from fakes.stored import fall_due
from tests.agent.store.conftest import Clock


def request(
    token: str = "q1", scope: str = "commit:web", expires: float = 1_800_000_300.0
) -> ApprovalRequest:
    what = "git commit -m x"
    id = question_id(token, "tg:1", what, scope)
    return ApprovalRequest(id, "t1", "c1", "tg:1", what, scope, expires)


Q1 = request().id


async def test_an_approval_is_decided_once(store: Store, clock: Clock) -> None:
    await store.approvals.open(request())
    assert await store.approvals.not_taken("t1") == {"c1"}
    assert [r.id for r in await store.approvals.open_requests("tg:1")] == [Q1]
    assert await store.approvals.find("t1", "c1", "git commit -m x") == (request(), None)
    assert await store.approvals.decide(Q1, "once", clock.now, "ann") == request()
    assert await store.approvals.decide(Q1, "denied", clock.now, "bob") is None
    assert await store.approvals.decided(Q1) == ("once", "ann", clock.now)
    assert await store.approvals.find("t1", "c1", "git commit -m x") == (request(), "once")
    assert await store.approvals.not_taken("t1") == {"c1"}
    await store.approvals.take(request(), None)
    assert await store.approvals.not_taken("t1") == frozenset()
    assert not await store.approvals.granted("tg:1", "commit:web")


async def test_a_standing_permission_holds_in_its_chat_for_its_scope(
    store: Store, clock: Clock
) -> None:
    await store.approvals.open(request())
    await store.approvals.decide(Q1, "chat", clock.now, "ann")
    assert await store.approvals.granted("tg:1", "commit:web")
    assert not await store.approvals.granted("tg:1", "commit:other")
    assert not await store.approvals.granted("tg:2", "commit:web")
    assert [(g.scope, g.granted_by) for g in await store.approvals.grants("tg:1")] == [
        ("commit:web", "ann")
    ]
    assert await store.approvals.revoke("tg:1", "commit:web")
    assert not await store.approvals.granted("tg:1", "commit:web")


async def test_a_question_is_decided_over_its_own_bytes(store: Store, clock: Clock) -> None:
    await store.approvals.open(request())
    await store.database.execute("UPDATE approvals SET what = 'rm -rf /'")
    assert await store.approvals.decide(Q1, "once", clock.now, "ann") is None
    await store.database.execute("UPDATE approvals SET what = 'git commit -m x', scope = '*'")
    assert await store.approvals.decide(Q1, "chat", clock.now, "ann") is None
    assert await store.approvals.grants("tg:1") == []
    other = request("q1", "commit:other").id  # a button of another question
    assert await store.approvals.decide(other, "once", clock.now, "ann") is None


async def test_a_code_pairs_one_person_once_and_in_time(store: Store, clock: Clock) -> None:
    code = await store.people.make_code("owner", 600)
    assert await store.people.use_code("telegram", "7", "Ann", "wrong") is None
    assert await store.people.use_code("telegram", "7", "Ann", code) == "owner"
    assert await store.people.use_code("telegram", "8", "Bob", code) is None
    friends = await store.people.make_code("member", 600)
    assert await store.people.use_code("telegram", "7", "Ann", friends) == "owner"  # who tries it
    assert await store.people.use_code("telegram", "7", "Ann", "wrong") is None
    assert await store.people.use_code("telegram", "9", "Eva", friends) == "member"
    await store.people.remove("telegram", "9")
    ann = await store.people.get("telegram", "7")
    assert ann and (ann.role, ann.name) == ("owner", "Ann")
    late = await store.people.make_code("member", 600)
    clock.pass_(601)
    assert await store.people.use_code("telegram", "8", "Bob", late) is None
    async with store.database.read() as tx:
        kept = str(await tx.all("SELECT * FROM pairing_codes"))
    assert code not in kept


async def test_a_stranger_is_told_once_a_day(store: Store, clock: Clock) -> None:
    assert await store.people.stranger_notice_due("telegram", "9", "Eve")
    assert not await store.people.stranger_notice_due("telegram", "9", "Eve")
    assert await store.people.stranger_notice_due("telegram", "10", "Mal")
    clock.pass_(DAY)
    assert await store.people.stranger_notice_due("telegram", "9", "Eve")
    await store.people.put("telegram", "9", "Eve", "member", "ann")
    assert [p.name for p in await store.people.all("telegram", "member")] == ["Eve"]
    assert await store.people.remove("telegram", "9")


async def test_an_occurrence_falls_due_once_and_never_overlaps(store: Store) -> None:
    job = await store.jobs.add(
        JobSpec(
            "tg:1",
            "task",
            "hourly",
            dump(Every(3600, datetime(2026, 1, 1, tzinfo=UTC))),
            "UTC",
            "look",
            {"n": 1},
        )
    )
    assert await store.jobs.get(job.id) == job
    first = await fall_due(store, job.id, 3600, 7200)
    with pytest.raises(sqlite3.IntegrityError):
        await fall_due(store, job.id, 3600, 7200)
    second = await fall_due(store, job.id, 7200, 10800)
    running = await store.occurrences.begin(first.id)
    assert running and (running.state, running.attempts) == ("running", 1)
    assert await store.occurrences.begin(second.id) is None
    await store.occurrences.end(first.id, "done", "nothing new")
    assert await store.occurrences.begin(second.id)
    assert [o.state for o in await store.occurrences.of_job(job.id)] == ["running", "done"]
    assert await store.jobs.active_and_next() == (1, 10800)
    await store.jobs.set_state(job.id, "deleted")
    assert await store.jobs.of_chat("tg:1") == []


async def test_what_was_read_ahead_adds_up(store: Store, clock: Clock) -> None:
    await store.chats.open("cli")
    call = Completion("", (), "", "stop", 1000, 900, 20, 50, 400.0, 30.0)
    await store.usage.add("cli", 1, None, call, CacheReuse(100, 7, ""))
    await store.usage.add("cli", 1, None, Completion("", (), "", "stop"), CacheReuse())
    read = Completion("", (), "", "stop", 1000, 900, 0)
    await store.usage.add("cli", 1, None, read, CacheReuse(0, 100), "warm")
    assert await store.usage.read_ahead(clock.now - 1) == 100
    assert await store.usage.read_ahead(clock.now + 1) == 0


async def test_the_first_file_at_a_path_keeps_its_id(store: Store) -> None:
    for remote in ("first", "second"):
        await store.files.add("tg:1", "/workspace/a", remote)
    assert await store.files.remote("tg:1", "/workspace/a") == "first"
    assert await store.files.remote("tg:2", "/workspace/a") is None


async def test_room_is_given_back(store: Store) -> None:
    for number in range(40):
        await store.inbox.add(Incoming("tg:1", "s", str(number), "x" * 50_000))
    rows = await store.inbox.waiting("tg:1")
    await store.inbox.discard("tg:1", [row.id for row in rows])
    assert not await vacuum(store)
    async with store.database.write() as tx:
        await tx.run("DELETE FROM inbox")
    before = await backup.size(store)
    assert await vacuum(store)
    async with store.database.without_transaction() as tx:
        await tx.run("PRAGMA wal_checkpoint(TRUNCATE)")
    assert await backup.size(store) < before / 4


async def test_a_copy_is_whole_while_others_write(store: Store) -> None:
    target = store.database.path.with_name("copy.db")
    stop = asyncio.Event()

    async def write() -> int:
        count = 0
        while not stop.is_set():
            await store.inbox.add(Incoming("tg:1", "s", str(count), "x" * 500))
            count += 1
        return count

    writing = asyncio.create_task(write())
    await backup.backup(store, target)
    stop.set()
    assert await writing > 0
    assert target.stat().st_mode & 0o777 == 0o600
    assert not target.with_name(".copy.db.new").exists()
    async with open_store(target) as copy:
        found = await copy.inbox.waiting("tg:1")
    assert [row.incoming.update for row in found] == [str(n) for n in range(len(found))]


async def test_a_copy_that_cannot_be_written_is_told(store: Store) -> None:

    with pytest.raises(StoreError, match="cannot be written"):
        await backup.backup(store, Path("/proc/nowhere/copy.db"))


@pytest.mark.parametrize("id", [-1, 0, 2**63 - 1, 2**63, 2**63 + 1, 10**30])
async def test_a_number_that_no_job_can_have_is_no_job(store: Store, id: int) -> None:
    assert await store.jobs.get(id) is None


async def test_a_value_is_replaced_only_while_the_old_one_stands(store: Store) -> None:
    await store.key_values.put("talk", ["shown", 1.5])
    await store.key_values.replace("talk", ["shown", 1.5], ["same", 1.5])
    await store.key_values.replace("talk", ["shown", 1.5], ["different", 1.5])
    assert await store.key_values.get("talk", list) == ["same", 1.5]
