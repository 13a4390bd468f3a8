"""`voltaire page` as a person starts it, and killed while something is pressed."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fakes.command_line import start_voltaire
from fakes.page_state import fill_state
from fakes.patience import SECONDS

ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/\?key=(\S+)")


@asynccontextmanager
async def page_process(folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str, str]]:
    """The command, its origin and its key."""
    process = await start_voltaire(
        *("page", "--listen", "127.0.0.1:0"),
        env={
            **os.environ,
            "VOLTAIRE_STATE__DIR": str(folder),
            "VOLTAIRE_BACKEND__SOCKET": str(folder / "b.sock"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "DISPLAY": "",
            "WAYLAND_DISPLAY": "",
        },
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout
        async with asyncio.timeout(SECONDS):
            line = (await process.stdout.readline()).decode()
        found = ADDRESS.fullmatch(line.strip())
        assert found, line
        yield process, found[1], found[2]
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        async with asyncio.timeout(SECONDS):
            await process.wait()


async def test_it_ends_by_ctrl_c_and_leaves_its_key(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    async with page_process(tmp_path) as (process, _, key):
        pass
    assert process.returncode == 130
    assert (tmp_path / "run" / "page.key").read_text() == key
