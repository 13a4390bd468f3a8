from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.rate_limiter import Rate
from bot.telegram import message_calls
from fakes.bot_running import OWNER, TOKEN, TelegramScenario
from fakes.localgram import Localgram


@pytest.fixture
async def gram() -> AsyncIterator[Localgram]:
    async with Localgram(TOKEN) as gram:
        yield gram


@pytest.fixture
def scenario(gram: Localgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TelegramScenario:
    """At a tenth of Telegram's pause between two calls, which test_pacer.py keeps."""
    monkeypatch.setattr(message_calls, "PRIVATE", Rate(burst=5, seconds=0.1, spare=2))
    return TelegramScenario(
        gram, tmp_path, gram.user("Olga Owner", id=OWNER, username="olga", started=True)
    )
