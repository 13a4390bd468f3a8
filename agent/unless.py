"""Work that is dropped at once when something more urgent comes."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def unless(event: asyncio.Event, work: Coroutine[Any, Any, object]) -> None:
    """Do the work, or cancel it when the event is set; its errors are raised."""
    task, called = asyncio.create_task(work), asyncio.create_task(event.wait())
    try:
        await asyncio.wait({task, called}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        called.cancel()
        if not task.done():
            task.cancel()
        await asyncio.wait({task, called})
    if not task.cancelled():
        task.result()
