"""Updates that come beside each other, as those of a webhook do."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from agent.store import open_store
from agent.store.set_aside import SetAsideTable
from bot.intake import Unparsable, UpdateGate
from fakes.stored import set_aside


async def unparsable() -> None:
    raise Unparsable(ValueError("x"))


async def test_what_comes_while_another_is_set_aside_is_kept_as_well(tmp_path: Path) -> None:
    began, free = asyncio.Event(), asyncio.Event()

    class SlowTable(SetAsideTable):
        async def add_updates(self, updates: Sequence[tuple[str, BaseException, str]]) -> None:
            rows = list(updates)
            began.set()
            await free.wait()
            await super().add_updates(rows)

    async with open_store(tmp_path / "voltaire.db") as store:
        gate = UpdateGate("app", SlowTable(store.database, tmp_path))

        async def take(text: str) -> None:
            await gate.take(text, unparsable)
            await gate.keep_unparsable()

        first = asyncio.create_task(take("1"))
        await began.wait()
        await gate.take("2", unparsable)
        free.set()
        await first
        await gate.keep_unparsable()
        assert [row.raw for row in await set_aside(store)] == ["1", "2"]
