"""The chat page: its files, what stands in the chats, a stream of what happens, and what the person does."""

import contextlib
import json
import re
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from aiohttp import BodyPartReader, web

from bot.localgram.chat import Chat, message_json
from bot.localgram.entities import formatted
from bot.localgram.feed import (
    Acted,
    Answered,
    Changed,
    Deleted,
    Drafted,
    DraftEnded,
    Edited,
    Event,
    Posted,
    Reacted,
)
from bot.localgram.message import Account, Message
from bot.localgram.person import Person
from bot.localgram.wire import ApiError, Json
from bot.localgram.world import REACTIONS, World

STATIC = Path(__file__).parent / "static"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:;"
        " media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
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
        acts = (self.send, self.upload, self.edit, self.press, self.react, self.stop, self.block)
        return [
            web.get("/", self.index),
            web.get("/static/{name}", self.static),
            web.get("/api/home", self.home),
            web.get("/api/events", self.events),
            web.get("/api/files/{unique}", self.file),
            *(web.post(f"/api/{act.__name__}", act) for act in acts),
        ]

    async def index(self, _: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html", headers=HEADERS)

    async def static(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in {path.name for path in STATIC.iterdir()}:
            raise web.HTTPNotFound
        return web.FileResponse(STATIC / name, headers=HEADERS)

    async def home(self, request: web.Request) -> web.Response:
        visitor = Visitor(self._world, request)
        return shown(home_view(self._world, visitor.chat, visitor.me))

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events after `?after=N` (or Last-Event-ID) of `?feed=NAME`, until the
        page goes away."""
        visitor = Visitor(self._world, request)
        feed = visitor.chat.feed
        after = number(
            request.headers.get("Last-Event-ID") or request.query.get("after") or feed.last
        )
        stream = web.StreamResponse(headers=STREAM_HEADERS)
        await stream.prepare(request)
        known = request.query.get("feed", feed.name) == feed.name and feed.holds(after)
        await stream.write(b": beat\n\n" if known else LOST)
        after = after if known else feed.last
        with contextlib.suppress(ConnectionError):
            while not feed.closed:
                for at, event in feed.after(after):
                    after = at
                    said = json.dumps(event_view(self._world, visitor.chat, event, visitor.me))
                    await stream.write(f"id: {at}\ndata: {said}\n\n".encode())
                if feed.last == after and not await feed.changed_within(BEAT_SECONDS):
                    await stream.write(b": beat\n\n")
        return stream

    async def file(self, request: web.Request) -> web.Response:
        stored = self._world.files.by_unique.get(request.match_info["unique"])
        if stored is None:
            raise web.HTTPNotFound
        inline = stored.mime.startswith(SHOWN_TYPES)
        mime = stored.mime.partition(";")[0] if inline else "application/octet-stream"
        headers = {**FILE_HEADERS, "Content-Disposition": _disposition(stored.name, inline)}
        return web.Response(body=stored.content, content_type=mime, headers=headers)

    # -- what the person does -------------------------------------------------

    async def send(self, request: web.Request) -> web.Response:
        """JSON: `text`, and perhaps `reply_to`."""
        body, visitor = await body_of(request), Visitor(self._world, request)
        text = sendable(body.get("text"))
        reply = number(body.get("reply_to") or 0)
        return visitor.shown(await visitor.person.send(text, reply_to=reply))

    async def upload(self, request: web.Request) -> web.Response:
        """A form: `kind`, `caption`, `seconds`, `album`, and last the `file`."""
        visitor, fields = Visitor(self._world, request), dict[str, str]()
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader) or part.name is None:
                continue
            if part.filename is None:
                fields[part.name] = await part.text()
                continue
            content, kind = bytes(await part.read(decode=True)), fields.get("kind", "document")
            if kind not in KINDS or not content:
                raise web.HTTPBadRequest(text="an empty file, or no kind of file")
            caption = fields.get("caption", "")
            send = partial(
                visitor.person.send_file,
                content=content,
                name=part.filename or "file",
                caption=sendable(caption) if caption else "",
                album=fields.get("album") or None,
                mime=part.headers.get("Content-Type", ""),
            )
            try:
                said = await send(kind, seconds=number(fields.get("seconds") or 0))
            except ValueError:  # a picture nobody can show travels as a file
                said = await send("document")
            return visitor.shown(said)
        raise web.HTTPBadRequest(text="no file in the form")

    async def edit(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        message = visitor.message(body)
        if message.sender.id != visitor.me.id:
            raise web.HTTPForbidden(text="not a message of yours")
        return visitor.shown(await visitor.person.edit(message, sendable(body.get("text"))))

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
        if emoji and emoji.replace("\ufe0f", "") not in REACTIONS:
            raise web.HTTPBadRequest(text="no such reaction")
        await visitor.person.react(visitor.message(body), emoji)
        return shown({})

    async def stop(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        try:
            await visitor.person.stop_draft(thread=number(body.get("thread") or 0) or None)
        except LookupError:
            raise web.HTTPNotFound(text="nothing to stop") from None
        return shown({})

    async def block(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        await (visitor.person.block() if body.get("blocked") else visitor.person.unblock())
        return shown({})


class Visitor:
    """One request of the page. `?user=ID` says whose; left out, it is the first person's. With
    `&language=CODE` that person's app is in that language from now on. Raises HTTPNotFound for an unknown person.
    """

    def __init__(self, world: World, request: web.Request) -> None:
        people = world.people
        wanted = number(request.query.get("user") or next(iter(people), 0))
        if wanted not in people:
            raise web.HTTPNotFound(text="no such user")
        language = request.query.get("language", "")
        if re.fullmatch("[a-z]{2,3}", language):
            people[wanted] = replace(people[wanted], language=language)
        self.me = people[wanted]
        self.person = Person(world, self.me)
        self.chat = world.chats[wanted]

    def message(self, body: Json) -> Message:
        message = self.chat.messages.get(number(body.get("message") or 0))
        if message is None:
            raise web.HTTPNotFound(text="no such message")
        return message

    def shown(self, message: Message) -> web.Response:
        return shown(message_view(self.chat, message, self.me))


def number(given: object) -> int:
    try:
        return int(str(given))
    except ValueError:
        raise web.HTTPBadRequest(text=f"{given!r} is no number") from None


def sendable(given: object) -> str:
    """A text of which something is left as Telegram keeps it. Raises HTTPBadRequest for another one."""
    try:
        if formatted(str(given or ""), [])[0]:
            return str(given)
    except ApiError as error:
        raise web.HTTPBadRequest(text=error.description) from None
    raise web.HTTPBadRequest(text="nothing to send")


def _disposition(name: str, inline: bool) -> str:
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "_" for c in name)
    return f'{"inline" if inline else "attachment"}; filename="{plain}"'


async def body_of(request: web.Request) -> Json:
    """The JSON object of a request. Other types are refused: browsers send forms across sites."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send JSON")
    try:
        body = await request.json()
    except ValueError:
        raise web.HTTPBadRequest(text="this is no JSON") from None
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="send a JSON object")
    return body


