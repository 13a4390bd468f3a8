from pathlib import Path

import pytest

from agent.store import Incoming
from agent.store.errors import StoreDamaged
from bot.settings import Settings
from bot.state import DATABASE, open_checked_state


async def test_a_start_refuses_a_database_that_is_damaged_inside(tmp_path: Path) -> None:
    settings = Settings.model_validate({"state": {"dir": str(tmp_path)}})
    async with open_checked_state(settings) as store:
        for number in range(300):
            await store.inbox.add(Incoming("cli", "s", str(number), "words " * 20))
    path = tmp_path / DATABASE
    content = path.read_bytes()
    at = content.index(b"words words") // 4096 * 4096
    path.write_bytes(content[:at] + b"\xa5" * 4096 + content[at + 4096 :])
    with pytest.raises(StoreDamaged, match="is damaged and was left as it is; restore a backup"):
        async with open_checked_state(settings):
            pass
