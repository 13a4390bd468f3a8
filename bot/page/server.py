"""The page's web application.

async with serve_page(settings, backend, status_json) as page:
    print(page.address)
"""

import asyncio
import hashlib
import hmac
import json
import logging
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files as resources
from typing import TYPE_CHECKING

from aiohttp import web
from pydantic import ValidationError

from agent.aio import BackgroundTasks
from agent.errors import AgentError
from agent.prompt import use_instructions
from agent.store import Store
from agent.store.errors import StoreError
from backend.client import BackendClient, BackendRefused, BackendUnavailable
from backend.connections import Connections
from backend.protocol import Alert, unended
from bot.agent_config import instructions_of
from bot.page.access import (
    KEY,
    LOOPBACK,
    PageAccess,
    PageHandler,
    PageRefused,
    SignInRefused,
    TelegramSignIn,
    load_key,
    with_session,
)
from bot.page.changes import CHANGES, Pressed
from bot.page.views import KNOWN_SECONDS, JsonFields, StatusJson, Views, shown
from bot.settings import Settings
from bot.state import open_state_read_only

if TYPE_CHECKING:  # loaded where clients are configured
    from bot.page.completions import Talk

log = logging.getLogger(__name__)

DEFAULT_LISTEN = "127.0.0.1:8766"
LARGEST_BODY = 64 << 10
CLOSING_SECONDS = 0.5
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
MakeChange = Callable[[str, JsonFields], Awaitable[str]]
"""Makes a change of bot.page.changes in the process that holds the state."""


LOOK_SECONDS = 2.0
BEAT_SECONDS = 15.0
AGAIN_SECONDS = 5.0
ALERTS = 30  # the newest that are shown
BEHIND = 4  # events that a slow browser may lag


class LiveFeed:
    def __init__(self, views: Views, backend: BackendClient) -> None:
        self._views = views
        self._backend = backend
        self._listeners: set[asyncio.Queue[str]] = set()
        self.looking: asyncio.Task[None] | None = None  # polls the state while somebody listens
        self._alerts: deque[Alert] = deque(maxlen=ALERTS)
        self._last = ""
        self._shown: JsonFields = {}

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        """Stream each change of the first view, until the browser or the server closes the stream."""
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        async with self.listening() as events:
            with suppress(ConnectionError):
                await answer.write(b"retry: 2000\n\n")
                while True:
                    line = ": beat\n\n"
                    with suppress(TimeoutError):
                        async with asyncio.timeout(BEAT_SECONDS):
                            line = await events.get()
                    await answer.write(line.encode("utf-8", "replace"))
        return answer

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[asyncio.Queue[str]]:
        events: asyncio.Queue[str] = asyncio.Queue()
        if self._last:
            events.put_nowait(self._last)
        self._listeners.add(events)
        if self.looking is None:
            self.looking = asyncio.create_task(self._look())
        try:
            yield events
        finally:
            self._listeners.discard(events)
            if not self._listeners and (looking := self.looking):
                self.looking, self._last, self._shown = None, "", {}
                looking.cancel()
                await asyncio.wait([looking])

    async def _look(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_alerts())
            while True:
                try:
                    await self.publish(await self._views.now())
                except StoreError as error:
                    await self.publish({"why": str(error)})
                except Exception:
                    log.exception("the page's first view cannot be made")
                    await self.publish({"why": "It failed for a reason that is in the log."})
                await asyncio.sleep(LOOK_SECONDS)

    async def publish(self, now: JsonFields) -> None:
        """Send the view to all listeners where it differs from the last one; its time alone counts as a difference
        every KNOWN_SECONDS."""
        shown = {
            **now,
            "alerts": [alert.model_dump(mode="json") for alert in reversed(unended(self._alerts))],
            "at": now.get("at", 0.0) // KNOWN_SECONDS * KNOWN_SECONDS,
        }
        if shown == self._shown:
            return
        self._shown = shown
        text = json.dumps({**shown, **now}, ensure_ascii=False, separators=(",", ":"))
        self._last = f"event: now\ndata: {text}\n\n"
        for events in self._listeners:
            while events.qsize() >= BEHIND:
                events.get_nowait()
            events.put_nowait(self._last)

    async def _follow_alerts(self) -> None:
        while True:
            with suppress(BackendUnavailable, BackendRefused):
                after = self._alerts[-1].id if self._alerts else 0
                async for alert in self._backend.events(after):
                    self._alerts.append(alert)
            await asyncio.sleep(AGAIN_SECONDS)


@dataclass(frozen=True, slots=True)
class ServedPage:
    """The page while it is served.

    `origin` is where it is served; `exposed` warns where that is reachable from other machines.
    """

    origin: str
    access: PageAccess
    live: LiveFeed
    exposed: str = ""

    @property
    def address(self) -> str:
        """The page's address with the key, for the owner alone."""
        return f"{self.origin}/?key={self.access.key}"

    @property
    def once(self) -> str:
        """An address that opens the page once."""
        return f"{self.origin}/?key={self.access.ticket()}"


