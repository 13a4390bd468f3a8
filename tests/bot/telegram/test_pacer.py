"""The pacer, on a loop whose time jumps to the next timer."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from telegram.error import RetryAfter

from bot.rate_limiter import Urgency
from bot.telegram.message_calls import GROUP, OVERALL, Pacers


class JumpingLoop(asyncio.SelectorEventLoop):
    """Does not wait for a timer: its clock goes on to it."""

    def __init__(self) -> None:
        super().__init__(_Jumping())
        self._selector: _Jumping

    def time(self) -> float:
        return self._selector.now


class _Jumping(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


def run(scene: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        runner.run(scene)


class Calls:
    """Notes what was called when."""

    def __init__(self) -> None:
        self.made: list[tuple[str, float]] = []

    def __call__(self, name: str, *refusals: int) -> Callable[[], Awaitable[str]]:
        left = list(refusals)

        async def call() -> str:
            self.made.append((name, round(asyncio.get_running_loop().time(), 1)))
            if left:
                raise RetryAfter(left.pop(0))
            return name

        return call


def test_a_burst_then_one_a_second() -> None:
    async def scene() -> None:
        calls, pacer = Calls(), Pacers().of(1)
        await asyncio.gather(*(pacer.run(calls(str(n))) for n in range(8)))
        times = [(str(n), float(max(0, n - 4))) for n in range(8)]
        assert calls.made == times

    run(scene())


def test_a_group_never_gets_more_than_twenty_in_a_minute() -> None:
    async def scene() -> None:
        calls, pacer = Calls(), Pacers().of(-1)
        await asyncio.gather(*(pacer.run(calls(str(n))) for n in range(60)))
        times = [at for _, at in calls.made]
        assert 18 <= max(sum(t <= s < t + 60 for s in times) for t in times) <= 20
        assert GROUP.burst + 60 / GROUP.seconds == 20

    run(scene())


def test_finals_overtake_progress() -> None:
    async def scene() -> None:
        calls, pacer = Calls(), Pacers().of(1)
        async with asyncio.TaskGroup() as group:
            for n in range(5):
                group.create_task(pacer.run(calls(f"p{n}"), Urgency.PROGRESS))
            group.create_task(pacer.run(calls("final")))
        # Progress leaves two calls of the burst of five to finals.
        at_once = [("p0", 0.0), ("p1", 0.0), ("p2", 0.0), ("final", 0.0)]
        assert calls.made == [*at_once, ("p3", 2.0), ("p4", 3.0)]

    run(scene())


def test_a_refusal_is_obeyed_and_holds_up_no_other_chat() -> None:
    async def scene() -> None:
        calls, pacers = Calls(), Pacers()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(pacers.of(1).run(calls("a", 30)))
            group.create_task(pacers.of(1).run(calls("b")))
            group.create_task(pacers.of(2).run(calls("other")))
        assert first.result() == "a"
        assert calls.made == [("a", 0.0), ("other", 0.0), ("a", 30.1), ("b", 30.1)]

    run(scene())


def test_what_may_be_left_out_is_while_a_chat_is_paused() -> None:
    async def scene() -> None:
        calls, pacer = Calls(), Pacers().of(1)
        await pacer.run_unless_paused("typing", calls("typing", 10))
        await pacer.run_unless_paused("typing", calls("typing"))
        await asyncio.sleep(11)
        await pacer.run_unless_paused("typing", calls("typing"))
        pacer.pause(RetryAfter(5))
        await pacer.run_unless_paused("typing", calls("typing"))
        assert calls.made == [("typing", 0.0), ("typing", 11.0)]

    run(scene())


def test_cancelled_waiters_leave_the_queue() -> None:
    async def scene() -> None:
        calls, pacer = Calls(), Pacers().of(1)
        inside = asyncio.Event()

        async def slow() -> None:
            inside.set()
            await asyncio.sleep(3600)

        running = asyncio.create_task(pacer.run(slow))
        await inside.wait()
        waiting = asyncio.create_task(pacer.run(calls("never")))
        await asyncio.sleep(0)
        waiting.cancel()
        running.cancel()
        await asyncio.wait([waiting, running])
        assert await pacer.run(calls("next")) == "next"
        assert calls.made == [("next", 0.0)]

    run(scene())


def test_the_overall_rate_is_shared_by_all_chats() -> None:
    async def scene() -> None:
        calls, pacers = Calls(), Pacers()
        await asyncio.gather(*(pacers.of(n).run(calls(str(n))) for n in range(1, 300)))
        assert calls.made[OVERALL.burst - 1][1] == 0.0
        assert calls.made[-1][1] == pytest.approx((299 - OVERALL.burst) / 28, abs=0.1)

    run(scene())
