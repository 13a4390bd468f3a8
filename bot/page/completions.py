"""The agent behind OpenAI's form of an API, for programs that talk to a model, such as Home Assistant and Open WebUI.

    GET  /v1/models              one model, voltaire; /v1/models/voltaire, too
    POST /v1/chat/completions    one turn, streamed or not

Each client has a key and a chat, which remembers what was said: of the history that a client sends only the last
message of its user counts.
"""

import asyncio
import hashlib
import json
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Any, Literal

from aiohttp import web
from pydantic import BaseModel, TypeAdapter, ValidationError

from agent.aio import BackgroundTasks
from agent.errors import AgentError
from agent.events import (
    Event,
    ModelFinished,
    TextDelta,
    ThoughtDelta,
    TokenUsage,
    ToolCalled,
    TurnFinished,
)
from backend.connections import Connections
from bot.page.access import load_key
from bot.settings import Settings

log = logging.getLogger(__name__)

PREFIX = "/v1/"
MODEL = "voltaire"
LISTED = {"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}
LARGEST_BODY = 32 << 20  # a whole history
BEAT_SECONDS = 15.0
CHAT_HEADER = "X-Voltaire-Chat"
LONGEST_CHAT = 100  # characters of that header
INSTRUCTIONS = ("system", "developer")
CHORE = re.compile(r"### Task:.*<chat_history>.*</chat_history>", re.DOTALL)
"""What Open WebUI asks behind a chat, for its title, tags, follow-up questions or searches, and reads JSON from."""
JsonFields = dict[str, Any]
Talk = Callable[[str, str, str, str, Callable[[Event], None]], Awaitable[TurnFinished]]
"""Runs a turn: the client's name, the chat, the words, the message's unique id, what is called with each event."""


class Refused(AgentError):
    """A request gets an error; `str` is the sentence."""

    def __init__(self, status: int, why: str, code: str | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.code = code

    @property
    def body(self) -> JsonFields:
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": str(self), "type": kind, "param": None, "code": self.code}
        return {"error": error}


class Part(BaseModel):
    type: str
    text: str = ""


PARTS = TypeAdapter(list[Part])


class Message(BaseModel):
    role: str
    content: Any = None  # read of the last one alone


class Asked(BaseModel):
    """A request; what it says of sampling and tools is the agent's own affair, and is not read."""

    messages: list[Message]
    model: str = MODEL
    stream: bool | None = None
    stream_options: JsonFields | None = None

    @property
    def words(self) -> str:
        """What the user said last. Raises Refused, ValidationError."""
        said = [message for message in self.messages if message.role not in INSTRUCTIONS]
        if not said or said[-1].role != "user":
            raise Refused(400, "The last message is not the user's, so there is nothing to answer.")
        content = said[-1].content or ""
        text = [{"type": "text", "text": content}]
        parts = PARTS.validate_python(text if isinstance(content, str) else content)
        if other := next((part.type for part in parts if part.type != "text"), ""):
            raise Refused(400, f"The message has a part of type {other}: only text is taken here.")
        if not (words := "\n".join(part.text for part in parts).strip()):
            raise Refused(400, "The user's last message is empty.")
        return words


@dataclass(frozen=True)
class Client:
    """A program with a key. `chat` is the configured one; "": one of its own, or several that a header names."""

    name: str
    key: str = field(repr=False)
    chat: str

    def chat_of(self, request: web.Request) -> str:
        """The chat of a request. Raises Refused."""
        named = request.headers.get(CHAT_HEADER, "")
        if len(named) > LONGEST_CHAT or not named.isprintable():
            raise Refused(400, f"{CHAT_HEADER} has at most {LONGEST_CHAT} printable characters.")
        return self.chat or ":".join(filter(None, ("api", self.name, named)))


def completions_route(
    settings: Settings, talk: Talk, connections: Connections, tasks: BackgroundTasks
) -> web.RouteDef:
    """Create the API's route; `tasks` run the turns. Raises PageRefused if a key cannot be read, is too short, or
    readable to others."""
    clients = [
        Client(name, load_key(each.key_file, f"The key of page.clients.{name}"), each.chat)
        for name, each in settings.page.clients.items()
    ]

    async def serve(request: web.Request) -> web.StreamResponse:
        try:
            given = request.headers.get("Authorization", "").removeprefix("Bearer ").encode()
            known = [each for each in clients if compare_digest(each.key.encode(), given)]
            if not known:
                raise Refused(401, "That is no key of a client.", "invalid_api_key")
            connections.keep(request.transport)
            match request.method, request.path.removeprefix(PREFIX):
                case "GET", "models":
                    return web.json_response({"object": "list", "data": [LISTED]})
                case "GET", "models/voltaire":
                    return web.json_response(LISTED)
                case "POST", "chat/completions":
                    return await complete(request, known[0], talk, tasks)
            raise Refused(404, f"There is no {request.method} {request.path} here.")
        except Refused as error:
            return web.json_response(error.body, status=error.status)

    return web.route("*", PREFIX + "{path:.*}", serve)


async def complete(
    request: web.Request, client: Client, talk: Talk, tasks: BackgroundTasks
) -> web.StreamResponse:
    """Answer with a turn of the client's chat. A client that goes away stops its turn, unless its message has an
    idempotency key, with which it can come again. Raises Refused."""
    try:
        body = await request.clone(client_max_size=LARGEST_BODY).read()
        asked = Asked.model_validate_json(body)
        words, chat = asked.words, client.chat_of(request)
    except web.HTTPRequestEntityTooLarge:
        raise Refused(413, f"The request has more than {LARGEST_BODY >> 20} MiB.") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise Refused(400, f"{where or 'The body'}: {first['msg']}.") from None
    again = request.headers.get("Idempotency-Key", "")
    named = "\0".join([client.name, chat, again or secrets.token_hex(16), words])
    update = hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()
    events: asyncio.Queue[Event | Refused] = asyncio.Queue()

    async def turn() -> None:
        try:
            if CHORE.match(words):
                events.put_nowait(TurnFinished("{}", "done", 0))
            else:
                await talk(client.name, chat, words, update, events.put_nowait)
        except AgentError as error:
            events.put_nowait(Refused(503, str(error)))
        except Exception:
            log.exception("a turn of %s failed", client.name)
            events.put_nowait(Refused(500, "It failed for a reason that is in the log."))

    running = tasks.start(turn(), f"a turn of {client.name}")
    try:
        completion = Completion(asked, f"chatcmpl-{update[:24]}", arriving(events))
        return await (completion.streamed(request) if asked.stream else completion.whole())
    finally:
        if not again:
            running.cancel()


async def arriving(events: asyncio.Queue[Event | Refused]) -> AsyncIterator[Event | None]:
    """A turn's events to its end, and None every BEAT_SECONDS without one. Raises Refused."""
    while True:
        event: Event | Refused | None = None
        with suppress(TimeoutError):
            async with asyncio.timeout(BEAT_SECONDS):
                event = await events.get()
        if isinstance(event, Refused):
            raise event
        yield event
        if isinstance(event, TurnFinished):
            return


@dataclass(frozen=True)
class Completion:
    """One answer in OpenAI's form."""

    asked: Asked
    id: str
    events: AsyncIterator[Event | None]

    async def whole(self) -> web.Response:
        async for event in self.events:
            if isinstance(event, TurnFinished):
                message = {"role": "assistant", "content": event.text, "refusal": None}
                choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
                form = self.form("chat.completion", [choice])
                return web.json_response({**form, "usage": usage_form(event.usage)})
        raise AssertionError("a turn without an end")

    async def streamed(self, request: web.Request) -> web.StreamResponse:
        """Stream the words as they come, thoughts and calls as `reasoning_content`; at the end what of the final text
        was not streamed."""
        event = await anext(self.events)
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)

        async def send(fields: JsonFields) -> None:
            await answer.write(f"data: {json.dumps(fields)}\n\n".encode())

        async def add(finish: Literal["stop"] | None = None, **delta: str) -> None:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            await send(self.form("chat.completion.chunk", [choice]))

        await add(role="assistant", content="")
        shown, step_over = "", False  # of the newest step
        try:
            while not isinstance(event, TurnFinished):
                match event:
                    case None:
                        await add(content="")  # a comment is no event to every client
                    case TextDelta(text):
                        if step_over and shown:
                            await add(content="\n\n")
                            shown = ""
                        step_over, shown = False, shown + text
                        await add(content=text)
                    case ThoughtDelta(text):
                        await add(reasoning_content=text)
                    case ToolCalled(_, name, arguments):
                        call = f"\n→ {name} {json.dumps(arguments, ensure_ascii=False)}\n"
                        await add(reasoning_content=call)
                    case ModelFinished():
                        step_over = True
                event = await anext(self.events)
        except Refused as error:
            await send(error.body)
            return answer
        if rest := not_shown(event.text, shown.strip()):
            await add(content=rest)
        await add("stop")
        if (self.asked.stream_options or {}).get("include_usage"):
            form = self.form("chat.completion.chunk", [])
            await send({**form, "usage": usage_form(event.usage)})
        await answer.write(b"data: [DONE]\n\n")
        return answer

    def form(self, kind: str, choices: list[JsonFields]) -> JsonFields:
        fields = {"id": self.id, "object": kind, "created": int(time.time())}
        return {**fields, "model": self.asked.model, "choices": choices}


def not_shown(text: str, shown: str) -> str:
    """Return the rest of a turn's text after what was shown of it; all of it if that was a preview."""
    if text.startswith(shown):
        return text[len(shown) :]
    return "\n\n" + text.removesuffix(shown).rstrip()


def usage_form(usage: TokenUsage) -> JsonFields:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
