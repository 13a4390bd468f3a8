"""Server time of the owner's page over a state of many turns.

    python -m bench.page [--turns N] [--rounds N] [--open MINUTES [--pace N]]

Prints for each view the first answer and the median, in milliseconds, the processor's share of the median (what a
machine without other work would need), the size of the answer, and what an open page costs. Goals: first view 150 ms,
others 50 ms, 1 % of a core, 5 MiB.

With --open, instead: a bot in a process of its own over the same state, its processor time and memory while nobody
looks, while the page is open and nothing happens, while the state changes with every look, and after it was closed.
--pace has it look N times as often: what a day does to the memory, in minutes (the shares are of that pace).
"""

import argparse
import asyncio
import os
import socket
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

import aiohttp

from backend.client import BackendClient
from bot.cli.status import status_json
from bot.localgram import Localgram
from bot.page.server import serve_page
from bot.settings import Settings
from bot.state import resident_mib
from fakes.bot_process import Process
from fakes.bot_running import TOKEN
from fakes.page_state import backend_with_card, fill_state
from fakes.patience import soon

VIEWS = (
    "now",
    "drawings?span=month",
    "turns?choices=1",
    "turns?words=invoice+plumber",
    "turns?tool=remember",
    "turns?reread=1",
    "turns?slow=30",
    "turns?reason=error",
    "turns/t00500",
    "turns/t00500/prompt",
    "chats",
    "chat?chat=tg:111",
    "chat?chat=tg:111&words=invoice",
    "messages?conversation=1",
    "jobs",
    "deliveries",
    "people",
    "settings",
    "logs",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--idle-seconds", type=float, default=20.0)
    parser.add_argument("--open", type=float, default=0.0, metavar="MINUTES")
    parser.add_argument("--pace", type=float, default=1.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.open:
            asyncio.run(open_beside_bot(Path(folder), asked.turns, 60 * asked.open, asked.pace))
            return
        asyncio.run(bench(Path(folder), asked.turns, asked.rounds, asked.idle_seconds))


async def bench(folder: Path, turns: int, rounds: int, idle_seconds: float) -> None:
    database = folder / "voltaire.db"
    await fill_state(database, turns)
    print(f"{turns:,} turns, {database.stat().st_size / 2**20:.0f} MiB")
    settings = Settings(state={"dir": folder}, backend={"socket": str(folder / "b.sock")})
    async with (
        backend_with_card(folder / "b.sock"),
        BackendClient(folder / "b.sock") as backend,
        serve_page(settings, backend, status_json, "127.0.0.1:0") as page,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http,
    ):
        async with http.get(page.address):
            pass
        for view in VIEWS:
            took, used, size = list[float](), list[float](), 0
            for _ in range(rounds):
                began, cpu = time.perf_counter(), time.process_time()
                async with http.get(f"{page.origin}/api/{view}") as answer:
                    size = len(await answer.read())
                    assert answer.status == 200, (view, answer.status)
                took.append(1000 * (time.perf_counter() - began))
                used.append(1000 * (time.process_time() - cpu))
            print(
                f"{view:34} {took[0]:6.1f} {statistics.median(took):6.1f} ms,"
                f" {statistics.median(used):5.1f} ms of a core {size:9,} bytes"
            )
        await open_page(http, f"{page.origin}/api/live", idle_seconds)


async def open_page(http: aiohttp.ClientSession, url: str, seconds: float) -> None:
    """What one open page costs; the process also holds the stand-in for the backend and the reader."""
    before = resident_mib(os.getpid())
    async with http.get(url) as answer:
        await answer.content.readline()
        began, cpu = time.perf_counter(), time.process_time()
        reading = asyncio.create_task(answer.content.read())
        await asyncio.sleep(seconds)
        reading.cancel()
        share = (time.process_time() - cpu) / (time.perf_counter() - began)
    grown = (resident_mib(os.getpid()) or 0) - (before or 0)
    print(f"open for {seconds:.0f} s: {100 * share:.2f} % of a core, {grown:.1f} MiB")


async def open_beside_bot(folder: Path, turns: int, seconds: float, pace: float) -> None:
    """What the running bot pays for a page that is open for so long."""
    await fill_state(folder / "voltaire.db", turns)
    settle(folder / "voltaire.db")
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    async with (
        backend_with_card(folder / "b.sock") as backend,
        Localgram(TOKEN) as gram,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http,
    ):
        owner = gram.user("Tim", id=111, started=True)
        model = f"http://127.0.0.1:{backend.port}"
        bot = Process(gram, folder, model, owner.id, "bot")
        bot.configure(PAGE__LISTEN=listen)
        bot.first = (
            "import bot.page.live as live, bot.page.views as views\n"
            f"live.LOOK_SECONDS /= {pace}; live.KNOWN_SECONDS /= {pace}; views.KNOWN_SECONDS /= {pace}"
            if pace != 1
            else ""
        )
        async with bot.running():
            key = folder / "run" / "page.key"
            await soon(lambda: key.exists() and key.read_text("utf-8"))
            await soon(lambda: connects(listen))
            await asyncio.sleep(20)  # what a start leaves to do
            began = bot.resident_mib()
            await cost(bot, "nobody looks", seconds / 20, began)
            async with http.get(f"http://{listen}/?key={key.read_text('utf-8')}") as answer:
                assert answer.status == 200
            async with asyncio.TaskGroup() as group:
                tab = group.create_task(look(http, f"http://{listen}", pace))
                for _ in range(5):
                    await cost(bot, "open", seconds / 5, began)
                busy = group.create_task(change(folder / "voltaire.db", pace))
                await cost(bot, "open, the state changes", seconds / 5, began)
                busy.cancel()
                tab.cancel()
            await cost(bot, "closed again", seconds / 20, began)


def settle(database: Path) -> None:
    """Nothing is left to do for the bot."""
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("UPDATE turns SET state = 'done', reason = 'done', ended_at = started_at")
        db.execute("UPDATE inbox SET state = 'done'")
        db.execute("UPDATE approvals SET state = 'denied' WHERE state = 'asked'")


def connects(listen: str) -> bool:
    host, _, port = listen.rpartition(":")
    with closing(socket.socket()) as probe:
        return probe.connect_ex((host, int(port))) == 0


async def look(http: aiohttp.ClientSession, origin: str, pace: float) -> None:
    """What the first view asks for while its tab is shown: the stream, and the cards' history each minute."""
    lasting = aiohttp.ClientTimeout(total=None)
    async with (
        http.get(f"{origin}/api/live", timeout=lasting) as stream,
        asyncio.TaskGroup() as group,
    ):
        group.create_task(discard(stream.content))
        while True:
            async with http.get(f"{origin}/api/drawings?span=hour") as answer:
                await answer.read()
            await asyncio.sleep(60 / pace)


async def discard(stream: aiohttp.StreamReader) -> None:
    while await stream.readany():
        pass


async def change(database: Path, pace: float) -> None:
    """A commit each two seconds, as while a turn runs."""
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        while True:
            db.execute("UPDATE chats SET active_at = ? WHERE key = 'tg:222'", (time.time(),))
            await asyncio.sleep(2 / pace)


async def cost(bot: Process, name: str, seconds: float, began_mib: float) -> None:
    began, cpu = time.perf_counter(), bot.cpu_seconds()
    await asyncio.sleep(seconds)
    share = (bot.cpu_seconds() - cpu) / (time.perf_counter() - began)
    grown = bot.resident_mib() - began_mib
    print(
        f"{name:24} {seconds:6.0f} s: {100 * share:5.2f} % of a core, {grown:+.1f} MiB", flush=True
    )


if __name__ == "__main__":
    main()
