"""What the person at the page does: write, send files, press, react, edit, stop."""

from dataclasses import replace

from aiohttp import BodyPartReader, web

from bot.localgram.entities import formatted
from bot.localgram.media import attach
from bot.localgram.message import Media, Message
from bot.localgram.reactions import REACTIONS
from bot.localgram.views import message_view
from bot.localgram.visitor import Visitor, body_of, number, optional, shown
from bot.localgram.wire import ApiError
from bot.localgram.world import World

KINDS = frozenset({"photo", "document", "voice", "audio", "video"})


class Acts:
    def __init__(self, world: World) -> None:
        self._world = world

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/chats/{chat}/send", self.send),
            web.post("/api/chats/{chat}/upload", self.upload),
            web.post("/api/chats/{chat}/edit", self.edit),
            web.post("/api/chats/{chat}/press", self.press),
            web.post("/api/chats/{chat}/react", self.react),
            web.post("/api/chats/{chat}/topics", self.topic),
            web.post("/api/chats/{chat}/stop", self.stop),
            web.post("/api/chats/{chat}/block", self.block),
        ]

    async def send(self, request: web.Request) -> web.Response:
        """JSON: `text`, and perhaps `thread` and `reply_to`."""
        body, visitor = await body_of(request), Visitor(self._world, request)
        draft = self._written(visitor, str(body.get("text", "")))
        thread, reply = optional(body.get("thread")), optional(body.get("reply_to"))
        return self._say(visitor, draft, thread, reply)

    def _written(self, visitor: Visitor, text: str, media: Media | None = None) -> Message:
        try:
            kept, entities = formatted(text, "", [])
        except ApiError as error:
            raise web.HTTPBadRequest(text=error.description) from None
        if not kept and media is None:
            raise web.HTTPBadRequest(text="nothing to send")
        return Message(sender=visitor.me, text=kept, entities=entities, media=media)

    def _say(
        self,
        visitor: Visitor,
        draft: Message,
        thread: int | None,
        reply_to: int | None = None,
        album: str | None = None,
    ) -> web.Response:
        chat = visitor.chat()
        if thread is not None and thread not in chat.topics:
            raise web.HTTPNotFound(text="no such topic")
        message = replace(draft, thread=thread, reply_to=reply_to, album=album)
        return shown(message_view(chat, visitor.speech.say(chat, message), visitor.me))

    async def upload(self, request: web.Request) -> web.Response:
        """A form: `kind`, `caption`, `thread`, `seconds`, `album`, and last the `file`."""
        visitor, fields = Visitor(self._world, request), dict[str, str]()
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader) or part.name is None:
                continue
            if part.filename is None:
                fields[part.name] = await part.text()
                continue
            media = await self._media(part, fields)
            draft = self._written(visitor, fields.get("caption", ""), media)
            thread, album = optional(fields.get("thread")), fields.get("album") or None
            return self._say(visitor, draft, thread, album=album)
        raise web.HTTPBadRequest(text="no file in the form")

    async def _media(self, part: BodyPartReader, fields: dict[str, str]) -> Media:
        content, kind = bytes(await part.read(decode=True)), fields.get("kind", "document")
        if kind not in KINDS or not content:
            raise web.HTTPBadRequest(text="an empty file, or no kind of file")
        mime, name = part.headers.get("Content-Type", ""), part.filename or "file"
        seconds = number(fields.get("seconds") or 0)
        try:
            return attach(self._world.files, kind, content, name, mime=mime, seconds=seconds)
        except ValueError:  # a picture nobody can show travels as a file
            return attach(self._world.files, "document", content, name, mime=mime)

    async def edit(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        chat, message = visitor.chat(), visitor.message(body)
        if message.sender.id != visitor.me.id:
            raise web.HTTPForbidden(text="not a message of yours")
        text = self._written(visitor, str(body.get("text", ""))).text
        return shown(message_view(chat, visitor.speech.edit(chat, message, text), visitor.me))

    async def press(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        message = visitor.message(body)
        try:
            button = message.keyboard[number(body.get("row"))][number(body.get("column"))]
        except LookupError:
            raise web.HTTPNotFound(text="no such button") from None
        return shown({"query": visitor.speech.press_button(visitor.chat(), message, button).id})

    async def react(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        emoji = str(body.get("emoji", ""))
        if emoji and emoji not in REACTIONS:
            raise web.HTTPBadRequest(text="no such reaction")
        visitor.speech.react(visitor.chat(), visitor.message(body), emoji)
        return shown({})

    async def topic(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        name = str(body.get("name", "")).strip()
        if not name:
            raise web.HTTPBadRequest(text="a topic needs a name")
        return shown(visitor.speech.create_topic(visitor.chat(), name).json())

    async def stop(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        try:
            visitor.speech.stop_draft(visitor.chat(), optional(body.get("thread")))
        except LookupError:
            raise web.HTTPNotFound(text="nothing to stop") from None
        return shown({})

    async def block(self, request: web.Request) -> web.Response:
        body, visitor = await body_of(request), Visitor(self._world, request)
        visitor.speech.stop_bot("kicked" if body.get("blocked") else "member")
        return shown({})
