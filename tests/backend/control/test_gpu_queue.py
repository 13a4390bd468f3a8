"""Urgency, fairness, idle work that stops, closed queues, drained ones, and holders that vanish."""

import asyncio
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass

import pytest

from backend.control.gpu_queue import HEAT, GpuRequestQueue
from backend.protocol import EVAL, IDLE, PERSON, PREFIX, SCHEDULED, Phrase, QueueState
from fakes.patience import SECONDS


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


async def order(queue: GpuRequestQueue, waiters: list[tuple[str, int]]) -> list[str]:
    """In which order these are let in, each for a moment, after the lane was busy."""
    served: list[str] = []

    async def turn(chat: str, priority: int) -> None:
        async with queue.acquire(chat, priority):
            served.append(chat)

    async with asyncio.TaskGroup() as group, queue.acquire("first", PERSON):
        for chat, priority in waiters:
            group.create_task(turn(chat, priority))
            await asyncio.sleep(0)
    return served


async def test_urgent_first_then_the_chat_served_longest_ago() -> None:
    queue = GpuRequestQueue(now=Clock())
    assert await order(
        queue, [("idle", IDLE), ("job", SCHEDULED), ("b", PERSON), ("a", PERSON)]
    ) == ["b", "a", "job", "idle"]
    assert await order(queue, [("a", PERSON), ("b", PERSON), ("new", PERSON)]) == [
        "new",
        "b",
        "a",
    ]


async def test_scheduled_work_is_not_starved() -> None:
    clock = Clock()
    queue = GpuRequestQueue(now=clock)
    served: list[str] = []

    async def turn(chat: str, priority: int) -> None:
        async with queue.acquire(chat, priority):
            served.append(chat)

    async with asyncio.TaskGroup() as group, queue.acquire("a", PERSON):
        group.create_task(turn("job", SCHEDULED))
        await asyncio.sleep(0)
        clock.now += 121
        group.create_task(turn("a", PERSON))
        await asyncio.sleep(0)
    assert served == ["job", "a"]


async def test_idle_work_is_told_that_somebody_waits() -> None:
    queue, heard = GpuRequestQueue(now=Clock()), list[QueueState]()
    async with queue.acquire("warm", IDLE, heard.append):
        other = asyncio.create_task(queue.acquire("other", IDLE).__aenter__())
        await asyncio.sleep(0)
        assert heard == [QueueState(state="held")]
        person = asyncio.create_task(queue.acquire("a", PERSON).__aenter__())
        await asyncio.sleep(0)
        assert heard == [QueueState(state="held"), QueueState(state="wanted")]
    await person
    other.cancel()
    assert [ticket.chat for ticket in queue.holders] == ["a"]


async def test_heat_lets_nobody_in_and_holders_go_on() -> None:
    queue, holder, waiter = GpuRequestQueue(now=Clock()), list[QueueState](), list[QueueState]()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(queue.acquire("a", PERSON, holder.append))
        queue.close(HEAT, Phrase("Too hot."))
        stack.enter_context(queue.enqueue("b", PERSON, waiter.append))
        queue.open(HEAT)
    assert holder == [QueueState(state="held")]
    assert waiter == [
        QueueState(state="waiting", ahead=1, reason="Too hot."),
        QueueState(state="waiting", ahead=1),
    ]


