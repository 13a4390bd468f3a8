from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.localgram import Localgram
from fakes.bot_running import OWNER, TOKEN, TelegramScenario


@pytest.fixture
async def gram() -> AsyncIterator[Localgram]:
    async with Localgram(TOKEN) as gram:
        yield gram


@pytest.fixture
def scenario(gram: Localgram, tmp_path: Path) -> TelegramScenario:
    return TelegramScenario(
        gram, tmp_path, gram.user("Olga Owner", id=OWNER, username="olga", started=True)
    )
