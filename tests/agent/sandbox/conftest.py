from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.sandbox.sandbox import Sandbox
from fakes.sandbox_box import opened


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with opened(tmp_path / "state") as sandboxes:
        yield await sandboxes.of("cli")
