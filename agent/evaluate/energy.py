"""Joules, from samples of the cards' power."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent.aio import BackgroundTasks

SAMPLE_SECONDS = 1.0
Watts = Callable[[], Awaitable[float | None]]


async def unmeasured() -> float | None:
    """The power of a machine without a card that tells it."""
    return None


@dataclass
class Energy:
    joules: float | None = None


@asynccontextmanager
async def metered(watts: Watts) -> AsyncIterator[Energy]:
    """What the cards use while the block runs; None where they do not tell."""
    energy = Energy()
    async with BackgroundTasks() as tasks:
        tasks.start(_sample(watts, energy), "power sampling")
        yield energy


async def _sample(watts: Watts, energy: Energy) -> None:
    now = asyncio.get_running_loop().time
    before = now()
    while (power := await watts()) is not None:
        energy.joules = energy.joules or 0.0
        await asyncio.sleep(SAMPLE_SECONDS)
        energy.joules += power * (now() - before)
        before = now()
