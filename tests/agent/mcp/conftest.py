"""A real sandbox, a real store, and servers that run in sandboxes of their own."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from agent.sandbox.sandbox import Sandboxes
from agent.store import Store, open_store
from fakes.sandbox_box import opened
from fakes.tool_servers import FakeServers


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "voltaire.db") as store:
        yield store


@pytest.fixture
async def sandboxes(tmp_path: Path) -> AsyncIterator[Sandboxes]:
    async with opened(tmp_path / "state") as sandboxes:
        yield sandboxes


@pytest.fixture
async def servers(tmp_path: Path, store: Store, sandboxes: Sandboxes) -> AsyncIterator[FakeServers]:
    async with AsyncExitStack() as stack:
        yield FakeServers(tmp_path / "state", store, sandboxes, stack)
