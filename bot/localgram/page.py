"""The chat page: its files, a stream of the first person's chat, and routes for what that person does."""

import contextlib
import json
import re
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from aiohttp import BodyPartReader, web

from bot.localgram.chat import Chat, message_json
from bot.localgram.feed import Acted, Drafted
from bot.localgram.message import Account, Message, formatted
from bot.localgram.person import Person
from bot.localgram.wire import ApiError, Json
from bot.localgram.world import World

STATIC = Path(__file__).parent / "static"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self';"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
FILE_HEADERS = {**HEADERS, "Content-Security-Policy": "sandbox; default-src 'none'"}
STREAM_HEADERS = {**HEADERS, "Content-Type": "text/event-stream"}
SHOWN_TYPES = ("image/png", "image/jpeg", "audio/")
BEAT_SECONDS = 15.0
ANSWER_SECONDS = 15.0  # that a pressed button waits for the bot
SHOWN = 200  # messages, the newest


class Page:
    def __init__(self, world: World) -> None:
        self._world = world

    def routes(self) -> list[web.RouteDef]:
        acts = (self.send, self.upload, self.press, self.stop)
        return [
            web.get("/", self.index),
            web.get("/static/{name}", self.static),
            web.get("/api/events", self.events),
            web.get("/api/files/{unique}", self.file),
            *(web.post(f"/api/{act.__name__}", act) for act in acts),
        ]

    def _visitor(self) -> tuple[Person, Chat]:
        """The first person. Raises HTTPNotFound where there is none."""
        for number, account in self._world.people.items():
            return Person(self._world, account), self._world.chats[number]
        raise web.HTTPNotFound(text="nobody is here")

    async def index(self, _: web.Request) -> web.StreamResponse:
        return web.FileResponse(STATIC / "index.html", headers=HEADERS)

    async def static(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in {path.name for path in STATIC.iterdir()}:
            raise web.HTTPNotFound
        return web.FileResponse(STATIC / name, headers=HEADERS)

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Send the whole chat as a server-sent event, now and after each change, until the page is closed.

        With `?language=CODE` the person's app is in that language from now on.
        """
        person, chat = self._visitor()
        language = request.query.get("language", "")
        if re.fullmatch("[a-z]{2,3}", language):
            self._world.people[person.id] = replace(person.account, language=language)
        stream = web.StreamResponse(headers=STREAM_HEADERS)
        await stream.prepare(request)
        with contextlib.suppress(ConnectionError):
            while not chat.feed.closed:
                seen, now = chat.feed.last, time.time()
                view = json.dumps(chat_view(self._world, chat, self._world.people[person.id]))
                await stream.write(f"data: {view}\n\n".encode())
                if chat.feed.last == seen:
                    going_on: list[Drafted | Acted] = [*chat.draft.values(), *chat.action.values()]
                    ends = [each.until - now for each in going_on]
                    wait = min([BEAT_SECONDS, *(end for end in ends if end > 0)])
                    await chat.feed.changed_within(wait)
        return stream

    async def file(self, request: web.Request) -> web.Response:
        stored = self._world.files.by_unique.get(request.match_info["unique"])
        if stored is None:
            raise web.HTTPNotFound
        inline = stored.mime.startswith(SHOWN_TYPES)
        mime = stored.mime.partition(";")[0] if inline else "application/octet-stream"
        name = "".join(
            c if c.isascii() and c.isprintable() and c not in '"\\' else "_" for c in stored.name
        )
        kind = "inline" if inline else "attachment"
        headers = {**FILE_HEADERS, "Content-Disposition": f'{kind}; filename="{name}"'}
        return web.Response(body=stored.content, content_type=mime, headers=headers)

    # -- what the person does -------------------------------------------------

    async def send(self, request: web.Request) -> web.Response:
        """Send a message: JSON with `text`."""
        body, (person, _) = await body_of(request), self._visitor()
        return done(await person.send(sendable(body.get("text"))))

    async def upload(self, request: web.Request) -> web.Response:
        """Send a file: a form with `kind` (photo or document), `caption`, and last the `file`."""
        (person, _), fields = self._visitor(), dict[str, str]()
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader) or part.name is None:
                continue
            if part.filename is None:
                fields[part.name] = await part.text()
                continue
            content = bytes(await part.read(decode=True))
            mime = part.headers.get("Content-Type", "")
            if not content:
                raise web.HTTPBadRequest(text="an empty file")
            kind = "photo" if fields.get("kind") == "photo" else "document"
            send = partial(
                person.send_file,
                content=content,
                name=part.filename or "file",
                caption=fields.get("caption", ""),
                mime=mime,
            )
            try:
                return done(await send(kind))
            except ValueError:  # a picture nobody can show travels as a file
                return done(await send("document"))
        raise web.HTTPBadRequest(text="no file in the form")

    async def press(self, request: web.Request) -> web.Response:
        """Press a button; return the bot's answer, which may be empty."""
        body, (person, chat) = await body_of(request), self._visitor()
        try:
            message = chat.messages[number(body.get("message") or 0)]
            button = message.keyboard[number(body.get("row"))][number(body.get("column"))]
        except LookupError:
            raise web.HTTPNotFound(text="no such button") from None
        query = person.press_button(message, button)
        try:
            said = await person.answer(query, seconds=ANSWER_SECONDS)
        except TimeoutError:
            return shown({})
        return shown({"text": said.text, "alert": said.alert, "url": said.url})

    async def stop(self, request: web.Request) -> web.Response:
        body, (person, _) = await body_of(request), self._visitor()
        try:
            await person.stop_draft(thread=number(body.get("thread") or 0) or None)
        except LookupError:
            raise web.HTTPNotFound(text="nothing to stop") from None
        return shown({})


def number(given: object) -> int:
    try:
        return int(str(given))
    except ValueError:
        raise web.HTTPBadRequest(text=f"{given!r} is no number") from None


def sendable(given: object) -> str:
    """Return the text unless Telegram would trim all of it; then raise HTTPBadRequest."""
    try:
        if formatted(str(given or ""), [])[0]:
            return str(given)
    except ApiError as error:
        raise web.HTTPBadRequest(text=error.description) from None
    raise web.HTTPBadRequest(text="nothing to send")


async def body_of(request: web.Request) -> Json:
    """Parse the JSON object of a request. Other content types, which browsers send across sites, are refused."""
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


def done(message: Message) -> web.Response:
    return shown({"message": message.id})


def chat_view(world: World, chat: Chat, me: Account) -> Json:
    """Return all that the page shows. `draft` is null and `action` empty while the bot does nothing."""
    now = time.time()
    drafts = [draft for draft in chat.draft.values() if draft.until > now]
    actions = [action.action for action in chat.action.values() if action.until > now]
    return {
        "title": world.bot.first_name,
        "greeting": world.text("description", me.language),
        "commands": world.commands_in(chat, me.language),
        "messages": [
            {
                **message_json(message, chat),
                "out": message.sender.id == me.id,
                "reactions": [emoji for _, emoji in message.reactions],
            }
            for message in [*chat.messages.values()][-SHOWN:]
        ],
        "draft": {
            "thread": drafts[-1].thread,
            "text": drafts[-1].text,
            "entities": drafts[-1].entities,
            "can_stop": drafts[-1].can_stop,
        }
        if drafts
        else None,
        "action": actions[-1] if actions else "",
    }
