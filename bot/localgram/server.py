"""The HTTP server: /bot<TOKEN>/<method> and /file/bot<TOKEN>/<path>, on loopback only."""

import re
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bot.localgram import dispatch
from bot.localgram.files import UPLOAD_LIMIT
from bot.localgram.forms import read_call
from bot.localgram.wire import ApiError
from bot.localgram.world import World

NAMES = frozenset({"127.0.0.1", "localhost"})
OWN_SITE = frozenset({"same-origin", "none"})
ROOM = 1 << 20  # for the other fields of an upload
CLOSING_SECONDS = 1.0


@web.middleware
async def only_loopback(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Any web page a person visits may send requests here: it must not drive the agent.

    A name other than loopback's (DNS rebinding), another origin or another site is refused.
    """
    host = re.sub(r":\d+$", "", request.host)
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site", "none")
    if host not in NAMES or origin not in {None, f"http://{request.host}"} or site not in OWN_SITE:
        return web.json_response(
            {"ok": False, "error_code": 403, "description": "Forbidden: only this machine may ask"},
            status=403,
        )
    answered: web.StreamResponse = await handler(request)
    return answered


def only_with(key: str) -> Middleware:
    """The page's own key, which other users of this machine do not know: in the address at first
    (`/?key=...`), then in a cookie of this port. The Bot API is guarded by its token."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        path, cookie = request.path, f"voltaire-{request.url.port}"
        given = request.query.get("key", "").encode()
        if path == "/" and secrets.compare_digest(given, key.encode()):
            entered = web.Response(status=303, headers={"Location": "/"})
            entered.set_cookie(cookie, key, httponly=True, samesite="Strict")
            return entered
        known = request.cookies.get(cookie, "").encode()
        open_to_all = path.startswith(("/static/", "/bot", "/file/bot"))
        if not open_to_all and not secrets.compare_digest(known, key.encode()):
            text = "Open the whole address that the terminal shows, with its key."
            return web.Response(status=403, text=text)
        answered: web.StreamResponse = await handler(request)
        return answered

    return check


class BotApi:
    """The Bot API's routes over one world."""

    def __init__(self, world: World, token: str) -> None:
        self._world = world
        self._token = token

    def routes(self) -> list[web.RouteDef]:
        return [
            web.route("*", "/bot{token}/{method}", self.call),
            web.get("/file/bot{token}/{path:.+}", self.download),
        ]

    async def call(self, request: web.Request) -> web.StreamResponse:
        try:
            dispatch.check_token(request.match_info["token"], self._token)
            call = await read_call(request)
        except ApiError as error:
            return _response(request, dispatch.refused(error))
        except web.HTTPRequestEntityTooLarge:
            return _response(request, dispatch.refused(ApiError(413)))
        return _response(request, await dispatch.answer(self._world, call))

    async def download(self, request: web.Request) -> web.StreamResponse:
        try:
            dispatch.check_token(request.match_info["token"], self._token)
            stored = self._world.files.fetch(request.match_info["path"])
        except ApiError as error:
            return _response(request, dispatch.refused(error))
        return web.Response(body=stored.content, content_type="application/octet-stream")


def _response(request: web.Request, answer: dispatch.Answer) -> web.StreamResponse:
    if answer.body is None:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)
    return web.Response(
        status=answer.status, text=answer.body, content_type=answer.mime, headers=answer.headers
    )


@asynccontextmanager
async def listening(routes: list[web.RouteDef], port: int, key: str) -> AsyncIterator[int]:
    """Serve on a port (0: a free one); which it is. `key`, where set, opens the page.

    Raises: OSError when the port is in use.
    """
    middlewares = [only_loopback, *([only_with(key)] if key else [])]
    app = web.Application(client_max_size=UPLOAD_LIMIT + ROOM, middlewares=middlewares)
    app.add_routes(routes)
    runner = web.AppRunner(
        app, access_log=None, handler_cancellation=True, shutdown_timeout=CLOSING_SECONDS
    )
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.setblocking(False)
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            yield listener.getsockname()[1]
        finally:
            await runner.cleanup()
