"""Waits of the backend: no cancellation is swallowed, nothing is left running."""

import asyncio

import pytest

from backend.aio import first_of, set_within
from fakes.patience import SECONDS


async def test_a_cancellation_that_comes_with_the_event_is_not_swallowed() -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(set_within(event, SECONDS))
    await asyncio.sleep(0)
    event.set()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_an_event_that_does_not_come_in_time_is_told() -> None:
    event = asyncio.Event()
    assert not await set_within(event, 0.001)
    event.set()
    assert await set_within(event, 0)


async def test_the_first_that_ends_cancels_the_others() -> None:
    async def answer() -> int:
        return 7

    first, other = await first_of(answer(), asyncio.Event().wait())
    assert first.result() == 7
    assert other.cancelled()


async def test_an_error_is_left_to_the_caller() -> None:
    async def fail() -> None:
        raise ValueError("no")

    failed, _ = await first_of(fail(), asyncio.Event().wait())
    assert str(failed.exception()) == "no"


async def test_a_cancellation_ends_all() -> None:
    ended: list[str] = []

    async def work(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    waiting = asyncio.create_task(first_of(work("a"), work("b")))
    await asyncio.sleep(0.001)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert sorted(ended) == ["a", "b"]
