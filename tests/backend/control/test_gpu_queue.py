"""Whose turn it is: urgency, fairness, idle work that drops, heat, and holders that vanish."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from backend.control.gpu_queue import HOT, Lanes
from backend.protocol import IDLE, PERSON, SCHEDULED, LaneState


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


async def order(lanes: Lanes, waiters: list[tuple[str, int]]) -> list[str]:
    """In which order these are let in, each for a moment, after the lane was busy."""
    served: list[str] = []

    async def turn(chat: str, priority: int) -> None:
        async with lanes.hold(chat, priority):
            served.append(chat)

    async with asyncio.TaskGroup() as group, lanes.hold("first", PERSON):
        for chat, priority in waiters:
            group.create_task(turn(chat, priority))
            await asyncio.sleep(0)
    return served


async def test_urgent_first_then_the_chat_served_longest_ago() -> None:
    lanes = Lanes(now=Clock())
    assert await order(
        lanes, [("idle", IDLE), ("job", SCHEDULED), ("b", PERSON), ("a", PERSON)]
    ) == ["b", "a", "job", "idle"]
    assert await order(lanes, [("a", PERSON), ("b", PERSON), ("new", PERSON)]) == ["new", "b", "a"]


async def test_scheduled_work_is_not_starved() -> None:
    clock = Clock()
    lanes = Lanes(now=clock)
    served: list[str] = []

    async def turn(chat: str, priority: int) -> None:
        async with lanes.hold(chat, priority):
            served.append(chat)

    async with asyncio.TaskGroup() as group, lanes.hold("a", PERSON):
        group.create_task(turn("job", SCHEDULED))
        await asyncio.sleep(0)
        clock.now += 121
        group.create_task(turn("a", PERSON))
        await asyncio.sleep(0)
    assert served == ["job", "a"]


async def test_idle_work_hears_that_somebody_waits() -> None:
    lanes, heard = Lanes(now=Clock()), list[LaneState]()
    async with lanes.hold("warm", IDLE, heard.append):
        other = asyncio.create_task(lanes.hold("other", IDLE).__aenter__())
        await asyncio.sleep(0)
        assert heard == [LaneState(state="held")]
        person = asyncio.create_task(lanes.hold("a", PERSON).__aenter__())
        await asyncio.sleep(0)
        assert heard == [LaneState(state="held"), LaneState(state="wanted")]
    await person
    other.cancel()
    assert [ticket.chat for ticket in lanes.holders] == ["a"]


async def test_heat_pauses_holders_and_lets_nobody_in() -> None:
    lanes, holder, waiter = Lanes(now=Clock()), list[LaneState](), list[LaneState]()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(lanes.hold("a", PERSON, holder.append))
        lanes.close(HOT, "Too hot.")
        stack.enter_context(lanes.joined("b", PERSON, waiter.append))
        lanes.open(HOT)
    assert holder == [
        LaneState(state="held"),
        LaneState(state="paused", reason="Too hot."),
        LaneState(state="held"),
    ]
    assert waiter == [
        LaneState(state="waiting", ahead=1, reason="Too hot."),
        LaneState(state="waiting", ahead=1),
    ]


async def test_a_waiter_that_gives_up_leaves_no_trace() -> None:
    lanes = Lanes()
    async with lanes.hold("a", PERSON):
        waiting = asyncio.create_task(lanes.hold("b", PERSON).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert lanes.waiters == []
    assert (lanes.holders, lanes.demand.is_set()) == ([], False)


async def test_emptied_waits_for_holders_and_keeps_others_out() -> None:
    lanes = Lanes()
    events: list[str] = []

    async def switch() -> None:
        async with lanes.emptied("switch", "Switching."):
            events.append("empty")
            assert lanes.reason == "Switching."

    async def turn() -> None:
        async with lanes.hold("b", PERSON):
            events.append("b")

    async with asyncio.TaskGroup() as group, lanes.hold("a", PERSON):
        group.create_task(switch())
        await asyncio.sleep(0)
        group.create_task(turn())
        await asyncio.sleep(0)
        events.append("a done")
    assert events == ["a done", "empty", "b"]


async def test_several_slots_hold_several_turns() -> None:
    lanes = Lanes(capacity=2)
    async with lanes.hold("a", PERSON), lanes.hold("b", PERSON):
        assert [ticket.chat for ticket in lanes.holders] == ["a", "b"]
