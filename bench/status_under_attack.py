"""How long /status takes while the bot reads the worst of each kind of foreign bytes.

    python -m bench.status_under_attack

The real program in a process of its own, the local Bot API server, a scripted model. One owner's
turn reads the input; another owner asks for /status again and again meanwhile, and shall be
answered within 200 ms (docs/security.md names the bounds).
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from aiohttp import web

from bot.localgram import Localgram, Person, is_final
from fakes.bot_process import Process
from fakes.bot_running import OWNER, TOKEN
from fakes.flooding_model import FLOODS
from fakes.model_scripted import Json, Line, ModelServer, Reply, calls, says
from fakes.web_server import Site, site

PAUSE = 1.0  # between two questions: Telegram's rate for a chat
QUESTIONS = 4  # at least, for each input
FLOOD_BYTES = 24_000_000
PUBLIC = """
import agent.sandbox.hosts as hosts
hosts.Hosts.__init__.__defaults__ = (lambda address: True,)
"""  # the site is on loopback
TOOLS = "bash,read_file,edit_file,write_file,web_fetch"
CONNECT = (
    "import socket\nheld = [socket.create_connection(('127.0.0.1', 3128)) for _ in range(900)]"
)


def inputs(web_host: str) -> Mapping[str, Line]:
    """What the model says first; by then the file `big` is there, 8 MB in one line."""
    found: dict[str, Line] = {
        "nothing": says("Hello."),
        "output of a command": calls(
            "bash", command="yes \"$(printf '\\033[31m\\342\\200\\256')\""
        ),
        "read_file, one line of 8 MB": calls("read_file", path="big"),
        "edit_file that misses": calls("edit_file", path="big", old="ab" * 20_000, new="c"),
        "900 connections": calls("bash", command=f'python3 -c "{CONNECT}"; sleep 3', seconds=6),
    }
    for page in ("tags", "comments", "entities"):
        found[f"a page of {page}"] = calls("web_fetch", url=f"http://{web_host}/{page}")
    for name, (head, start, piece) in FLOODS.items():
        if b"json" not in head and b"gzip" not in head:
            found[f"the model: {name}"] = Reply(raw=(start, *[piece] * (FLOOD_BYTES // len(piece))))
    return found


def hostile_pages(served: Site) -> None:
    for name, unit in (("tags", "<a "), ("comments", "<!--"), ("entities", "&amp")):
        text = unit * ((4 << 20) // len(unit))
        served.pages[f"/{name}"] = lambda text=text: web.Response(  # type: ignore[misc]
            text=text, content_type="text/html"
        )


async def longest(reader: Person, asker: Person) -> tuple[float, int]:
    """Milliseconds of the slowest /status while a turn runs, and how many were asked."""
    times: list[float] = []
    await reader.send("go on")
    answered = asyncio.ensure_future(reader.next_message(where=is_final, seconds=120))
    while len(times) < QUESTIONS or not answered.done():
        began = time.perf_counter()
        await asker.send("/status")
        await asker.next_message(seconds=60)
        times.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(PAUSE)
    await answered
    return max(times), len(times)


async def main() -> None:
    said: list[Line] = []

    def script(_request: Json) -> Line:
        return said.pop(0) if said else says("Done.")

    # Short, and open to the user that tools act as.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        async with Localgram(TOKEN) as gram, ModelServer(script=script) as model, site() as served:
            hostile_pages(served)
            olga = gram.user("Olga Owner", id=OWNER, started=True)
            oscar = gram.user("Oscar Owner", id=OWNER + 1, started=True)
            os.environ["VOLTAIRE_AGENT__SANDBOX__NETWORK"] = "true"
            os.environ["VOLTAIRE_AGENT__SANDBOX__ALLOW_HOSTS"] = served.host
            os.environ["VOLTAIRE_AGENT__TOOLS"] = TOOLS
            process = Process(gram, folder, model.url, f"{OWNER},{OWNER + 1}")  # type: ignore[arg-type]
            process.first = PUBLIC
            async with process.running():
                said.append(calls("bash", command="head -c 8000000 /dev/zero | tr '\\0' a > big"))
                await olga.ask("make it")
                for name, line in inputs(served.host).items():
                    said.append(line)
                    ms, count = await longest(olga, oscar)
                    print(f"{name:36} {ms:7.0f} ms of {count}", flush=True)
                    await olga.ask("/new")


if __name__ == "__main__":
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    asyncio.run(main())
