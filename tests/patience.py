"""How long tests wait for what must come, for instance from another process, and how they wait."""

import asyncio
from collections.abc import Callable
from typing import Any

SECONDS = 100.0  # a busy machine takes ten and more to start a program


async def soon(look: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """What `look` finds; asked every 3 ms, for what gives no other sign."""
    async with asyncio.timeout(seconds):
        while not (found := look()):
            await asyncio.sleep(0.003)
    return found
