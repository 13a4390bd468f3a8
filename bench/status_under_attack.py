"""How long /status takes while the bot reads the worst of each kind of foreign bytes.

    python -m bench.status_under_attack

The real program in a process of its own, the local Bot API server, a scripted model. One owner's
turn reads the input, or hostile updates and rows come; another owner asks for /status again and
again meanwhile, and shall be answered within 200 ms (docs/security.md names the bounds): exit code 1
where one answer took longer.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from bot.localgram import Localgram, Person, is_final
from fakes.bot_process import Process
from fakes.bot_running import OWNER, TOKEN
from fakes.flooding_model import FLOODS
from fakes.hostile_json import mutated
from fakes.hostile_updates import everyday_updates
from fakes.model_scripted import Json, Line, ModelServer, Reply, calls, says
from fakes.sandbox_box import git, repository
from fakes.web_server import Site, site

MOST_MS = 200
TICK = 0.01
PAUSE = 1.0  # between two questions: Telegram's rate for a chat
QUESTIONS = 4  # at least, for each input
FLOOD_BYTES = 24_000_000
PUBLIC = """
import agent.sandbox.hosts as hosts
hosts.Hosts.__init__.__defaults__ = (lambda address: True,)
"""  # the site is on loopback
TOOLS = "bash,read_file,edit_file,write_file,web_fetch,git_status,git_diff"
PREPARED = """
head -c 8000000 /dev/zero | tr '\\0' a > big
git init -q r && cd r && for n in $(seq 4000); do echo > "f$n"; done
git add . && git -c user.name=a -c user.email=a commit -qm x
for n in $(seq 4000); do echo x > "f$n"; done; yes | head -400000 > f1
"""
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
        "edit_file that misses": replace(
            calls("edit_file", path="big", old="ab" * 20_000, new="c"), size=1 << 16
        ),
        "900 connections": calls("bash", command=f'python3 -c "{CONNECT}"; sleep 3', seconds=6),
    }
    for page in ("tags", "comments", "entities", "redirects", "nowhere"):
        found[f"a page of {page}"] = calls("web_fetch", url=f"http://{web_host}/{page}")
    found["git_status, 4,000 files"] = calls("git_status", repo="r")
    found["git_diff, 400,000 lines"] = calls("git_diff", repo="r")
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
    served.pages["/redirects"] = lambda: web.HTTPFound(f"/redirects?{'a' * 7000}")
    served.pages["/nowhere"] = lambda: web.Response(
        status=302, headers={"Location": "http://[::1" + "[" * 7000}
    )


def hostile_repository(path: Path) -> None:
    """Names and authors that try to be records, 3,000 refs, a commit of a million lines."""
    lines = "".join(f"TODO {n}\u2028commits\t4242\n" for n in range(1_000_000))
    repository(path, {"a\tb\u202ec": "x\n", "long.txt": lines})
    git(path, "commit", "-q", "--amend", "--author", "A\tauthors\t9 <a@b>", "-m", "x\rcommits\t9")
    head = git(path, "rev-parse", "HEAD").strip()
    refs = "".join(f"create refs/heads/r{n} {head}\n" for n in range(3000))
    subprocess.run(["git", "-C", path, "update-ref", "--stdin"], input=refs, text=True, check=True)


async def longest(work: Awaitable[object], asker: Person) -> tuple[float, float, int]:
    """Milliseconds of the slowest /status while that is done, those by which this process itself, which is
    Telegram and the model here, was held up at most, and how many were asked."""
    times: list[float] = []
    late = [0.0]
    done = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(lateness(late))
    while len(times) < QUESTIONS or not done.done():
        began = time.perf_counter()
        asked = (await asker.send("/status")).id
        await asker.next_message(where=lambda m: m.id > asked and m.keyboard, seconds=60)  # noqa: B023
        times.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(PAUSE)
    await done
    watch.cancel()
    return max(times), max(late), len(times)


async def lateness(found: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await asyncio.sleep(TICK)
        found.append(1000 * (time.perf_counter() - began - TICK))


async def said(reader: Person, text: str) -> None:
    """Until it is answered."""
    await reader.send(text)
    await reader.next_message(where=is_final, seconds=120)


def hostile_updates(chance: random.Random) -> list[tuple[str, object]]:
    """Made before /status is asked for: it is this process, too, that answers the bot as Telegram does."""
    everyday = everyday_updates(OWNER, chance)
    chosen = (chance.choice(everyday) for _ in range(300))
    return [(kind, mutated(body, chance)) for kind, body in chosen]


async def come(gram: Localgram, updates: Sequence[tuple[str, object]]) -> None:
    for kind, body in updates:
        gram.inject(kind, body)
        await asyncio.sleep(0.02)


async def main() -> int:
    """The exit code."""
    lines: list[Line] = []
    slow: list[str] = []

    def script(_request: Json) -> Line:
        return lines.pop(0) if lines else says("Done.")

    # Short, and open to the user that tools act as.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        async with Localgram(TOKEN) as gram, ModelServer(script=script) as model, site() as served:
            hostile_pages(served)
            hostile_repository(folder / "repo")
            olga = gram.user("Olga Owner", id=OWNER, started=True)
            oscar = gram.user("Oscar Owner", id=OWNER + 1, started=True)
            process = Process(gram, folder, model.url, f"{OWNER},{OWNER + 1}")  # type: ignore[arg-type]
            process.configure(
                AGENT__SANDBOX__NETWORK="true",
                AGENT__SANDBOX__ALLOW_HOSTS=served.host,
                AGENT__TOOLS=TOOLS,
                AGENT__REPOS=json.dumps({"repo": {"path": str(folder / "repo")}}),
            )
            process.first = PUBLIC
            async with process.running():
                lines.append(calls("bash", command=PREPARED, seconds=300))
                await said(olga, "make it")

                async def show(name: str, work: Awaitable[object]) -> None:
                    ms, late, count = await longest(work, oscar)
                    own = f", this bench itself late by {late:.0f}" if late > MOST_MS / 4 else ""
                    print(f"{name:36} {ms:7.0f} ms of {count}{own}", flush=True)
                    if ms > MOST_MS:
                        slow.append(name)

                for name, line in inputs(served.host).items():
                    lines.append(line)
                    await show(name, said(olga, "go on"))
                    await olga.ask("/new")
                await show("/summary of a hostile repository", said(olga, "/summary repo"))
                chance = random.Random(1)
                updates = hostile_updates(chance)
                await show("300 hostile updates", come(gram, updates))
    if slow:
        print(f"More than {MOST_MS} ms: {'; '.join(slow)}")
    return bool(slow)


if __name__ == "__main__":
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    sys.exit(asyncio.run(main()))
