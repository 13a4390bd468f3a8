"""Server time of the owner's page over a state of many turns.

    python -m bench.page [--turns N] [--rounds N]

Prints for each view the first answer and the median, in milliseconds, the processor's share of the median (what a
machine without other work would need), the size of the answer, and what an open page costs. Goals: first view 150 ms, others 50 ms, 1 % of a core, 5 MiB.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

import aiohttp

from backend.client import BackendClient
from bot.cli.status import status_json
from bot.page.server import serve_page
from bot.settings import Settings
from bot.state import resident_mib
from fakes.page_state import backend_with_card, fill_state

VIEWS = (
    "now",
    "history?span=month",
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
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
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


if __name__ == "__main__":
    main()
