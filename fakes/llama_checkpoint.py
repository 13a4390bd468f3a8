"""A context checkpoint as large as the embedded server makes it, from its log.

found = await checkpoint(path, 600, "--spec-type", "draft-mtp")
"""

import asyncio
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from backend.server.launch import free_port
from fakes.patience import SECONDS

CREATED = re.compile(rb"created context checkpoint .* n_tokens = (\d+), size = ([\d.]+) MiB")


@dataclass(frozen=True)
class Checkpoint:
    """The first of a chat, behind so many tokens of it."""

    tokens: int
    mib: float


async def checkpoint(model: Path, tokens: int, *flags: str) -> Checkpoint:
    """Have the server read so many tokens. AssertionError where it makes none."""
    port = str(free_port())
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "backend.embedded", "-m", str(model), "--port", port),
        *("-lv", "4", "-np", "1", *flags),
        cwd=Path(__file__).parents[1],
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr
    asking = None
    try:
        async with asyncio.timeout(SECONDS):
            async for line in process.stderr:
                if b"server is listening" in line:
                    asking = asyncio.create_task(complete(port, tokens))
                if found := CREATED.search(line):
                    return Checkpoint(int(found[1]), float(found[2]))
    finally:
        if asking:
            asking.cancel()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    raise AssertionError("the server never made a checkpoint")


async def complete(port: str, tokens: int) -> None:
    body = {"prompt": [10 + number % 200 for number in range(tokens)], "n_predict": 2}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{port}/completion", json=body) as answer,
    ):
        await answer.read()
