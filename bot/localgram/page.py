"""The chat page: its files, what stands in the chats, and a stream of what happens."""

import asyncio
import contextlib
import json
from pathlib import Path

from aiohttp import web

from bot.localgram.people import Account
from bot.localgram.views import chat_of, event_view, history_view, home_view
from bot.localgram.visitor import HEADERS, Visitor, number, shown
from bot.localgram.world import World

STATIC = Path(__file__).parent / "static"
FILE_HEADERS = {**HEADERS, "Content-Security-Policy": "sandbox; default-src 'none'"}
STREAM_HEADERS = {**HEADERS, "Content-Type": "text/event-stream"}
SHOWN_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "audio/", "video/")
BEAT_SECONDS = 15.0
LOST = b'data: {"event": "lost"}\n\n'  # events were forgotten meanwhile: the page loads anew


class Page:
    def __init__(self, world: World) -> None:
        self._world = world

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self.index),
            web.get("/static/{name}", self.static),
            web.get("/api/home", self.home),
            web.get("/api/events", self.events),
            web.get("/api/files/{unique}", self.file),
            web.get("/api/chats/{chat}", self.history),
        ]

    async def index(self, _: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html", headers=HEADERS)

    async def static(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in {path.name for path in STATIC.iterdir()}:
            raise web.HTTPNotFound
        return web.FileResponse(STATIC / name, headers=HEADERS)

    async def home(self, request: web.Request) -> web.Response:
        return shown(home_view(self._world, Visitor(self._world, request).me))

    async def history(self, request: web.Request) -> web.Response:
        visitor = Visitor(self._world, request)
        return shown(history_view(self._world, visitor.chat(), visitor.me))

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events after `?after=N` (or Last-Event-ID) of `?feed=NAME`, until the
        page goes away."""
        me, feed = Visitor(self._world, request).me, self._world.feed
        given = request.headers.get("Last-Event-ID") or request.query.get("after")
        after = number(given or feed.last)
        stream = web.StreamResponse(headers=STREAM_HEADERS)
        await stream.prepare(request)
        known = request.query.get("feed", feed.name) == feed.name and feed.holds(after)
        await stream.write(b": beat\n\n" if known else LOST)
        with contextlib.suppress(ConnectionError):
            while not feed.closed:
                seen = feed.last
                if lines := self._lines(me, after):
                    await stream.write(lines)
                after = seen
                if feed.last == seen and not await _changed(self._world):
                    await stream.write(b": beat\n\n")
        return stream

    def _lines(self, me: Account, after: int) -> bytes:
        return b"".join(
            f"id: {at}\ndata: {json.dumps(event_view(self._world, event, me))}\n\n".encode()
            for at, event in self._world.feed.after(after)
            if self._world.chats[chat_of(event)].holds(me.id)
        )

    async def file(self, request: web.Request) -> web.Response:
        stored = self._world.files.seen(request.match_info["unique"])
        if stored is None:
            raise web.HTTPNotFound
        inline = stored.mime.startswith(SHOWN_TYPES)
        mime = stored.mime.partition(";")[0] if inline else "application/octet-stream"
        headers = {**FILE_HEADERS, "Content-Disposition": _disposition(stored.name, inline)}
        return web.Response(body=stored.content, content_type=mime, headers=headers)


def _disposition(name: str, inline: bool) -> str:
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "_" for c in name)
    return f'{"inline" if inline else "attachment"}; filename="{plain}"'


async def _changed(world: World) -> bool:
    """Wait for something to happen; False when it is time for a sign of life."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(BEAT_SECONDS):
            await world.feed.changed()
            return True
    return False
