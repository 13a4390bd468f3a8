from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.sandbox.limits import SandboxLimits
from agent.sandbox.sandbox import Sandboxes, open_sandboxes


@pytest.fixture
async def sandboxes(tmp_path: Path) -> AsyncIterator[Sandboxes]:
    async with open_sandboxes(
        tmp_path / "boxes", limits=SandboxLimits(), repos=[], zone="UTC", report=str
    ) as opened:
        yield opened