async def test_a_waiter_that_gives_up_leaves_no_trace() -> None:
    queue = GpuRequestQueue()
    async with queue.acquire("a", PERSON):
        waiting = asyncio.create_task(queue.acquire("b", PERSON).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert queue.waiters == []
    assert (queue.holders, queue.demand.is_set()) == ([], False)


async def test_emptied_waits_for_holders_and_keeps_others_out() -> None:
    queue = GpuRequestQueue()
    events: list[str] = []

    async def switch() -> None:
        async with queue.drained("switch", Phrase("Switching.")):
            events.append("empty")
            assert queue.reason == "Switching."

    async def turn() -> None:
        async with queue.acquire("b", PERSON):
            events.append("b")

    async with asyncio.TaskGroup() as group, queue.acquire("a", PERSON):
        group.create_task(switch())
        await asyncio.sleep(0)
        group.create_task(turn())
        await asyncio.sleep(0)
        events.append("a done")
    assert events == ["a done", "empty", "b"]


async def test_a_turn_that_never_ends_holds_a_switch_up_for_a_while_only() -> None:
    queue = GpuRequestQueue()
    with queue.turn("a", lambda state: None):
        async with queue.between_turns("switch", Phrase("Switching."), patience=0.05):
            assert queue.reason == "Switching."
            async with asyncio.timeout(SECONDS):
                with queue.turn("b", lambda state: None) as late:
                    assert late not in queue.open_turns
    assert not queue.open_turns
    assert queue.reason is None


async def test_idle_work_waits_for_the_end_of_open_turns_and_gives_way_to_new_ones() -> None:
    """The server's cache is an open turn's: between two of its calls nobody else reads."""
    queue, heard = GpuRequestQueue(now=Clock()), list[QueueState]()
    with queue.turn("a", lambda state: None):
        idle = asyncio.create_task(queue.acquire("b", IDLE, heard.append).__aenter__())
        async with queue.acquire("a", PERSON):
            await asyncio.sleep(0)
        assert [ticket.chat for ticket in queue.waiters] == ["b"]
    await idle
    assert heard[-1] == QueueState(state="held")
    with queue.turn("a", lambda state: None):
        assert heard[-1] == QueueState(state="wanted")


# --- tables -----------------------------------------------------------------------


@dataclass
class SetClock:
    """A clock set by hand."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("waits", "asked", "first"),
    [
        ([("a", SCHEDULED, 0.0), ("b", PERSON, 1.0)], 119.9, "b"),
        ([("a", SCHEDULED, 0.0), ("b", PERSON, 1.0)], 120.0, "a"),
        ([("a", IDLE, 0.0), ("b", SCHEDULED, 1.0)], 1000.0, "b"),
        ([("a", PERSON, 1.0), ("b", PERSON, 2.0)], 3.0, "a"),
        ([("late", PERSON, 1.0), ("b", PERSON, 2.0)], 3.0, "b"),
        ([("late", PERSON, 1.0), ("early", PERSON, 2.0)], 3.0, "early"),
        ([("late", SCHEDULED, 1.0), ("late", PERSON, 2.0)], 3.0, "late"),
    ],
    ids=["urgent", "aged", "idle never", "first come", "served", "longest ago", "same chat"],
)
async def test_who_is_next(waits: list[tuple[str, int, float]], asked: float, first: str) -> None:
    """`late` was served after `early`; each waits since the time beside it."""
    clock = SetClock(-10.0)
    queue = GpuRequestQueue(now=clock)
    for chat in ("early", "late", "early", "late"):
        clock.now += 1
        async with queue.acquire(chat, PERSON):
            pass
    with ExitStack() as stack:
        busy = stack.enter_context(queue.enqueue("busy", PERSON, ignored))
        for chat, priority, since in waits:
            clock.now = since
            stack.enter_context(queue.enqueue(chat, priority, ignored))
        clock.now = asked
        queue.resize(2)
        assert [ticket.chat for ticket in queue.holders] == [busy.chat, first]


def ignored(state: QueueState) -> None:
    """Nobody listens."""


def test_each_waiter_knows_how_many_are_ahead_and_hears_each_change_once() -> None:
    queue = GpuRequestQueue(now=Clock())
    heard: dict[str, list[QueueState]] = {name: [] for name in "abcd"}
    with ExitStack() as stack:
        with queue.enqueue("a", PERSON, heard["a"].append):
            stack.enter_context(queue.enqueue("c", SCHEDULED, heard["c"].append))
            stack.enter_context(queue.enqueue("b", PERSON, heard["b"].append))
            stack.enter_context(queue.enqueue("d", IDLE, heard["d"].append))
        queue.close("heat", Phrase("Too hot."))
    held = QueueState(state="held")

    def waiting(ahead: int, reason: str | None = None) -> QueueState:
        return QueueState(state="waiting", ahead=ahead, reason=reason)

    assert heard["a"] == [held]
    assert heard["b"] == [waiting(1), held]
    assert heard["c"][:4] == [waiting(1), waiting(2), waiting(1), waiting(1, "Too hot.")]
    assert heard["d"][:3] == [waiting(3), waiting(2), waiting(2, "Too hot.")]


def test_idle_work_is_nobody_ahead() -> None:
    queue, heard = GpuRequestQueue(now=Clock()), list[QueueState]()
    with (
        queue.enqueue("a", IDLE, ignored),
        queue.enqueue("b", IDLE, ignored),
        queue.enqueue("a", PERSON, heard.append),
    ):
        assert heard == [QueueState(state="waiting", ahead=0)]


def test_reading_the_prefix_in_is_nobody_ahead() -> None:
    queue, heard = GpuRequestQueue(now=Clock()), list[QueueState]()
    with queue.enqueue(PREFIX, SCHEDULED, ignored), queue.enqueue("a", PERSON, heard.append):
        assert heard == [QueueState(state="waiting", ahead=0)]


def test_the_reason_is_the_first_that_closes_it_then_the_first_that_ends_turns() -> None:
    queue = GpuRequestQueue()
    queue.close("heat", Phrase("Too hot."))
    queue.close("sleeping", Phrase("Loading."))
    assert queue.reason == "Too hot."
    queue.open("heat")
    assert queue.reason == "Loading."
    queue.open("never closed")
    queue.open("sleeping")
    assert queue.reason is None


@pytest.mark.parametrize(
    ("chat", "priority", "told"),
    [("a", IDLE, [(2.0, 5.0)]), (EVAL, IDLE, []), ("a", SCHEDULED, []), ("a", PERSON, [])],
)
def test_the_time_that_idle_work_held_the_gpu_is_told(
    chat: str, priority: int, told: list[tuple[float, float]]
) -> None:
    clock, idle = SetClock(), list[tuple[float, float]]()
    queue = GpuRequestQueue(now=clock, on_idle=lambda *times: idle.append(times))
    with ExitStack() as stack:
        with queue.enqueue("first", PERSON, ignored):
            stack.enter_context(queue.enqueue(chat, priority, ignored))
            clock.now = 2.0
        clock.now = 5.0
    with queue.enqueue("first", PERSON, ignored), queue.enqueue(chat, priority, ignored):
        pass  # it gave up waiting
    assert idle == told


@pytest.mark.parametrize("why", ["closed", "turn", "urgent"])
def test_idle_work_is_asked_to_stop_for_whatever_is_more_urgent(why: str) -> None:
    queue, idle, person = GpuRequestQueue(capacity=2), list[QueueState](), list[QueueState]()
    with (
        queue.enqueue("a", IDLE, idle.append),
        queue.enqueue("b", PERSON, person.append),
        ExitStack() as stack,
    ):
        held = QueueState(state="held")
        assert (idle, person) == ([held], [held])
        if why == "closed":
            queue.close("heat", Phrase("Too hot."))
        elif why == "turn":
            stack.enter_context(queue.turn("c", ignored))
        else:
            stack.enter_context(queue.enqueue("c", SCHEDULED, ignored))
        assert (idle, person) == ([held, QueueState(state="wanted")], [held])


async def test_before_a_switch_open_turns_end_and_their_chats_alone_are_let_in() -> None:
    queue, heard = GpuRequestQueue(), list[QueueState]()
    order: list[str] = []

    async def switch() -> None:
        async with queue.between_turns("switch", Phrase("Switching.")):
            order.append("switched")

    with ExitStack() as late:
        with queue.turn("a", ignored):
            switching = asyncio.create_task(switch())
            await asyncio.sleep(0)
            assert queue.reason == "Switching."
            late.enter_context(queue.turn("b", heard.append))
            other = late.enter_context(queue.enqueue("b", PERSON, ignored))
            async with queue.acquire("a", SCHEDULED):
                order.append("a")
            assert not other.granted.is_set()
        await asyncio.wait_for(switching, SECONDS)
        assert order == ["a", "switched"]
        assert other.granted.is_set()
        assert heard == [QueueState(state="waiting", reason="Switching."), QueueState(state="held")]
        assert [turn.chat for turn in queue.open_turns] == ["b"]
    assert not queue.open_turns and not queue.holders and not queue.waiters
