"""Urgency, fairness, idle work that stops, closed queues, drained ones, and holders that vanish."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from backend.control.gpu_queue import HEAT, GpuRequestQueue
from backend.protocol import IDLE, PERSON, SCHEDULED, QueueState
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
        queue.close(HEAT, "Too hot.")
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
        async with queue.drained("switch", "Switching."):
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


async def test_several_slots_hold_several_turns() -> None:
    queue = GpuRequestQueue(capacity=2)
    async with queue.acquire("a", PERSON), queue.acquire("b", PERSON):
        assert [ticket.chat for ticket in queue.holders] == ["a", "b"]


async def test_a_turn_that_never_ends_holds_a_switch_up_for_a_while_only() -> None:
    queue = GpuRequestQueue()
    with queue.turn("a", lambda state: None):
        async with queue.between_turns("switch", "Switching.", patience=0.05):
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
