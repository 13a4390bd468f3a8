"""Waits that asyncio lacks: several tasks until the first ends, and an event within seconds."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def first_of(*works: Coroutine[Any, Any, Any]) -> list[asyncio.Task[Any]]:
    """Run all until one ends or this is cancelled, then cancel and await the others.

    Returns the finished tasks in the order of the arguments; reads no result of theirs.
    """
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return tasks


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event, at most so many seconds; whether it is set."""
    # Not asyncio.wait_for: on 3.11 it swallows a cancellation that comes as the wait ends.
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True
