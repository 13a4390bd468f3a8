"""The HTTP server, on loopback only: /bot<TOKEN>/<method>, /file/bot<TOKEN>/<path> and the chat page; its people."""

import inspect
import itertools
import json
import re
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, cast

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bot.localgram.chat import Chat
from bot.localgram.message import UPLOAD_LIMIT, Account
from bot.localgram.methods import TABLE, Method
from bot.localgram.page import Page
from bot.localgram.person import Person
from bot.localgram.wire import ApiError, Call, read_call
from bot.localgram.world import World

NAMES = frozenset({"127.0.0.1", "localhost"})
OWN_SITE = frozenset({"same-origin", "none"})
ROOM = 1 << 20  # for the other fields of an upload
CLOSING_SECONDS = 1.0


@web.middleware
async def only_loopback(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests that come from other web pages, which could otherwise drive the agent.

    A name other than loopback's (DNS rebinding), another origin or another site is refused.
    """
    host = re.sub(r":\d+$", "", request.host)
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site", "none")
    if host not in NAMES or origin not in {None, f"http://{request.host}"} or site not in OWN_SITE:
        return web.json_response(ApiError(403, "only this machine may ask").json(), status=403)
    answered: web.StreamResponse = await handler(request)
    return answered


def only_with(key: str) -> Middleware:
    """Require the page's key, which other users of this machine do not know: in the address at first
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
    """Routes of the Bot API for one World."""

    methods: Mapping[str, Method] = TABLE

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
            self._check(request)
            call = await read_call(request)
            if (method := self.methods.get(call.method)) is None:
                raise ApiError(404, "method not found")
            return await self.answered(request, call, method)
        except ApiError as error:
            return refused(error)
        except web.HTTPRequestEntityTooLarge:
            return refused(ApiError(413))

    async def download(self, request: web.Request) -> web.StreamResponse:
        try:
            self._check(request)
            stored = self._world.files.fetch(request.match_info["path"])
        except ApiError as error:
            return refused(error)
        return web.Response(body=stored.content, content_type="application/octet-stream")

    def _check(self, request: web.Request) -> None:
        """Raises ApiError 404 for what is no token, 401 for another's."""
        token = request.match_info["token"]
        if not re.fullmatch(r"\d+:\S+", token):
            raise ApiError(404)
        if token != self._token:
            raise ApiError(401)

    async def answered(self, request: web.Request, call: Call, method: Method) -> web.Response:
        body = json.dumps({"ok": True, "result": await self.carried_out(call, method)})
        return web.Response(text=body, content_type="application/json")

    async def carried_out(self, call: Call, method: Method) -> object:
        result = method(self._world, call)
        return await cast(Awaitable[object], result) if inspect.isawaitable(result) else result


def refused(error: ApiError) -> web.Response:
    retry = error.parameters.get("retry_after")
    headers = {} if retry is None else {"Retry-After": str(retry)}
    return web.json_response(error.json(), status=error.code, headers=headers)


@asynccontextmanager
async def listening(routes: list[web.RouteDef], port: int, key: str) -> AsyncIterator[int]:
    """Serve on a port (0: a free one) and yield it. The page requires `key` if it is set.

    Raises OSError when the port is in use.
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


class Localgram:
    """A local Bot API server with its chat page, entered as a context.

    `port` 0 takes a free one. `key` is asked of whoever opens the page; without one, any user of this
    machine may.

        async with Localgram(token="1:a") as gram:
            alice = gram.user("Alice")
            await alice.send("hi")
            reply = await alice.next_message()
    """

    def __init__(self, token: str, port: int = 0, *, key: str = "") -> None:
        self.token = token
        self.key = key
        number = int(token.partition(":")[0])
        self.world = World(Account(number, "Voltaire", "voltaire_bot", is_bot=True))
        self.port = port
        self._user_ids = itertools.count(1001)

    async def __aenter__(self) -> Self:
        """Raises OSError when the port is in use."""
        self._serving = self._serve()
        await self._serving.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._serving.__aexit__(*raised)

    @asynccontextmanager
    async def _serve(self) -> AsyncIterator[None]:
        routes = [*self.api().routes(), *Page(self.world).routes()]
        async with listening(routes, self.port, self.key) as self.port:
            try:
                yield
            finally:
                self.world.updates.wake("")
                for chat in self.world.chats.values():
                    chat.feed.close()

    def api(self) -> BotApi:
        return BotApi(self.world, self.token)

    @property
    def url(self) -> str:
        """The address for the setting `telegram.base_url`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def page(self) -> str:
        """The chat page's address."""
        return f"{self.url}/?key={self.key}" if self.key else f"{self.url}/"

    def user(
        self,
        name: str,
        *,
        id: int | None = None,
        username: str = "",
        language: str = "en",
        started: bool = False,
    ) -> Person:
        """Create a person. The bot cannot write to them before their first message, unless `started`."""
        number = next(self._user_ids) if id is None else id
        first, _, last = name.partition(" ")
        account = Account(number, first, username, last, language)
        self.world.people[number] = account
        chat = Chat(number, "private", name, peer=account, status="member" if started else "")
        chat.members = {number: account}
        self.world.chats[number] = chat
        return Person(self.world, account)
