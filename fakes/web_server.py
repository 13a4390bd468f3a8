"""A small web server on loopback, and hosts that may reach it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from agent.sandbox.hosts import Hosts


@dataclass
class Site:
    """`seen` are paths with the Host header of each request; `pages` answer by path."""

    port: int = 0
    seen: list[str] = field(default_factory=list)
    pages: dict[str, Callable[[], web.StreamResponse]] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return f"localhost:{self.port}"

    def hosts(self, *, reachable: bool = True) -> Hosts:
        """This site is allowed; `reachable`: also though its address is not public."""
        return Hosts((self.host,), lambda address: reachable)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(f"{request.headers['Host']}{request.path_qs}")
        await request.read()  # to its end, so that clients send all of it
        page = self.pages.get(request.path)
        return page() if page else web.Response(text="hello")


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    served = Site()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        listener = web.TCPSite(runner, "localhost", 0)
        await listener.start()
        served.port = runner.addresses[0][1]
        yield served
    finally:
        await runner.cleanup()
