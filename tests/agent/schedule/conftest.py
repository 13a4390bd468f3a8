from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.store import Store, open_store


@dataclass
class Clock:
    now: float = datetime(2026, 11, 20, 14, 0, tzinfo=UTC).timestamp()

    def __call__(self) -> float:
        return self.now

    def to(self, text: str) -> None:
        self.now = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "s.db", clock) as store:
        yield store
