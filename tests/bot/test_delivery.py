"""What becomes of a row of the outbox, send by send; with Telegram in telegram/test_delivery.py."""

import asyncio
import json
import sys
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.store import Store, open_store
from agent.store.errors import StoreError
from agent.store.outbox import OutboxRow, OutboxTable
from bot import delivery as module
from bot.channel import (
    Button,
    ChannelError,
    ChatGone,
    ChatMoved,
    DeliveryUncertain,
    MessageRefused,
    NotSent,
    OutgoingMessage,
)
from bot.delivery import Delivery
from bot.texts import Texts
from fakes.channel_memory import MemoryChannel
from fakes.patience import SECONDS, soon

CHAT, OTHER = "tg:1", "tg:2"
NOW = 1_000.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "v.db", lambda: NOW) as store:
        yield store


@pytest.fixture
def channel() -> MemoryChannel:
    return MemoryChannel()


@pytest.fixture
def delivery(store: Store, channel: MemoryChannel) -> Delivery:
    return Delivery(store, channel)


async def put(store: Store, *texts: str, chat: str = CHAT, reply_to: str = "") -> list[int]:
    payloads = [OutgoingMessage(text, reply_to=reply_to).to_json() for text in texts]
    return await store.outbox.add(chat, payloads)


async def row(store: Store, id: int) -> OutboxRow:
    found = await store.outbox.get(id)
    assert found
    return found


async def once(store: Store, delivery: Delivery) -> bool:
    claimed = await store.outbox.claim(CHAT)
    assert claimed
    delivery.woken.clear()
    return await delivery.deliver(claimed)


