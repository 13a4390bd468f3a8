"""A fixed port and key for other local programs (an IDE, a coding agent) on the same server.

Their requests are forwarded unchanged except for the key. They queue behind people's chats, and
their output counts as progress for the stall detector.
"""

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from backend.connections import Connections
from backend.control.api import LARGEST_BODY
from backend.control.listening import CLOSING_SECONDS
from backend.protocol import SCHEDULED, Endpoint
from backend.state import PROXY, BackendState, NotReady

PATHS = ("/v1/", "/completion", "/props", "/tokenize", "/detokenize", "/apply-template", "/infill")
GENERATES = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/messages",
    "/v1/responses",
    "/completion",
    "/infill",
)
NOT_FORWARDED = frozenset(
    {"host", "authorization", "connection", "content-length", "transfer-encoding", "x-api-key"}
)


@dataclass(frozen=True, slots=True)
class CompletionProxy:
    state: BackendState
    endpoint: Callable[[], Awaitable[Endpoint]]
    session: aiohttp.ClientSession
    connections: Connections = field(default_factory=Connections)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        given = request.headers.get("x-api-key", bearer)
        key = self.state.config.proxy_key
        if not hmac.compare_digest(given.encode("utf-8", "replace"), key.encode()):
            return refusal(401, "wrong key")
        self.connections.keep(request.transport)
        if not request.path.startswith(PATHS):
            return refusal(404, "not offered here")
        try:
            if request.path not in GENERATES:
                return await self.forward(request)
            async with self.state.gpu_queue.acquire(PROXY, SCHEDULED):
                self.state.activity.proxied += 1
                try:
                    return await self.forward(request)
                finally:
                    self.state.activity.proxied -= 1
        except NotReady as error:
            return refusal(503, str(error))
        except (OSError, aiohttp.ClientError):
            return refusal(502, "the model server went away")

    async def forward(self, request: web.Request) -> web.StreamResponse:
        endpoint = await self.endpoint()
        headers = {k: v for k, v in request.headers.items() if k.lower() not in NOT_FORWARDED}
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
        url, body = endpoint.url + request.path_qs, await request.read()
        async with self.session.request(
            request.method, url, headers=headers, data=body or None
        ) as answer:
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                self.state.activity.heartbeats += 1
                await response.write(chunk)
            return response


def refusal(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "code": status}}, status=status)


@asynccontextmanager
async def proxying(
    state: BackendState, endpoint: Callable[[], Awaitable[Endpoint]]
) -> AsyncIterator[None]:
    """Listen on loopback for the block. Raises OSError if the port is in use."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        app = web.Application(client_max_size=LARGEST_BODY)
        proxy = CompletionProxy(state, endpoint, session)
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        options = {"handler_cancellation": True, "shutdown_timeout": CLOSING_SECONDS}
        async with proxy.connections.serving(app, "127.0.0.1", state.config.proxy_port, **options):
            yield
