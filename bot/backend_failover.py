"""A command that found a backend running keeps working when that one ends.

Two commands may run beside each other, the second with the backend that the
first started for its own duration.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from backend.client import BackendClient, BackendUnavailable

RETURN_SECONDS = 30.0  # a service that was restarted answers again within seconds
TAKEOVER_SECONDS = 5.0  # more than a unit's RestartSec: what is coming back stays the owner
_LOOK = 0.1

Own = Callable[[], AbstractAsyncContextManager[Any]]


async def answers(client: BackendClient) -> bool:
    try:
        await client.status()
    except BackendUnavailable:
        return False
    return True


async def answers_within(client: BackendClient, seconds: float) -> bool:
    """Whether a backend answers now, or comes back in that time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not await answers(client):
                await asyncio.sleep(_LOOK)
            return True
    return False


@asynccontextmanager
async def succeeding(
    client: BackendClient, own: Own, seconds: float = TAKEOVER_SECONDS
) -> AsyncIterator[None]:
    """For the block: once the running backend is gone for `seconds`, one of our own serves."""
    task = asyncio.create_task(_succeed(client, own, seconds))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _succeed(client: BackendClient, own: Own, seconds: float) -> None:
    while True:
        await _gone(client)
        if not await answers_within(client, seconds):
            async with own() as backend:
                if backend:
                    await backend.ended()


async def _gone(client: BackendClient) -> None:
    """Return when the backend has ended: its stream of alerts ends with it."""
    with suppress(BackendUnavailable):
        async for _ in client.events():
            pass