@asynccontextmanager
async def running(delivery: Delivery) -> AsyncIterator[None]:
    task = asyncio.create_task(delivery.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(store: Store, id: int, state: str) -> OutboxRow:
    async with asyncio.timeout(SECONDS):
        while (found := await row(store, id)).state != state:
            await asyncio.sleep(0.001)
    return found


@pytest.mark.parametrize(
    ("fault", "state", "error", "not_before", "goes_on", "rings"),
    [
        (None, "delivered", "", 0.0, True, False),
        (NotSent("slow down", 30.0), "waiting", "slow down", NOW + 30.0, True, False),
        (NotSent("no network"), "waiting", "no network", NOW + 1.0, True, False),
        (DeliveryUncertain("timed out"), "uncertain", "timed out", 0.0, True, True),
        (MessageRefused("too odd"), "failed", "too odd", 0.0, True, True),
        (ChatGone("blocked"), "waiting", "blocked", 0.0, False, False),
        (KeyError("x"), "uncertain", "an internal error", 0.0, True, True),
    ],
    ids=["sent", "penalty", "not sent", "in doubt", "refused", "gone", "bug"],
)
async def test_a_row_is_settled_whatever_its_send_comes_to(
    store: Store, channel: MemoryChannel, delivery: Delivery,
    fault: Exception | None, state: str, error: str, not_before: float, goes_on: bool, rings: bool,
) -> None:  # fmt: skip
    [id] = await put(store, "hello")
    channel.faults.append(fault)
    assert await once(store, delivery) is goes_on
    found = await row(store, id)
    assert (found.state, found.error, found.not_before) == (state, error, not_before)
    assert delivery.woken.is_set() is rings
    assert found.message_ids == (("1",) if state == "delivered" else ())


async def test_a_chat_that_is_gone_rests_with_what_waits_for_it(
    store: Store, channel: MemoryChannel, delivery: Delivery
) -> None:
    await put(store, "hello")
    channel.faults.append(ChatGone("blocked"))
    await once(store, delivery)
    assert await store.outbox.chats_waiting() == []
    await store.chats.set_blocked(CHAT, blocked=False)
    assert await store.outbox.chats_waiting() == [CHAT]


async def test_a_chat_that_moved_takes_what_waits_along(
    store: Store, channel: MemoryChannel, delivery: Delivery
) -> None:
    [id] = await put(store, "hello")
    channel.faults.append(ChatMoved(OTHER))
    assert not await once(store, delivery)
    assert delivery.woken.is_set()
    assert await store.outbox.chats_waiting() == [OTHER]
    assert ((await row(store, id)).chat, (await row(store, id)).state) == (OTHER, "waiting")


async def test_a_chat_that_moved_to_a_known_one_is_answered_there(
    store: Store, channel: MemoryChannel, delivery: Delivery
) -> None:
    await put(store, "earlier", chat=OTHER)
    [id] = await put(store, "hello", reply_to="7")
    channel.faults.append(ChatMoved(OTHER))
    assert not await once(store, delivery)
    found = await row(store, id)
    assert (found.state, found.error) == ("failed", f"sent to {OTHER} instead")
    async with asyncio.timeout(SECONDS):
        await delivery.deliver_chat(OTHER)
    assert channel.texts == [(OTHER, "earlier"), (OTHER, "hello")]
    assert channel.sent[-1][1].reply_to == "7"


async def test_a_refusal_is_told_and_the_refusal_of_that_is_not(
    store: Store, channel: MemoryChannel, delivery: Delivery
) -> None:
    await put(store, "hello")
    channel.faults += [MessageRefused("too odd"), MessageRefused("too odd")]
    await delivery.deliver_chat(CHAT)
    assert await store.outbox.counts() == {"failed": 2}
    await put(store, "hello")
    channel.faults.append(MessageRefused("too odd"))
    await delivery.deliver_chat(CHAT)
    assert channel.texts == [(CHAT, Texts().undeliverable.format(why="too odd"))]


FULL_DISK = """
import asyncio, json, sys
from pathlib import Path
from fakes.small_disk import Disk
disk = Disk(Path(sys.argv[1]))
from agent.store import open_store
from bot import delivery as module
from bot.channel import ChatGone, ChatMoved, DeliveryUncertain, MessageRefused, NotSent, OutgoingMessage
from bot.texts import Texts
from fakes.channel_memory import MemoryChannel
from fakes.patience import soon

module.FIRST_BACKOFF = 0.01
FAULTS = [
    NotSent("no network"), DeliveryUncertain("timed out"), MessageRefused("too odd"),
    ChatMoved("tg:2"), ChatGone("blocked"), KeyError("x"), None,
]

class FillingChannel(MemoryChannel):
    async def send_part(self, chat, message):
        disk.fill()
        return await super().send_part(chat, message)

class WatchedDelivery(module.Delivery):
    waited = 0
    def _backoff(self, chat):
        self.waited += 1
        return super()._backoff(chat)

async def ended(fault):
    async with open_store(disk.folder / f"{FAULTS.index(fault)}.db") as store:
        channel = FillingChannel()
        delivery = WatchedDelivery(store, channel)
        [id] = await store.outbox.add("tg:1", [OutgoingMessage("hello").to_json()])
        await store.outbox.add("tg:2", [OutgoingMessage("earlier").to_json()])
        channel.faults.append(fault)
        row = await store.outbox.claim("tg:1")
        task = asyncio.create_task(delivery.deliver(row))
        await soon(lambda: delivery.waited > 3)
        during = (await store.outbox.get(id)).state
        disk.empty()
        await task
        return during, (await store.outbox.get(id)).state

async def every():
    return [await ended(fault) for fault in FAULTS]

print(json.dumps(disk.missing or asyncio.run(every())))
"""


async def test_an_outcome_stays_what_it_is_when_the_disk_is_full_at_that_moment(
    tmp_path: Path,
) -> None:
    """A real disk, to the last byte full when the app answers; it is written once there is room."""
    arguments = (sys.executable, "-c", FULL_DISK, str(tmp_path / "disk"))
    process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
    printed, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    found = json.loads(printed)
    if isinstance(found, str):
        pytest.skip(found)
    ends = ["waiting", "uncertain", "failed", "failed", "waiting", "uncertain", "delivered"]
    assert found == [["sending", end] for end in ends]


async def test_pauses_double_up_to_a_minute_and_begin_anew_after_a_success(
    store: Store, channel: MemoryChannel, delivery: Delivery
) -> None:
    pauses = []
    [id] = await put(store, "hello")
    for number in range(9):
        channel.faults.append(None if number == 7 else NotSent("no network"))
        await once(store, delivery)
        pauses.append((await row(store, id)).not_before - NOW)
        await store.database.execute("UPDATE outbox SET not_before = 0")
        if number == 7:
            [id] = await put(store, "hello again")
    assert pauses[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]
    assert pauses[8] == 1.0


async def test_a_send_that_crashes_is_uncertain_and_holds_nothing_up(
    store: Store, channel: MemoryChannel, delivery: Delivery
) -> None:
    [id, after] = await put(store, "deadly", "after it")
    for _ in range(4):
        channel.faults.append(KeyError("x"))
        assert await once(store, delivery)
        assert (await row(store, id)).state == "uncertain"
        await delivery.resend(id)
    channel.faults.append(KeyError("x"))
    await delivery.deliver_chat(CHAT)
    assert channel.texts == [(CHAT, "after it")]
    assert (await row(store, after)).state == "delivered"


async def test_a_payload_that_is_none_fails_unsent(
    store: Store, channel: MemoryChannel, delivery: Delivery
) -> None:
    [id] = await store.outbox.add(CHAT, ['{"text": 5}'])
    assert await once(store, delivery)
    assert (await row(store, id)).state == "failed"
    assert channel.sent == []


async def test_parts_are_sent_one_by_one_and_kept_by_their_ids(
    store: Store, channel: MemoryChannel
) -> None:
    begun: list[str] = []

    async def begin(turn: str) -> None:
        begun.append(turn)

    delivery = Delivery(store, channel, begin)
    payload = OutgoingMessage("a|b|c", [[Button("k", "K")]]).to_json()
    [id] = await store.outbox.add(CHAT, [payload], silent=True)
    channel.faults += [None, NotSent("no network", 0.0)]
    await once(store, delivery)
    await once(store, delivery)
    middle = await row(store, id)
    assert (middle.state, middle.message_ids) == ("waiting", ("1",))
    await store.database.execute("UPDATE outbox SET not_before = 0")
    await delivery.deliver_chat(CHAT)
    done = await row(store, id)
    assert (done.state, done.message_ids) == ("delivered", ("1", "2", "3"))
    assert channel.texts == [(CHAT, "a"), (CHAT, "b"), (CHAT, "c")]
    assert all(message.silent for _, message in channel.sent)
    assert begun == [""] * 4


async def test_a_stop_waits_for_the_send_that_is_in_flight(
    store: Store, delivery: Delivery, channel: MemoryChannel
) -> None:
    """What was sent is known as sent to the next start, and what comes behind it still waits."""
    begun, go_on = asyncio.Event(), asyncio.Event()
    send_part = channel.send_part

    async def slow(chat: str, message: OutgoingMessage) -> tuple[str, OutgoingMessage | None]:
        begun.set()
        await go_on.wait()
        return await send_part(chat, message)

    channel.send_part = slow  # type: ignore[method-assign]
    ids = await put(store, "a", "b")
    task = asyncio.create_task(delivery.run())
    await asyncio.wait_for(begun.wait(), SECONDS)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait([task])
    assert [(await row(store, id)).state for id in ids] == ["delivered", "waiting"]


async def test_chats_do_not_wait_for_each_other_and_each_keeps_its_order(
    store: Store, delivery: Delivery, channel: MemoryChannel
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    send_part = channel.send_part

    async def slow(chat: str, message: OutgoingMessage) -> tuple[str, OutgoingMessage | None]:
        if message.text == "a":
            begun.set()
            await go_on.wait()
        return await send_part(chat, message)

    channel.send_part = slow  # type: ignore[method-assign]
    await put(store, "a")
    async with running(delivery):
        await asyncio.wait_for(begun.wait(), SECONDS)
        [other] = await put(store, "x", chat=OTHER)
        await until(store, other, "delivered")
        [last] = await put(store, "b")  # noticed while its chat is busy
        await soon(lambda: not delivery.woken.is_set())
        assert channel.texts == [(OTHER, "x")]
        go_on.set()
        await until(store, last, "delivered")
    assert channel.texts == [(OTHER, "x"), (CHAT, "a"), (CHAT, "b")]


async def test_what_comes_in_as_a_chat_falls_idle_is_sent_at_once(
    store: Store, delivery: Delivery, channel: MemoryChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look for it found the chat busy, and the chat's own last look came before it."""
    monkeypatch.setattr(module, "POLL_SECONDS", SECONDS)
    following = store.outbox.next
    late: list[int] = []

    async def next_row(chat: str) -> OutboxRow | None:
        found = await following(chat)
        if found is None and not late:
            late.extend(await put(store, "late"))
            await soon(lambda: not delivery.woken.is_set())
            await asyncio.sleep(0.02)  # the other look reads the table meanwhile
        return found

    monkeypatch.setattr(type(store.outbox), "next", lambda table, chat: next_row(chat))
    await put(store, "a")
    async with running(delivery):
        await soon(lambda: len(channel.sent) == 2)
    assert channel.texts == [(CHAT, "a"), (CHAT, "late")]


async def test_another_app_takes_no_news_away(
    store: Store, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two deliveries of one outbox: the row comes while one has read the table and not yet begun to wait,
    and the other looks meanwhile."""
    monkeypatch.setattr(module, "POLL_SECONDS", 10 * SECONDS)
    channel = MemoryChannel()
    channel.prefix = "mx:"
    waiting, late = type(store.outbox).chats_waiting, list[int]()
    looks = Counter[str]()

    async def read(table: OutboxTable, prefix: str) -> list[str]:
        found = await waiting(table, prefix)
        looks[prefix] += 1
        if prefix == "mx:" and not late:
            await soon(lambda: looks[CHAT[:3]])
            late.extend(await put(store, "hello", chat="mx:1"))
            await soon(lambda: looks[CHAT[:3]] == 2)
        return found

    monkeypatch.setattr(type(store.outbox), "chats_waiting", read)
    async with running(delivery), running(Delivery(store, channel)):
        await soon(lambda: channel.sent)
    assert channel.texts == [("mx:1", "hello")]


async def test_what_another_process_puts_in_is_found(
    store: Store, delivery: Delivery, channel: MemoryChannel, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    async with open_store(tmp_path / "v.db") as other, running(delivery):
        [id] = await put(other, "hello")
        await until(store, id, "delivered")
        await put(other, "not for this app", chat="mx:1")
        [id] = await put(other, "again")
        await until(store, id, "delivered")
    assert channel.texts == [(CHAT, "hello"), (CHAT, "again")]


@pytest.mark.parametrize("method", ["chats_waiting", "next", "claim"])
async def test_a_database_that_cannot_be_read_ends_no_delivery(
    store: Store, delivery: Delivery, channel: MemoryChannel, monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:  # fmt: skip
    working, failures = getattr(OutboxTable, method), [StoreError("The disk is full.")] * 3

    async def failing(*of: object) -> object:
        if failures:
            raise failures.pop()
        return await working(*of)

    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(OutboxTable, method, failing)
    await put(store, "hello")
    async with running(delivery):
        await soon(lambda: channel.sent)
    assert channel.texts == [(CHAT, "hello")]


@pytest.mark.parametrize(
    ("written", "error"),
    [
        (None, "notes.txt cannot be read: No such file or directory"),
        ("x", "notes.txt has 1 bytes, of at most 0"),
    ],
)
async def test_a_file_that_cannot_be_sent_is_refused_and_left_where_it_is(
    store: Store, delivery: Delivery, tmp_path: Path, written: str | None, error: str
) -> None:
    file = tmp_path / "notes.txt"
    if written:
        file.write_text(written)
    message = OutgoingMessage("my notes", file=str(file))
    [id] = await store.outbox.add(CHAT, [message.to_json()])
    await once(store, delivery)
    found = await row(store, id)
    assert (found.state, found.error, file.exists()) == ("failed", error, bool(written))


# --- notices of what is in doubt --------------------------------------------------


async def uncertain(store: Store, text: str = "hello", reply_to: str = "7") -> OutboxRow:
    [id] = await put(store, text, reply_to=reply_to)
    await store.outbox.claim(CHAT)
    await store.outbox.uncertain(id)
    return await row(store, id)


async def test_what_a_killed_process_was_sending_is_told_at_the_start_and_sent_when_asked(
    store: Store, delivery: Delivery, channel: MemoryChannel
) -> None:
    [id] = await put(store, "hello", reply_to="7")
    await store.outbox.claim(CHAT)
    async with running(delivery):
        await soon(lambda: channel.sent)
        button = Button(f"again:{id}", Texts().show_again)
        notice = OutgoingMessage(Texts().in_doubt, [[button]], reply_to="7")
        assert channel.sent == [(CHAT, notice)]
        async with asyncio.timeout(SECONDS):
            while (await row(store, id)).notice_id != "1":
                await asyncio.sleep(0.001)
        assert (await row(store, id)).state == "uncertain"
        assert await delivery.resend(id)
        await until(store, id, "delivered")
        assert not await delivery.resend(id)
    assert channel.texts[1:] == [(CHAT, "hello")]


async def test_what_is_in_doubt_once_more_is_told_once_more(
    store: Store, delivery: Delivery, channel: MemoryChannel
) -> None:
    [id] = await put(store, "hello")
    doubt = DeliveryUncertain("timed out")
    channel.faults = deque([doubt, None, doubt, None])
    async with running(delivery):
        await soon(lambda: len(channel.sent) == 1)
        await until(store, id, "uncertain")
        await delivery.resend(id)
        await soon(lambda: len(channel.sent) == 2)
    assert [text for _, text in channel.texts] == [Texts().in_doubt] * 2


@pytest.mark.parametrize(
    ("fault", "notice", "looks"),
    [
        (NotSent("no network"), "1", 2),
        (DeliveryUncertain("timed out"), "1", 2),
        (ChatGone("blocked"), "?", 1),
        (MessageRefused("too odd"), "?", 1),
        (KeyError("x"), "?", 1),
    ],
    ids=["not sent", "in doubt", "gone", "refused", "bug"],
)
async def test_a_notice_that_fails_is_sent_at_a_later_look_where_that_may_help(
    store: Store, delivery: Delivery, channel: MemoryChannel, monkeypatch: pytest.MonkeyPatch,
    fault: Exception, notice: str, looks: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    doubt = await uncertain(store)
    channel.faults.append(fault)
    async with running(delivery), asyncio.timeout(SECONDS):
        while not (found := await row(store, doubt.id)).notice_id:
            await asyncio.sleep(0.001)
    assert found.notice_id == notice
    assert len(channel.sent) == looks - 1


@pytest.mark.parametrize(
    ("fault", "attempts", "notice"),
    [(DeliveryUncertain("timed out"), 5, "?"), (NotSent("no network"), 20, "1")],
)
async def test_a_notice_in_doubt_is_repeated_a_few_times(
    store: Store, delivery: Delivery, channel: MemoryChannel, monkeypatch: pytest.MonkeyPatch,
    fault: ChannelError, attempts: int, notice: str,
) -> None:  # fmt: skip
    """One that surely was not sent was not seen either: it is sent as often as it takes."""
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(module, "NOTICE_PAUSES", (0.001,) * 4)
    doubt = await uncertain(store)
    channel.faults.extend([fault] * 20)
    await delivery.send_notice(doubt)
    assert (await row(store, doubt.id)).notice_id == notice
    assert len(channel.faults) == 20 - attempts


async def test_what_other_chats_send_does_not_use_up_a_notices_attempts(
    store: Store, delivery: Delivery, channel: MemoryChannel
) -> None:
    """Else it would be given up within one short outage, and its text be lost."""
    doubt = await uncertain(store)
    failing = DeliveryUncertain("timed out")
    channel.faults.extend([failing] * 60)
    async with running(delivery):
        await soon(lambda: len(channel.faults) < 60)
        for number in range(8):
            [id] = await put(store, f"other {number}", chat=f"tg:{50 + number}")
            await until(store, id, "uncertain")
        left = [found.id for found in await store.outbox.without_notice("tg:")]
    assert doubt.id in left and (await row(store, doubt.id)).notice_id == ""


async def test_a_notice_that_is_being_sent_is_not_sent_beside_itself(
    store: Store, delivery: Delivery, channel: MemoryChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.005)
    await uncertain(store)
    begun, go_on = [], asyncio.Event()
    send_part, look, looks = channel.send_part, store.outbox.without_notice, []

    async def slow(chat: str, message: OutgoingMessage) -> tuple[str, OutgoingMessage | None]:
        begun.append(message)
        await go_on.wait()
        return await send_part(chat, message)

    async def counted(prefix: str = "") -> list[OutboxRow]:
        looks.append(prefix)
        return await look(prefix)

    channel.send_part = slow  # type: ignore[method-assign]
    monkeypatch.setattr(type(store.outbox), "without_notice", lambda table, prefix: counted(prefix))
    async with running(delivery):
        await soon(lambda: len(looks) >= 4)
        go_on.set()
        await soon(lambda: channel.sent)
    assert len(begun) == 1


async def test_a_notice_of_what_cannot_be_read_is_not_sent(
    store: Store, delivery: Delivery, channel: MemoryChannel
) -> None:
    doubt = await uncertain(store)
    await store.database.execute("""UPDATE outbox SET payload = '{"text": 5}'""")
    await delivery.send_notice(await row(store, doubt.id))
    assert channel.sent == []
    assert (await row(store, doubt.id)).state == "failed"
