"""Backend and bot as two processes, and both in one."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.texts import Texts
from fakes.command_line import start_voltaire
from fakes.localgram import Localgram
from fakes.patience import SECONDS, soon


@dataclass
class Home:
    path: Path

    @property
    def environment(self) -> dict[str, str]:
        mine = {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")}
        folders = {"XDG_STATE_HOME": f"{self.path}/s", "XDG_CONFIG_HOME": f"{self.path}/x"}
        return {**mine, **folders, "VOLTAIRE_BACKEND__SOCKET": f"{self.path}/b.sock"}

    @asynccontextmanager
    async def started(self, *words: str, **more: str) -> AsyncIterator[asyncio.subprocess.Process]:
        with (self.path / "log").open("ab") as log:
            process = await start_voltaire(
                *words, env={**self.environment, **more}, stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            process.terminate()
            assert await asyncio.wait_for(process.wait(), SECONDS) == 0


async def test_the_services_start(tmp_path: Path) -> None:
    home = Home(tmp_path)
    async with Localgram("77:pages") as gram:
        olga = gram.user("Olga", id=1, started=True)
        bot = {
            "VOLTAIRE_TELEGRAM__TOKEN": gram.token,
            "VOLTAIRE_TELEGRAM__BASE_URL": gram.url,
            "VOLTAIRE_TELEGRAM__OWNERS": "1",
        }
        async with home.started("backend"), home.started("bot", **bot):
            await soon(lambda: (tmp_path / "b.sock").exists())
            await olga.send("/status")
            assert "pocket" in (await olga.next_message(seconds=SECONDS)).text
        async with home.started("run", **bot):
            await olga.send("/jobs")
            assert (await olga.next_message(seconds=SECONDS)).text == Texts().no_jobs
