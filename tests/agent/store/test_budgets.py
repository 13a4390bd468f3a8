"""What a chat uses of its day, and the stop of everything: over two processes, kills and damage."""

import asyncio
import sys
from pathlib import Path

import pytest

from agent.store import Store, open_store
from agent.store.approvals import HOUR, TRIES, Frozen
from agent.store.usage import Used
from fakes.stored import grant
from tests.agent.store.conftest import Clock

LIMITS = {"calls": 3, "bytes": 100, "hosts": 1, "files": 0, "jobs": 1}
DAY_1 = "2027-01-15"


async def reserve(store: Store, host: str = "", **amounts: int) -> list[Used]:
    return list(await store.budgets.reserve("tg:1", DAY_1, amounts, LIMITS, host))


async def test_a_reservation_is_all_or_nothing(store: Store) -> None:
    assert await reserve(store, calls=2, bytes=90) == []
    assert await reserve(store, calls=1, bytes=11) == [Used("bytes", 101, 0)]
    assert await reserve(store, calls=2, bytes=20) == [Used("calls", 4, 0), Used("bytes", 110, 0)]
    assert await reserve(store, calls=1, bytes=10) == []
    assert await store.budgets.used("tg:1", DAY_1) == [Used("calls", 3, 0), Used("bytes", 100, 0)]
    assert await store.budgets.used("tg:2", DAY_1) == []


async def test_what_an_owner_allowed_and_what_was_given_back(store: Store) -> None:
    assert await reserve(store, bytes=100) == []
    assert await reserve(store, bytes=1)
    await store.budgets.settle("tg:1", DAY_1, {"bytes": -40})
    assert await reserve(store, bytes=40) == []
    await store.budgets.allow("tg:1", DAY_1, "bytes", 10)
    assert await reserve(store, bytes=10) == []
    assert await reserve(store, bytes=1) == [Used("bytes", 111, 10)]
    await store.budgets.settle("tg:1", DAY_1, {"bytes": -1000})
    assert await store.budgets.used("tg:1", DAY_1) == [Used("bytes", 0, 10)]


async def test_only_a_host_that_is_new_counts(store: Store) -> None:
    assert await reserve(store, "a:443", hosts=1) == []
    assert await reserve(store, "a:443", hosts=1) == []
    assert await reserve(store, "b:443", hosts=1) == [Used("hosts", 2, 0)]
    assert await reserve(store, "b:443", hosts=1) == [Used("hosts", 2, 0)]  # still a new one


async def test_a_group_with_a_new_id_has_used_what_it_had(store: Store) -> None:
    await store.chats.new_conversation("tg:1")
    assert await reserve(store, "a:443", calls=3, hosts=1) == []
    assert await store.chats.rename("tg:1", "tg:-1001")
    moved = await store.budgets.reserve("tg:-1001", DAY_1, {"calls": 1}, LIMITS)
    assert list(moved) == [Used("calls", 4, 0)]
    assert not await store.budgets.reserve("tg:-1001", DAY_1, {"hosts": 1}, LIMITS, "a:443")
    assert await store.budgets.used("tg:1", DAY_1) == []


async def test_two_processes_share_one_budget(store: Store) -> None:
    async with open_store(store.database.path, store.clock) as other:
        refused = await asyncio.gather(
            *(reserve(one, bytes=9) for _ in range(20) for one in (store, other))
        )
    assert sum(not over for over in refused) == 11


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from agent.store import open_store

async def main():
    async with open_store(Path(sys.argv[1])) as store:
        await store.budgets.reserve("tg:1", "2027-01-15", {"bytes": 60}, {"bytes": 100})
        await store.freeze.freeze("ann")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_killed_process_has_spent_what_it_reserved_and_stays_frozen(tmp_path: Path) -> None:
    path = tmp_path / "voltaire.db"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(path))
    assert await process.wait() == -9
    async with open_store(path) as store:
        assert await store.budgets.used("tg:1", DAY_1) == [Used("bytes", 60, 0)]
        with pytest.raises(Frozen):
            await reserve(store, bytes=1)
        assert await store.freeze.thaw("ann")
        assert await reserve(store, bytes=41)
        assert await reserve(store, bytes=40) == []


async def test_a_freeze_ends_what_stands_and_nothing_is_counted(store: Store, clock: Clock) -> None:
    await grant(store, "tg:1", "commit:web", "ann")
    store.freeze.on_freeze.append(lambda: 2)
    assert await store.freeze.since() is None
    assert await store.freeze.freeze("ann") == (2, 1)
    at = clock.now
    clock.pass_(60)
    assert await store.freeze.freeze("bob") == (2, 0)
    assert await store.freeze.since() == at
    assert await store.approvals.grants("tg:1") == []
    for host in ("", "a:443"):
        with pytest.raises(Frozen):
            await reserve(store, host, calls=1)
    assert await store.budgets.used("tg:1", DAY_1) == []
    assert await store.freeze.thaw("ann")
    assert not await store.freeze.thaw("ann")
    assert await reserve(store, "a:443", hosts=1) == []
    told = [row.facts for row in await store.ledger.rows() if row.kind in ("admin", "grant-ended")]
    assert [word in fact for word, fact in zip(("commit:web", "freeze", "freeze", "thaw"), told, strict=True)] == [True] * 4  # fmt: skip


async def test_a_code_thaws_once_and_few_are_tried(store: Store, clock: Clock) -> None:
    await store.freeze.freeze("ann")
    assert await store.freeze.thaw_by_code("eve", None) == "wrong"
    assert await store.freeze.since() is not None
    assert await store.freeze.thaw_by_code("ann", 1000) == "thawed"
    assert await store.freeze.since() is None
    await store.freeze.freeze("ann")
    assert await store.freeze.thaw_by_code("eve", 1000) == "wrong"  # the same again
    assert await store.freeze.thaw_by_code("eve", 999) == "wrong"
    for _ in range(TRIES - 4):
        assert await store.freeze.thaw_by_code("eve", None) == "wrong"
    assert await store.freeze.thaw_by_code("ann", 1001) == "often"  # though it is right
    assert await store.freeze.since() is not None
    clock.pass_(HOUR + 1)
    assert await store.freeze.thaw_by_code("ann", 1002) == "thawed"
