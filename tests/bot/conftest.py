from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.sandbox.limits import SandboxLimits
from agent.sandbox.sandbox import Sandboxes
from bot.telegram import handlers
from fakes.sandbox_box import opened


@pytest.fixture(autouse=True)
def _commands_in_one_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered in six, they were half of what a bot asks of Telegram in a short test."""
    monkeypatch.setattr(handlers, "languages", lambda: ("en",))


@pytest.fixture
async def sandboxes(tmp_path: Path) -> AsyncIterator[Sandboxes]:
    async with opened(
        tmp_path / "boxes", limits=SandboxLimits(), zone="UTC", report=str
    ) as sandboxes:
        yield sandboxes
