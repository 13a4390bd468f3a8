from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.store import Store, open_store


@dataclass
class Clock:
    """Stands still until it is told to move."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "state" / "voltaire.db", clock) as opened:
        yield opened
