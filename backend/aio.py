"""Waits that asyncio lacks: for the first of several coroutines, and for an event with a time limit."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def first_of(*coroutines: Coroutine[Any, Any, Any]) -> list[asyncio.Task[Any]]:
    """Run all until one ends or this is cancelled, then cancel and await the others.

    Returns the finished tasks in the order of the arguments, without reading their results.
    """
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return tasks


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event for at most `seconds`; return whether it is set."""
    # Not asyncio.wait_for: in 3.11 it swallows a cancellation that arrives as the wait ends.
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True
