"""How long tests wait for what must come, for instance from another process, and how they wait."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECONDS = 100.0  # a busy machine takes ten and more to start a program


async def soon(look: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """What `look` finds; asked every 3 ms, for what gives no other sign."""
    async with asyncio.timeout(seconds):
        while not (found := look()):
            await asyncio.sleep(0.003)
    return found


def limits() -> Iterator[int]:
    """Time limits for a program, in seconds, each longer: a busy machine does not begin within the first."""
    yield from (1, 4, 16, 64)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """The block is quick; time in which anything on this machine waited for a core does not count."""
    began, starved = time.monotonic(), _starved()
    yield
    took = time.monotonic() - began - (_starved() - starved)
    assert took < seconds, f"{took:.2f} s"


def _starved() -> float:
    """Seconds since boot in which some task waited for a core; 0 on a kernel that does not count them."""
    pressure = Path("/proc/pressure/cpu")
    if not pressure.exists():
        return 0.0
    return int(pressure.read_text("ascii").partition("total=")[2].split()[0]) / 1e6
