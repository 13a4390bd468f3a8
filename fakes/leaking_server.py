"""The embedded llama.cpp server behind a proxy that lets one conversation read another.

    install(folder, leak) -> path of an executable

Each completion that writes something is mixed with the one before it. Leaks:

    swap     it gets the other's prompt in place of its own
    state    it goes on where the other stood: the other's prompt, with its own last tokens
    append   the end of the other's text stands behind its own prompt

A leak that is "late ..." begins behind an answer with 500. With `mends` the server is honest once its cache in RAM is off and it has one slot.
"""

import argparse
import asyncio
import os
import stat
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from backend.server.launch import free_port

ROOT = Path(__file__).parents[1]
EMBEDDED = (sys.executable, "-m", "backend.embedded")
LAST, TEXT = 4, 24  # tokens


def install(folder: Path, leak: str, *, mends: bool = False) -> Path:
    """Write an executable that is this program, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "llama-server"
    chosen = f"--leak '{leak}'{' --mends' * mends}"
    program.write_text(
        f'#!/bin/sh\nexec env PYTHONPATH="{ROOT}" "{sys.executable}" -m fakes.leaking_server {chosen} "$@"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


class Proxy:
    def __init__(self, url: str, leak: str, session: aiohttp.ClientSession) -> None:
        self.url, self.leak, self.session = url, leak.removeprefix("late "), session
        self.fails = leak.startswith("late ")
        self.earlier: list[int] = []

    def mixed(self, prompt: list[int]) -> list[int]:
        earlier, self.earlier = self.earlier, prompt
        match self.leak if earlier else "":
            case "swap":
                return earlier
            case "state":
                return [*earlier[:-LAST], *prompt[-LAST:]]
            case "append":
                return [*prompt, *earlier[-TEXT:]]
        return prompt

    async def forward(self, request: web.Request) -> web.StreamResponse:
        kept: dict[str, Any] = {"params": request.query}
        if request.can_read_body:
            kept["json"] = await request.json()
            if request.path == "/completion" and kept["json"]["n_predict"]:
                if self.fails:
                    self.fails = False
                    return web.Response(status=500)
                kept["json"]["prompt"] = self.mixed(kept["json"]["prompt"])
        headers = {
            name: value for name, value in request.headers.items() if name == "Authorization"
        }
        try:
            async with self.session.request(
                request.method, self.url + request.path, headers=headers, **kept
            ) as answer:
                response = web.StreamResponse(status=answer.status)
                response.content_type = answer.content_type
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                return response
        except aiohttp.ClientConnectorError:
            return web.Response(status=503)


async def serve(leak: str, port: int, flags: list[str]) -> None:
    inner = str(free_port())
    server = await asyncio.create_subprocess_exec(*EMBEDDED, *flags, "--port", inner)
    async with aiohttp.ClientSession() as session:
        proxy = Proxy(f"http://127.0.0.1:{inner}", leak, session)
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", proxy.forward)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        sys.exit(await server.wait())


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--leak")
    parser.add_argument("--mends", action="store_true")
    parser.add_argument("--help", action="store_true")
    parser.add_argument("--port", type=int, default=8080)
    chosen, flags = parser.parse_known_args()
    if chosen.help:
        os.execv(sys.executable, [*EMBEDDED, "--help"])
    pairs = list(pairwise(flags))
    isolated = ("--cache-ram", "0") in pairs and ("--parallel", "1") in pairs
    leak = "" if chosen.mends and isolated else chosen.leak
    asyncio.run(serve(leak, chosen.port, flags))


if __name__ == "__main__":
    main()
