from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.sandbox.limits import SandboxLimits
from agent.sandbox.sandbox import Sandboxes, open_sandboxes
from bot.telegram import handlers


@pytest.fixture(autouse=True)
def _commands_in_one_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registered in six, they were half of what a bot asks of Telegram in a short test."""
    monkeypatch.setattr(handlers, "languages", lambda: ("en",))


@pytest.fixture
async def sandboxes(tmp_path: Path) -> AsyncIterator[Sandboxes]:
    async with open_sandboxes(
        tmp_path / "boxes", limits=SandboxLimits(), repos=[], zone="UTC", report=str
    ) as opened:
        yield opened
