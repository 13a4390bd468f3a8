"""The page and the figures that the running bot serves, and the bot killed while something is pressed there."""

import asyncio
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import aiohttp

from agent.approvals import question_id
from backend.server.launch import free_port
from fakes.bot_process import Process
from fakes.bot_running import TOKEN
from fakes.localgram import Localgram
from fakes.patience import soon

from .conftest import change_token

WHAT = "rm -r old"


async def reached(http: aiohttp.ClientSession, url: str) -> str | None:
    with suppress(aiohttp.ClientError):
        async with http.get(url) as answer:
            return await answer.text() if answer.status == 200 else None
    return None


def ask(database: Path, chat: str) -> str:
    """A question as a turn asks it."""
    id = question_id("a1", chat, WHAT, "run", "")
    now = time.time()
    with closing(sqlite3.connect(database)) as db, db:
        db.execute(
            "INSERT INTO chats (key, number, created_at, active_at) VALUES (?, 1, 1, 1)", (chat,)
        )
        db.execute(
            "INSERT INTO approvals (id, chat, turn, call, what, scope, asked_at, expires_at)"
            " VALUES (?, ?, '', 'c', ?, 'run', ?, ?)",
            (id, chat, WHAT, now, now + 3600),
        )
    return id


async def test_killed_while_pressed_it_counts_once_and_the_page_shows_which(tmp_path: Path) -> None:
    page, figures = (f"127.0.0.1:{free_port()}" for _ in range(2))
    origin = f"http://{page}"
    jar = aiohttp.CookieJar(unsafe=True)
    async with Localgram(TOKEN) as gram, aiohttp.ClientSession(cookie_jar=jar) as http:
        owner = gram.user("Tim", id=111, started=True)
        bot = Process(gram, tmp_path, "http://127.0.0.1:9", owner.id)
        bot.configure(PAGE__LISTEN=page, METRICS__LISTEN=figures)

        async def session() -> str:
            """The token of a new session, as soon as the page is served."""
            key = await soon(lambda: key_of(tmp_path))
            await until_served(http, f"{origin}/?key={key}")
            async with http.get(f"{origin}/?key={key}") as answer:
                return change_token(answer)

        async with bot.running():
            token = await session()
            text = await until_served(http, f"http://{figures}/metrics")
            assert "voltaire_listening 1.0" in text or "voltaire_up 0.0" in text
            id = ask(bot.database, "cli")

            async def press() -> int:
                headers = {"Origin": origin, "X-Voltaire-Change": token}
                fields: dict[str, Any] = {"id": id, "decision": "once"}
                with suppress(aiohttp.ClientError):
                    async with http.post(
                        f"{origin}/api/do/decide", json=fields, headers=headers
                    ) as answer:
                        return answer.status
                return 0

            pressing = asyncio.create_task(press())
            await asyncio.sleep(0.01)  # the press is on its way, or has arrived
            await bot.kill()
            told = await pressing
        async with bot.running():
            await session()
            async with http.get(f"{origin}/api/people") as answer:
                questions = (await answer.json())["questions"]
        (shown,) = [each["state"] for each in questions if each["what"] == WHAT]
        with closing(sqlite3.connect(bot.database)) as db:
            ((recorded,),) = db.execute("SELECT count(*) FROM ledger WHERE kind = 'decision'")
        assert (shown, recorded) in [("once", 1), ("asked", 0)]
        assert shown == "once" or told != 200


def key_of(folder: Path) -> str:
    path = folder / "run" / "page.key"
    return path.read_text("utf-8") if path.exists() else ""


async def until_served(http: aiohttp.ClientSession, url: str) -> str:
    while (text := await reached(http, url)) is None:
        await asyncio.sleep(0.05)
    return text
