"""One installation to measure: a phone, a model server at some URL, a state of its own."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.service import VOLTAIRE, environment
from fakes.localgram import Localgram, Person

TOKEN = "1000001:bench"
OWNER = 7
# Somebody reads before they write again; the bot sends about one message a second to a chat, as
# Telegram wants it, so that a faster person would be measured waiting for that.
READING_SECONDS = 2.0


@dataclass(frozen=True)
class Installation:
    """`url` is the model server's. Commands run in processes of their own, killed at the end."""

    gram: Localgram
    owner: Person
    url: str
    home: Path

    def environment(self, allow: Sequence[int] = ()) -> dict[str, str]:
        return environment(
            self.home,
            TELEGRAM__TOKEN=TOKEN,
            TELEGRAM__BASE_URL=self.gram.url,
            TELEGRAM__OWNERS=OWNER,
            TELEGRAM__ALLOW=",".join(map(str, allow)),
            BACKEND__KIND="external",
            BACKEND__URL=self.url,
        )

    @asynccontextmanager
    async def process(
        self, *words: str, allow: Sequence[int] = ()
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            VOLTAIRE,
            *words,
            env=self.environment(allow),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


@asynccontextmanager
async def installation(url: str) -> AsyncIterator[Installation]:
    """A new one; nothing of it is left afterwards."""
    with tempfile.TemporaryDirectory(prefix="vb-", ignore_cleanup_errors=True) as folder:
        async with Localgram(TOKEN) as gram:
            owner = gram.user("Ada", id=OWNER, started=True)
            yield Installation(gram, owner, url, Path(folder))
