"""Whose turn it is: urgency, fairness, idle work that drops, heat, and holders that vanish."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from backend.control.gpu_queue import HEAT, GpuQueue
from backend.protocol import IDLE, PERSON, SCHEDULED, QueueState


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


async def order(gpu_queue: GpuQueue, waiters: list[tuple[str, int]]) -> list[str]:
    """In which order these are let in, each for a moment, after the lane was busy."""
    served: list[str] = []

    async def turn(chat: str, priority: int) -> None:
        async with gpu_queue.acquire(chat, priority):
            served.append(chat)

    async with asyncio.TaskGroup() as group, gpu_queue.acquire("first", PERSON):
        for chat, priority in waiters:
            group.create_task(turn(chat, priority))
            await asyncio.sleep(0)
    return served


async def test_urgent_first_then_the_chat_served_longest_ago() -> None:
    gpu_queue = GpuQueue(now=Clock())
    assert await order(
        gpu_queue, [("idle", IDLE), ("job", SCHEDULED), ("b", PERSON), ("a", PERSON)]
    ) == ["b", "a", "job", "idle"]
    assert await order(gpu_queue, [("a", PERSON), ("b", PERSON), ("new", PERSON)]) == [
        "new",
        "b",
        "a",
    ]


async def test_scheduled_work_is_not_starved() -> None:
    clock = Clock()
    gpu_queue = GpuQueue(now=clock)
    served: list[str] = []

    async def turn(chat: str, priority: int) -> None:
        async with gpu_queue.acquire(chat, priority):
            served.append(chat)

    async with asyncio.TaskGroup() as group, gpu_queue.acquire("a", PERSON):
        group.create_task(turn("job", SCHEDULED))
        await asyncio.sleep(0)
        clock.now += 121
        group.create_task(turn("a", PERSON))
        await asyncio.sleep(0)
    assert served == ["job", "a"]


async def test_idle_work_hears_that_somebody_waits() -> None:
    gpu_queue, heard = GpuQueue(now=Clock()), list[QueueState]()
    async with gpu_queue.acquire("warm", IDLE, heard.append):
        other = asyncio.create_task(gpu_queue.acquire("other", IDLE).__aenter__())
        await asyncio.sleep(0)
        assert heard == [QueueState(state="held")]
        person = asyncio.create_task(gpu_queue.acquire("a", PERSON).__aenter__())
        await asyncio.sleep(0)
        assert heard == [QueueState(state="held"), QueueState(state="wanted")]
    await person
    other.cancel()
    assert [ticket.chat for ticket in gpu_queue.holders] == ["a"]


async def test_heat_lets_nobody_in_and_holders_go_on() -> None:
    gpu_queue, holder, waiter = GpuQueue(now=Clock()), list[QueueState](), list[QueueState]()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(gpu_queue.acquire("a", PERSON, holder.append))
        gpu_queue.close(HEAT, "Too hot.")
        stack.enter_context(gpu_queue.enqueue("b", PERSON, waiter.append))
        gpu_queue.open(HEAT)
    assert holder == [QueueState(state="held")]
    assert waiter == [
        QueueState(state="waiting", ahead=1, reason="Too hot."),
        QueueState(state="waiting", ahead=1),
    ]


async def test_a_waiter_that_gives_up_leaves_no_trace() -> None:
    gpu_queue = GpuQueue()
    async with gpu_queue.acquire("a", PERSON):
        waiting = asyncio.create_task(gpu_queue.acquire("b", PERSON).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert gpu_queue.waiters == []
    assert (gpu_queue.holders, gpu_queue.demand.is_set()) == ([], False)


async def test_emptied_waits_for_holders_and_keeps_others_out() -> None:
    gpu_queue = GpuQueue()
    events: list[str] = []

    async def switch() -> None:
        async with gpu_queue.drained("switch", "Switching."):
            events.append("empty")
            assert gpu_queue.reason == "Switching."

    async def turn() -> None:
        async with gpu_queue.acquire("b", PERSON):
            events.append("b")

    async with asyncio.TaskGroup() as group, gpu_queue.acquire("a", PERSON):
        group.create_task(switch())
        await asyncio.sleep(0)
        group.create_task(turn())
        await asyncio.sleep(0)
        events.append("a done")
    assert events == ["a done", "empty", "b"]


async def test_several_slots_hold_several_turns() -> None:
    gpu_queue = GpuQueue(capacity=2)
    async with gpu_queue.acquire("a", PERSON), gpu_queue.acquire("b", PERSON):
        assert [ticket.chat for ticket in gpu_queue.holders] == ["a", "b"]
