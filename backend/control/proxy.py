"""A fixed port and key for other local programs (an IDE, a coding agent) on the same server.

Their requests pass through unchanged but for the key. They stand in the lane
behind people's chats, and count as signs of life.
"""

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from backend.control.api import NotReady
from backend.control.gpu_queue import GpuQueue
from backend.protocol import SCHEDULED, Endpoint
from backend.state import PROGRAM, Signs

PATHS = ("/v1/", "/completion", "/props", "/tokenize", "/detokenize", "/apply-template", "/infill")
GENERATES = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/messages",
    "/v1/responses",
    "/completion",
    "/infill",
)
_HOP = frozenset(
    {"host", "authorization", "connection", "content-length", "transfer-encoding", "x-api-key"}
)


@dataclass(frozen=True, slots=True)
class Proxy:
    key: str
    endpoint: Callable[[], Awaitable[Endpoint]]
    gpu_queue: GpuQueue
    signs: Signs
    session: aiohttp.ClientSession

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if not self._known(request):
            return web.json_response({"error": {"message": "wrong key", "code": 401}}, status=401)
        if not request.path.startswith(PATHS):
            return web.json_response(
                {"error": {"message": "not offered here", "code": 404}}, status=404
            )
        if request.path not in GENERATES:
            return await self._pass(request)
        async with self.gpu_queue.hold(PROGRAM, SCHEDULED):
            self.signs.programs += 1
            try:
                return await self._pass(request)
            finally:
                self.signs.programs -= 1

    def _known(self, request: web.Request) -> bool:
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        given = request.headers.get("x-api-key", bearer)
        return hmac.compare_digest(given.encode(), self.key.encode())

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        try:
            place = await self.endpoint()
            return await self._forward(request, place)
        except NotReady as error:
            return web.json_response({"error": {"message": str(error), "code": 503}}, status=503)
        except (OSError, aiohttp.ClientError):
            return web.json_response(
                {"error": {"message": "the model server went away", "code": 502}}, status=502
            )

    async def _forward(self, request: web.Request, place: Endpoint) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        headers["Authorization"] = f"Bearer {place.api_key}"
        body = await request.read()
        async with self.session.request(
            request.method, place.url + request.path_qs, headers=headers, data=body or None
        ) as answer:
            back = web.StreamResponse(status=answer.status)
            back.content_type = answer.content_type
            await back.prepare(request)
            async for chunk in answer.content.iter_any():
                self.signs.tokens += 1
                await back.write(chunk)
            return back


@asynccontextmanager
async def proxying(
    port: int,
    key: str,
    endpoint: Callable[[], Awaitable[Endpoint]],
    gpu_queue: GpuQueue,
    signs: Signs,
) -> AsyncIterator[None]:
    """Listen on loopback for the block; a port that is in use raises OSError."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route(
            "*", "/{path:.*}", Proxy(key, endpoint, gpu_queue, signs, session).handle
        )
        runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
            yield
        finally:
            await runner.cleanup()
