"""Requests of the chat page: the account that makes them, the chat that they are about, their body."""

import re
from dataclasses import replace

from aiohttp import web

from bot.localgram.chat import Chat
from bot.localgram.message import Message
from bot.localgram.people import Account
from bot.localgram.person import Person
from bot.localgram.wire import Json
from bot.localgram.world import World

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:;"
    " media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def number(given: object) -> int:
    try:
        return int(str(given))
    except ValueError:
        raise web.HTTPBadRequest(text=f"{given!r} is no number") from None


def optional(given: object) -> int | None:
    return number(given) if given else None


class Visitor:
    """One request of the page. `?user=ID` says whose; left out, it is the first person's. With
    `&language=CODE` that person's app is in that language from now on.

    Raises: HTTPNotFound for people, chats and messages that are not there or not theirs.
    """

    def __init__(self, world: World, request: web.Request) -> None:
        self._world = world
        self._request = request
        self.me = self._account()
        self.person = Person(world, self.me)

    def _account(self) -> Account:
        people = self._world.people
        wanted = number(self._request.query.get("user") or next(iter(people), 0))
        if wanted not in people:
            raise web.HTTPNotFound(text="no such user")
        language = self._request.query.get("language", "")
        if re.fullmatch("[a-z]{2,3}", language) and people[wanted].language != language:
            people[wanted] = replace(people[wanted], language=language)
        return people[wanted]

    def chat(self) -> Chat:
        chat = self._world.chats.get(number(self._request.match_info["chat"]))
        if chat is None or not chat.holds(self.me.id):
            raise web.HTTPNotFound(text="no such chat")
        return chat

    def thread(self, given: object) -> int | None:
        thread = optional(given)
        if thread is not None and thread not in self.chat().topics:
            raise web.HTTPNotFound(text="no such topic")
        return thread

    def message(self, body: Json) -> Message:
        message = self.chat().messages.get(number(body.get("message") or 0))
        if message is None:
            raise web.HTTPNotFound(text="no such message")
        return message


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