def shown(body: Json) -> web.Response:
    return web.json_response(body, headers=HEADERS)


# -- the page's form of a message ---------------------------------------------


SHOWN = 200  # messages of a chat, the newest


def message_view(chat: Chat, message: Message, me: Account) -> Json:
    return {
        **message_json(message, chat),
        "out": message.sender.id == me.id,
        "reactions": [{"emoji": emoji, "mine": user == me.id} for user, emoji in message.reactions],
    }


def chat_view(world: World, chat: Chat, me: Account) -> Json:
    """The head of a person's private chat."""
    return {
        "title": world.bot.first_name,
        "greeting": world.text("description", me.language),
        "commands": world.commands_in(chat, me.language),
        "blocked": chat.status == "kicked",
    }


def home_view(world: World, chat: Chat, me: Account) -> Json:
    """The whole chat. `event` is the number after which the page goes on listening to `feed`."""
    going_on: list[Drafted | Acted] = [*chat.draft.values(), *chat.action.values()]
    waiting = [event for event in going_on if event.until > time.time()]
    return {
        "me": me.json(),
        "view": chat_view(world, chat, me),
        "messages": [message_view(chat, each, me) for each in [*chat.messages.values()][-SHOWN:]],
        "waiting": [event_view(world, chat, event, me) for event in waiting],
        "feed": chat.feed.name,
        "event": chat.feed.last,
    }


def event_view(world: World, chat: Chat, event: Event, me: Account) -> Json:
    """One line of the event stream."""
    match event:
        case Posted(message):
            return {"event": "posted", "message": message_view(chat, message, me)}
        case Edited(message) | Reacted(message):
            return {"event": "edited", "message": message_view(chat, message, me)}
        case Deleted(ids=ids):
            return {"event": "deleted", "ids": list(ids)}
        case Drafted() | Acted():
            fields = asdict(event)
            fields["seconds"] = max(0.0, fields.pop("until") - time.time())
            return {"event": "drafted" if isinstance(event, Drafted) else "acted", **fields}
        case DraftEnded(thread=thread):
            return {"event": "draft_ended", "thread": thread}
        case Answered(query=query, text=text, alert=alert, url=url):
            return {"event": "answered", "query": query, "text": text, "alert": alert, "url": url}
        case Changed():
            return {"event": "changed", "view": chat_view(world, chat, me)}