@asynccontextmanager
async def serve_page(
    settings: Settings,
    backend: BackendClient,
    status_json: StatusJson,
    make_change: MakeChange,
    talk: "Talk",
    listen: str = "",
) -> AsyncIterator[ServedPage]:
    """Serve at `listen` (HOST:PORT; empty: the configured address). Raises PageRefused, StoreError."""
    host, port = listening_at(listen or settings.page.listen or DEFAULT_LISTEN)
    exposed = exposure(settings, host)
    use_instructions(instructions_of(settings))
    own = settings.page.key_file
    key = load_key(own or settings.state_dir / KEY, create=own is None)
    access = PageAccess(key)
    async with open_state_read_only(settings) as store, BackgroundTasks() as tasks:
        views = Views(settings, store, backend, status_json)
        live = LiveFeed(views, backend)
        sign_in = TelegramSignIn(
            settings.telegram.token.get_secret_value() if settings.page.url else "",
            partial(is_owner, settings, store),
        )
        app = application(access, views, live, make_change, sign_in)
        if settings.page.hooks:
            app.add_routes([hook_route(settings, make_change, access.connections)])
        if settings.page.clients:
            from bot.page.completions import completions_route

            app.add_routes([completions_route(settings, talk, access.connections, tasks)])
        async with AsyncExitStack() as stack:
            options = {"handler_cancellation": True, "shutdown_timeout": CLOSING_SECONDS}
            serving = access.connections.serving(app, host, port, **options)
            try:
                port = await stack.enter_async_context(serving)
            except OSError as error:
                raise PageRefused(
                    f"The page cannot listen at {host}:{port}: {os.strerror(error.errno or 0)}. Elsewhere: --listen HOST:PORT"
                ) from None
            names = LOOPBACK if host in LOOPBACK else {host}
            access.origins |= {f"http://{name}:{port}" for name in names}
            if settings.page.url:
                access.origins.add(settings.page.url.rstrip("/"))
            yield ServedPage(f"http://{host}:{port}", access, live, exposed)


def application(
    access: PageAccess,
    views: Views,
    live: LiveFeed,
    make_change: MakeChange,
    sign_in: TelegramSignIn,
) -> web.Application:
    app = web.Application(
        client_max_size=LARGEST_BODY, middlewares=[headers_and_errors, access.check]
    )

    async def index(request: web.Request) -> web.StreamResponse:
        if given := request.query.get("key"):
            if session := access.enter(given):  # the address in the browser loses the key
                found = web.Response(status=303, headers={"Location": f"/#change={session.token}"})
                return with_session(request, session, found)
            raise web.HTTPForbidden(
                text="That key opens nothing: `voltaire page` prints the address."
            )
        return static_file("index.html")

    async def static(request: web.Request) -> web.Response:
        return static_file(request.match_info["name"])

    async def telegram(request: web.Request) -> web.Response:
        """Start a session for the fields in the body if Telegram signed them; else 403, with the reason."""
        try:
            await sign_in.check((await request.read()).decode())  # whatever charset it names
        except (SignInRefused, UnicodeDecodeError) as error:
            raise web.HTTPForbidden(text=str(error)) from None
        session = access.begin()
        return with_session(request, session, web.json_response({"token": session.token}))

    async def change(request: web.Request) -> web.Response:
        """Make a change; {"told": what happened}, or 409 and one sentence where nothing changed."""
        name = request.match_info["change"]
        if name not in CHANGES:
            raise web.HTTPNotFound(text="There is no such change.")
        try:
            pressed = Pressed.model_validate_json(await request.read())
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise web.HTTPBadRequest(text=f"{where}: {first['msg']}") from None
        try:
            told = await make_change(name, pressed.model_dump(exclude_defaults=True))
        except (BackendUnavailable, BackendRefused, ValueError) as error:
            raise web.HTTPConflict(text=str(error)) from None
        return shown({"told": told})

    app.add_routes(
        [
            web.get("/", index),
            web.get("/static/{name}", static),
            web.post("/api/telegram", telegram),
            *views.routes(),
            web.get("/api/live", live.get_live),
            web.post("/api/do/{change}", change),
        ]
    )
    return app


async def is_owner(settings: Settings, store: Store, user: str) -> bool:
    """Whether that Telegram user is an owner by the configuration or by pairing."""
    person = await store.people.get("telegram", user)
    configured = user in map(str, settings.telegram.owners)
    return configured or (person is not None and person.role == "owner")


def static_file(name: str) -> web.Response:
    """One of the page's files, by its exact name in the folder."""
    folder = resources("bot.page").joinpath("static")
    found = next((entry for entry in folder.iterdir() if entry.name == name), None)
    if found is None:
        raise web.HTTPNotFound
    kind = TYPES[name.rpartition(".")[2]]
    return web.Response(body=found.read_bytes(), content_type=kind, charset="utf-8")


