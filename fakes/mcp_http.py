"""The fake MCP server over streamable HTTP."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from fakes.mcp_server import Server


@dataclass
class HttpServer:
    """`mode` "json" or "events" answers as the protocol has it; "redirect" leads to `elsewhere`, "bomb" answers with
    little that unpacks to much, "large" with too much, "values" with too many values, "entries" with too long a list,
    "refuse" with 401, "forget" with 404 to what comes in a session, "hang" with nothing to a call."""

    url: str = ""
    mode: str = "json"
    elsewhere: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    server: Server = field(default_factory=lambda: Server([]))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        if request.method != "POST":
            return web.Response(status=405)
        if self.mode == "refuse":
            return web.Response(status=401)
        if self.mode == "forget" and "mcp-session-id" in request.headers:
            return web.Response(status=404)
        if self.mode == "redirect":
            return web.Response(status=307, headers={"location": self.elsewhere})
        message: dict[str, Any] = await request.json()
        self.methods.append(message.get("method", ""))
        self.bodies.append(json.dumps(message))
        if "id" not in message:
            return web.Response(status=202)
        if message["method"] == "tools/call" and self.mode == "hang":
            await asyncio.Event().wait()
        result = self.server.answer(message["method"], message.get("params") or {}, message["id"])
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        session = {"mcp-session-id": "s1"}
        if self.mode == "events":
            body = f"event: message\ndata: {text}\n\n"
            return web.Response(text=body, content_type="text/event-stream", headers=session)
        if message["method"] == "tools/call" and self.mode == "bomb":
            packed = gzip.compress(b" " * (64 << 20) + text.encode())
            headers = session | {"content-encoding": "gzip", "content-type": "application/json"}
            return web.Response(body=packed, headers=headers)
        if message["method"] == "tools/call" and self.mode == "large":
            text = " " * (20 << 20) + text
        if message["method"] == "tools/call" and self.mode == "values":
            text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": [[]] * 50_000})
        if message["method"] == "tools/call" and self.mode == "entries":
            wrong = {"content": [0] * 6000}
            text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": wrong})
        return web.Response(text=text, content_type="application/json", headers=session)


@asynccontextmanager
async def mcp_over_http() -> AsyncIterator[HttpServer]:
    served = HttpServer()
    app = web.Application()
    app.router.add_route("*", "/mcp", served.answer)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    served.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    try:
        yield served
    finally:
        await runner.cleanup()
