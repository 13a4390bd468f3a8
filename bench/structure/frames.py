"""What runs: the stack frames and the modules that one plain message passes.

A real `voltaire bot` of the measured checkout, with `probe` inside, talks to the
local Bot API server and to a model server that answers at once. A route is the
stack between two places, and only this project's own frames of it count:

    update -> inbox row          from python-telegram-bot's handler to the database
    worker -> model request      from Worker.run to the HTTP request
    worker -> outbox row         from Worker.run to the row of the final text
    delivery -> send             from Delivery.run to the HTTP request that sends it
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.installation import READING_SECONDS, Installation, installation
from bench.structure import probe
from fakes.model_scripted import ModelServer, says

MESSAGES = 3  # after one that warms up
SECONDS = 60.0


@dataclass(frozen=True)
class Route:
    """`place` is one of the probe's; the route begins with, or behind, that function."""

    name: str
    place: str
    start: str
    behind: bool = False


ROUTES = (
    Route("update -> inbox row", "inbox row", "BaseHandler.handle_update", behind=True),
    Route("worker -> model request", "model request", "Worker.run"),
    Route("worker -> outbox row", "outbox row", "Worker.run"),
    Route("delivery -> send", "send", "Delivery.run"),
)
# 3.11 gives a comprehension a frame of its own, 3.12 does not; nobody reads it as a function.
INLINE = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class Unseen(Exception):
    """The bot did not pass where it was looked for; `str` says where and what it said instead."""


async def frame_figures(root: Path) -> dict[str, Any]:
    """Frames by route, outermost first, and modules. Raises Unseen."""
    _, *passed = await _passages(root.resolve())
    modules = set.intersection(*(set(each["modules"]) for each in passed))
    return {
        "routes": {route.name: own_frames(route, passed[-1]["seen"]) for route in ROUTES},
        "modules_of_one_message": sorted(modules),  # of each, so without what ran by chance
    }


def own_frames(route: Route, seen: dict[str, list[list[probe.Named]]]) -> list[str]:
    """The frames of the first stack at this place that holds the route's start."""
    for stack in seen.get(route.place, []):
        names = [name for _, name, _ in stack]
        if route.start in names:
            below = stack[names.index(route.start) + route.behind :]
            return [f"{m}:{name}" for m, name, own in below if own and not name.endswith(INLINE)]
    raise Unseen(f"{route.name}: nothing passed there below {route.start}")


async def _passages(root: Path) -> list[Any]:
    """What the probe wrote of each message, the first one included."""
    async with (
        ModelServer(script=lambda _: says("The answer is four.")) as model,
        installation(model.url) as b,
    ):
        out, log = b.home / "passages.jsonl", b.home / "bot.log"
        async with (
            _voltaire(root, b, log, os.devnull, "backend"),
            _voltaire(root, b, log, str(out), "bot"),
        ):
            for number in range(1 + MESSAGES):
                await asyncio.sleep(READING_SECONDS if number else 0)
                try:
                    await b.owner.ask(f"question {number}", seconds=SECONDS)
                    async with asyncio.timeout(SECONDS):
                        while not out.exists() or len(out.read_bytes().splitlines()) <= number:
                            await asyncio.sleep(0.01)
                except TimeoutError:
                    end = log.read_text("utf-8", "replace")[-2000:]
                    raise Unseen(f"message {number} was not answered:\n{end}") from None
        return [json.loads(line) for line in out.read_text().splitlines()]


@asynccontextmanager
async def _voltaire(
    root: Path, b: Installation, log: Path, out: str, *words: str
) -> AsyncIterator[None]:
    """A command of that checkout with its own packages, or with ours where it has none."""
    python = root / ".venv/bin/python"
    with log.open("ab") as written:
        process = await asyncio.create_subprocess_exec(
            python if python.exists() else sys.executable,
            probe.__file__,
            str(root),
            out,
            *words,
            env=b.environment() | {"PYTHONPATH": str(root)},
            stdout=written,
            stderr=written,
            start_new_session=True,
        )
    try:
        yield
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
