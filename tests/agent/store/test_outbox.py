from datetime import UTC, datetime

from agent.schedule.times.rule import Once, dump
from agent.store import Store
from agent.store.jobs import JobSpec
from agent.store.outbox import FARTHEST, OutboxRow
from fakes.stored import fall_due
from tests.agent.store.conftest import Clock


async def put(store: Store, *payloads: str, chat: str = "tg:1") -> list[int]:
    return await store.outbox.add(chat, [f'"{payload}"' for payload in payloads])


async def claimed(store: Store, chat: str = "tg:1") -> OutboxRow:
    parcel = await store.outbox.claim(chat)
    assert parcel
    return parcel


async def test_one_at_a_time_and_in_order_per_chat(store: Store) -> None:
    first, second = await put(store, "a", "b")
    await put(store, "c", chat="tg:2")
    assert await store.outbox.chats_waiting() == ["tg:1", "tg:2"]
    parcel = await claimed(store)
    assert (parcel.id, parcel.payload, parcel.state, parcel.attempts) == (
        first,
        '"a"',
        "sending",
        1,
    )
    assert await store.outbox.claim("tg:1") is None
    assert (await claimed(store, "tg:2")).payload == '"c"'
    await store.outbox.delivered(first, ["101"])
    assert (await claimed(store)).id == second
    done = await store.outbox.get(first)
    assert done and (done.state, done.message_ids) == ("delivered", ("101",))


async def test_what_is_told_once_is_put_in_once(store: Store) -> None:
    assert await store.outbox.add_once("told:1", ["tg:1", "tg:2"], '"a"')
    assert not await store.outbox.add_once("told:1", ["tg:1", "tg:2"], '"a"')
    assert await store.outbox.add_once("told:2", [], '"b"')
    assert await store.outbox.counts() == {"waiting": 2}
    assert (await claimed(store)).payload == (await claimed(store, "tg:2")).payload == '"a"'


async def test_a_penalty_of_one_chat_is_its_own(store: Store, clock: Clock) -> None:
    [row] = await put(store, "a")
    await put(store, "b", chat="tg:2")
    await claimed(store)
    await store.outbox.postponed(row, clock.now + 30, "429")
    assert await store.outbox.claim("tg:1") is None
    waiting = await store.outbox.next("tg:1")
    assert waiting and (waiting.state, waiting.not_before) == ("waiting", clock.now + 30)
    assert (await claimed(store, "tg:2")).payload == '"b"'
    clock.pass_(30)
    assert ((await claimed(store)).attempts) == 2
    await store.outbox.postponed(row, clock.now + 1e9, "429")
    assert await store.outbox.claim("tg:1") is None
    clock.pass_(FARTHEST)
    assert ((await claimed(store)).attempts) == 3


async def test_what_nobody_knows_is_told_once_and_sent_again_only_when_asked(store: Store) -> None:
    row, after = await put(store, "a", "b")
    await claimed(store)
    await store.outbox.uncertain(row, "timed out")
    assert (await claimed(store)).id == after  # it blocks nothing
    [unsure] = await store.outbox.without_notice("tg:")
    assert (unsure.id, unsure.error) == (row, "timed out")
    await store.outbox.notice_sent(row, "55")
    assert await store.outbox.without_notice("tg:") == []
    assert await store.outbox.counts() == {"sending": 1, "uncertain": 1}
    assert await store.outbox.send_again(row)
    assert not await store.outbox.send_again(row)
    assert not await store.outbox.send_again(after)


async def test_a_start_finds_what_was_being_sent(store: Store) -> None:
    row, _ = await put(store, "a", "b")
    await claimed(store)
    [unsure] = await store.outbox.recover("tg:")
    assert (unsure.id, unsure.state) == (row, "uncertain")
    assert await store.outbox.recover("tg:") == []


async def test_a_long_text_keeps_the_ids_of_its_parts(store: Store) -> None:
    [row] = await put(store, "a and b")
    await claimed(store)
    await store.outbox.part_delivered(row, "7", '"b"')
    await store.outbox.postponed(row, 0)
    parcel = await claimed(store)
    assert (parcel.payload, parcel.message_ids) == ('"b"', ("7",))
    await store.outbox.delivered(row, ["8"])
    done = await store.outbox.get(row)
    assert done and done.message_ids == ("7", "8")


async def test_a_resting_chat_gets_nothing(store: Store) -> None:
    await put(store, "a")
    await store.chats.set_blocked("tg:1", True)
    assert await store.outbox.chats_waiting() == []


async def test_adding_rings(store: Store) -> None:
    rung: list[str] = []
    store.outbox.on_wake.extend([lambda: rung.append("one"), lambda: rung.append("other")])
    await put(store, "a")
    assert rung == ["one", "other"]


async def test_an_occurrence_is_done_with_the_message_that_was_delivered(store: Store) -> None:
    job = await store.jobs.add(
        JobSpec("tg:1", "remind", "at 8", dump(Once(datetime.now(UTC))), "UTC", "oven", {})
    )
    due = await fall_due(store, job.id, 1_800_000_000)
    assert due and await store.occurrences.begin(due.id)
    await store.occurrences.post(due.id, "tg:1", ["{}"])
    row = await claimed(store)
    await store.outbox.delivered(row.id, ["42"])
    [done] = await store.occurrences.of_job(job.id)
    assert (done.state, done.message_id) == ("done", "42")


async def test_a_penalty_is_no_longer_where_the_clock_is_set_back(
    store: Store, clock: Clock
) -> None:
    """What an app asked for are seconds, not an instant."""
    [id] = await put(store, "a")
    await claimed(store)
    await store.outbox.postponed(id, clock.now + 3, "429")
    clock.pass_(-3600)
    waiting = await store.outbox.next("tg:1")
    assert waiting and waiting.ahead(clock.now) == 3
    assert (await claimed(store)).id == id
