"""`voltaire page` as a person starts it, and killed while something is pressed."""

import asyncio
import os
import re
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import aiohttp
import pytest

from fakes.command_line import start_voltaire
from fakes.page_state import fill_state
from fakes.patience import SECONDS

from .conftest import change_token

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


@pytest.mark.parametrize("after_ms", [0, 20, 200])
async def test_killed_while_pressed_it_counts_once_or_not_at_all(
    tmp_path: Path, after_ms: int
) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    jar = aiohttp.CookieJar(unsafe=True)
    async with (
        page_process(tmp_path) as (process, origin, key),
        aiohttp.ClientSession(cookie_jar=jar) as http,
    ):
        token = change_token(await http.get(f"{origin}/?key={key}"))
        (question,) = (await (await http.get(f"{origin}/api/now")).json())["questions"]

        async def press() -> int:
            fields = {"id": question["id"], "decision": "once"}
            headers = {"Origin": origin, "X-Voltaire-Change": token}
            url = f"{origin}/api/do/decide"
            with suppress(aiohttp.ClientError):
                async with http.post(url, json=fields, headers=headers) as answer:
                    return answer.status
            return 0

        pressing = asyncio.create_task(press())
        await asyncio.sleep(after_ms / 1000)
        process.kill()
        told = await pressing
    with closing(sqlite3.connect(tmp_path / "voltaire.db")) as db:
        ((state,),) = db.execute("SELECT state FROM approvals WHERE call = 'c'").fetchall()
        ((recorded,),) = db.execute("SELECT count(*) FROM ledger WHERE kind = 'decision'")
    assert (state, recorded) in [("once", 1), ("asked", 0)]
    assert state == "once" or told != 200  # what was told has happened
