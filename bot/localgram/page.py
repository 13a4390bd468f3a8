"""The chat page: its files, what stands in the chats, a stream of what happens, and what the person does."""

import asyncio
import contextlib
import json
from functools import partial
from pathlib import Path

from aiohttp import BodyPartReader, web

from bot.localgram.entities import formatted
from bot.localgram.people import Account
from bot.localgram.reactions import REACTIONS
from bot.localgram.views import chat_of, event_view, history_view, home_view, message_view
from bot.localgram.visitor import HEADERS, Visitor, body_of, number, optional, shown
from bot.localgram.wire import ApiError
from bot.localgram.world import World

STATIC = Path(__file__).parent / "static"
FILE_HEADERS = {**HEADERS, "Content-Security-Policy": "sandbox; default-src 'none'"}
STREAM_HEADERS = {**HEADERS, "Content-Type": "text/event-stream"}
KINDS = frozenset({"photo", "document", "voice", "audio", "video"})  # of files that are sent
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
            web.post("/api/chats/{chat}/send", self.send),
            web.post("/api/chats/{chat}/upload", self.upload),
            web.post("/api/chats/{chat}/edit", self.edit),
            web.post("/api/chats/{chat}/press", self.press),
            web.post("/api/chats/{chat}/react", self.react),
            web.post("/api/chats/{chat}/topics", self.topic),
            web.post("/api/chats/{chat}/stop", self.stop),
            web.post("/api/chats/{chat}/block", self.block),
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

    # -- what the person does -------------------------------------------------

    async def send(self, request: web.Request) -> web.Response:
        """JSON: `text`, and perhaps `thread` and `reply_to`."""
        body, visitor = await body_of(request), Visitor(self._world, request)
        text, chat = str(body.get("text", "")), visitor.chat()
        if not sendable(text):
            raise web.HTTPBadRequest(text="nothing to send")
        thread = visitor.thread(body.get("thread"))
        reply = optional(body.get("reply_to"))
        said = await visitor.person.send(text, chat=chat, thread=thread, reply_to=reply)
        return shown(message_view(chat, said, visitor.me))

    async def upload(self, request: web.Request) -> web.Response:
        """A form: `kind`, `caption`, `thread`, `seconds`, `album`, and last the `file`."""
        visitor, fields = Visitor(self._world, request), dict[str, str]()
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader) or part.name is None:
                continue
            if part.filename is None:
                fields[part.name] = await part.text()
                continue
            chat, content = visitor.chat(), bytes(await part.read(decode=True))
            kind, caption = fields.get("kind", "document"), fields.get("caption", "")
            if kind not in KINDS or not content:
                raise web.HTTPBadRequest(text="an empty file, or no kind of file")
            sendable(caption)
            send = partial(
                visitor.person.send_file,
                content=content,
                name=part.filename or "file",
                caption=caption,
                chat=chat,
                thread=visitor.thread(fields.get("thread")),
                album=fields.get("album") or None,
                mime=part.headers.get("Content-Type", ""),
            )
            try:
                said = await send(kind, seconds=number(fields.get("seconds") or 0))
            except ValueError:  # a picture nobody can show travels as a file
                said = await send("document")
            return shown(message_view(chat, said, visitor.me))
        raise web.HTTPBadRequest(text="no file in the form")

    async def edit(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        text, message = str(body.get("text", "")), visitor.message(body)
        if message.sender.id != visitor.me.id:
            raise web.HTTPForbidden(text="not a message of yours")
        if not sendable(text):
            raise web.HTTPBadRequest(text="nothing to send")
        edited = await visitor.person.edit(message, text)
        return shown(message_view(visitor.chat(), edited, visitor.me))

    async def press(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        message = visitor.message(body)
        try:
            button = message.keyboard[number(body.get("row"))][number(body.get("column"))]
        except LookupError:
            raise web.HTTPNotFound(text="no such button") from None
        return shown({"query": visitor.person.press_button(message, button).id})

    async def react(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        emoji = str(body.get("emoji", ""))
        if emoji and emoji not in REACTIONS:
            raise web.HTTPBadRequest(text="no such reaction")
        await visitor.person.react(visitor.message(body), emoji)
        return shown({})

    async def topic(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        name = str(body.get("name", "")).strip()
        if not name:
            raise web.HTTPBadRequest(text="a topic needs a name")
        return shown((await visitor.person.create_topic(name, chat=visitor.chat())).json())

    async def stop(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        try:
            await visitor.person.stop_draft(
                chat=visitor.chat(), thread=optional(body.get("thread"))
            )
        except LookupError:
            raise web.HTTPNotFound(text="nothing to stop") from None
        return shown({})

    async def block(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        await (visitor.person.block() if body.get("blocked") else visitor.person.unblock())
        return shown({})


def sendable(text: str) -> bool:
    """Whether anything is left of a text as Telegram keeps it. Raises HTTPBadRequest for one that it refuses."""
    try:
        return bool(formatted(text, "", [])[0])
    except ApiError as error:
        raise web.HTTPBadRequest(text=error.description) from None


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
