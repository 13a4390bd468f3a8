from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.sandbox.sandbox import Sandbox
from fakes.sandbox_box import opened
from fakes.web_server import Site, site


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with opened(tmp_path / "state") as sandboxes:
        yield await sandboxes.of("cli")


@pytest.fixture
async def web() -> AsyncIterator[Site]:
    async with site() as served:
        yield served
