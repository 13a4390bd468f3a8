from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fakes.sandbox_box import Box, opened


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Box]:
    async with opened(tmp_path / "state") as sandboxes:
        yield Box(await sandboxes.of("cli"))