@web.middleware
async def headers_and_errors(request: web.Request, handler: PageHandler) -> web.StreamResponse:
    """Set the same headers on every answer; answer errors with one sentence."""
    try:
        answer = await handler(request)
    except web.HTTPException as error:
        error.headers.update(HEADERS)
        raise
    except web.RequestPayloadError:
        return web.Response(status=400, text="The body cannot be decoded.", headers=HEADERS)
    except StoreError as error:
        return web.Response(status=503, text=str(error), headers=HEADERS)
    except AgentError as error:
        return web.Response(status=409, text=str(error), headers=HEADERS)
    except Exception:
        log.exception("%s failed", request.path)
        return web.Response(
            status=500, text="It failed for a reason that is in the log.", headers=HEADERS
        )
    if not answer.prepared:
        answer.headers.update(HEADERS)
    return answer


def listening_at(listen: str) -> tuple[str, int]:
    """Host (an IPv6 address in brackets) and port. Raises PageRefused."""
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise PageRefused(f"page.listen must look like {DEFAULT_LISTEN!r}, not {listen!r}.")
    return host, int(port)


def exposure(settings: Settings, host: str) -> str:
    """A warning where the page is reachable from other machines, "" on loopback. Raises PageRefused unless a key
    file shows that this is intended."""
    if host in LOOPBACK:
        return ""
    if settings.page.key_file is None:
        raise PageRefused(
            f"page.listen is {host}, beyond this machine: whoever reaches it and has the key can do what"
            " you can do in the chat, and between you and it nothing is encrypted. Where that is meant,"
            " name a file with a key of your own, page.key_file; better listen on 127.0.0.1, behind SSH"
            " or a reverse proxy with HTTPS."
        )
    return (
        f"The page is served at {host}: whoever reaches it and has the key can do what you can do in the"
        " chat, and nothing is encrypted on the way."
    )


# -- other programs run a job, with data ---------------------------------------
#
# A hook has a secret of its own, which a request names (`Authorization: Bearer`, `X-Gitlab-Token`) or has
# signed its body with (`X-Hub-Signature-256`, `X-Gitea-Signature`, `X-Grafana-Alerting-Signature`: HMAC-SHA256 in
# hexadecimal).

MOST_A_MINUTE = 10


@dataclass
class Hook:
    name: str
    job: int
    secret: str = field(repr=False)
    _calls: deque[float] = field(default_factory=deque)

    def knows(self, request: web.Request, body: bytes) -> bool:
        """Whether the sender knows the secret."""
        headers, secret = request.headers, self.secret.encode()
        signed = hmac.digest(secret, body, hashlib.sha256).hex()
        pairs = (
            (headers.get("Authorization", "").removeprefix("Bearer "), self.secret),
            (headers.get("X-Gitlab-Token", ""), self.secret),
            (headers.get("X-Hub-Signature-256", "").removeprefix("sha256="), signed),
            (headers.get("X-Gitea-Signature", ""), signed),
            (headers.get("X-Grafana-Alerting-Signature", ""), signed),
        )
        matches = [hmac.compare_digest(a.encode("utf-8", "replace"), b.encode()) for a, b in pairs]
        return any(matches)

    def seconds_to_wait(self) -> float:
        """Seconds until another call is allowed; 0: now, and it is counted."""
        now = time.monotonic()
        while self._calls and self._calls[0] <= now - 60:
            self._calls.popleft()
        if len(self._calls) >= MOST_A_MINUTE:
            return self._calls[0] + 60 - now
        self._calls.append(now)
        return 0.0


def hook_route(
    settings: Settings, make_change: MakeChange, connections: Connections
) -> web.RouteDef:
    """Create the hooks' route. Raises PageRefused if a secret cannot be read, is too short, or readable to others."""
    known = {
        name: Hook(name, each.job, load_key(each.secret_file, f"The secret of page.hooks.{name}"))
        for name, each in settings.page.hooks.items()
    }

    async def call(request: web.Request) -> web.Response:
        hook, body = known.get(request.match_info["name"]), await request.read()
        if hook is None or not hook.knows(request, body):
            raise web.HTTPForbidden(text="There is no such hook, or that is not its secret.")
        connections.keep(request.transport)
        if seconds := hook.seconds_to_wait():
            headers = {"Retry-After": str(int(seconds) + 1)}
            raise web.HTTPTooManyRequests(text="Ten times a minute at most.", headers=headers)
        try:
            text = body.decode("utf-8", "replace")
            pressed = {"number": hook.job, "data": text, "id": f"hook {hook.name}"}
            told = await make_change("job-run", pressed)
        except AgentError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from None
        return web.Response(status=202, text=told)

    return web.post("/hooks/{name}", call)
