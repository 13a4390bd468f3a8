"""A small web server on loopback, and hosts that may reach it."""

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from aiohttp import web

from agent.sandbox.hosts import Hosts


@dataclass
class Site:
    """`seen` are paths with the Host header of each request; `sent` its headers and as much of its body
    as came; `pages` answer by path."""

    port: int = 0
    seen: list[str] = field(default_factory=list)
    sent: list[bytearray] = field(default_factory=list)
    pages: dict[str, Callable[[], web.StreamResponse]] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"localhost:{self.port}"

    def hosts(self, *, reachable: bool = True) -> Hosts:
        """This site is allowed; `reachable`: also though its address is not public."""
        return Hosts((self.host,), lambda address: reachable)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(f"{request.headers['Host']}{request.path_qs}")
        came = bytearray(b"".join(b"%s: %s\n" % header for header in request.raw_headers))
        self.sent.append(came)
        with suppress(ConnectionError):  # it was cut off in the middle
            async for piece in request.content.iter_any():  # to its end, as clients send all of it
                came += piece
        page = self.pages.get(request.path)
        return page() if page else web.Response(text="hello")


@asynccontextmanager
async def site(tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    served = Site()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        listener = web.TCPSite(runner, "localhost", 0, ssl_context=tls)
        await listener.start()
        served.port = runner.addresses[0][1]
        yield served
    finally:
        await runner.cleanup()
