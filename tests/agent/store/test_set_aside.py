"""What the program crashes at three times is set aside and told, once; what stands beside it goes on."""

import asyncio
import json

from agent.store import Incoming, Store
from agent.store.set_aside import CRASHES
from fakes.patience import SECONDS
from fakes.stored import set_aside
from tests.agent.store.conftest import Clock

CHAT = "tg:1"


async def fill(store: Store) -> None:
    for text in ("one", "two"):
        await store.inbox.add(Incoming(CHAT, "s", text, text, files=("a",)))


async def texts(store: Store) -> list[str]:
    return [row.incoming.text for row in await store.inbox.waiting(CHAT)]


async def crash_always(store: Store, table: str, key: int) -> None:
    for _ in range(CRASHES):
        await store.set_aside.crashed(table, key, ValueError("\udc80"))


async def test_what_is_set_aside_is_told_once_to_its_chat_and_updates_once_a_day_to_the_owners(
    store: Store, clock: Clock
) -> None:
    async def told() -> list[list[object]]:
        await store.database.execute("DELETE FROM outbox")
        any = await store.set_aside.tell(["tg:8", "tg:9"], lambda *of: json.dumps(of))
        rows = await store.database.all("SELECT payload FROM outbox ORDER BY id")
        assert any == bool(rows)
        return [json.loads(payload) for (payload,) in rows]

    await fill(store)
    await crash_always(store, "inbox", 1)
    await store.set_aside.add_updates([("s:1", ValueError(), "{}")])
    to_owners = [["tg:8", "updates", 1], ["tg:9", "updates", 1]]
    assert await told() == [["tg:1", "inbox", 1], *to_owners]
    assert await told() == []
    await crash_always(store, "inbox", 2)
    await store.set_aside.add_updates([("s:1", ValueError(), "{}")])  # delivered once more
    await store.set_aside.add_updates([("s:2", ValueError(), "{}")])
    assert await told() == [["tg:1", "inbox", 1]]
    clock.now += 86_401
    assert await told() == to_owners
    assert await store.set_aside.count() == 4


async def test_the_third_crash_at_a_row_sets_it_aside(store: Store) -> None:
    await fill(store)
    crash = KeyError("x")
    assert [await store.set_aside.crashed("inbox", 1, crash) for _ in range(2)] == [False] * 2
    await store.set_aside.passed("inbox", 1)
    ends = [await store.set_aside.crashed("inbox", 1, crash) for _ in range(3)]
    assert ends == [False, False, True]
    assert await texts(store) == ["two"]
    [row] = await set_aside(store)
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
    """No folder to write them in, and one that was begun and cannot be counted on."""
    store.set_aside.attempts.rmdir()
    for _ in range(CRASHES + 1):
        assert await attempted(store, 1)
    (store.set_aside.attempts / "inbox-1").mkdir(parents=True)
    for _ in range(CRASHES + 1):
        assert await attempted(store, 1)
