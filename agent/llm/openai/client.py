"""OpenAIModel: chat completions over HTTP, streamed.

There is no total timeout, as a long prefill is no fault. A wait ends when the connection is
refused, breaks, or carries not one byte (comments count) for `silence_seconds`.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import takewhile
from typing import Any, Self, TypeVar

import aiohttp

from agent.bounded_json import PLAIN
from agent.errors import AgentError, BackendAway, ContextFull
from agent.language import translated
from agent.llm.openai import call_grammar
from agent.llm.openai.chunks import DONE, Chunks, Events, StreamTooLong, parse
from agent.llm.openai.prompt_form import NATIVE, Json, images_of, with_empty_images
from agent.llm.openai.template_probes import TemplateProbes
from agent.llm.openai.values import mapping, sequence, text, whole
from agent.llm.openai.wire import (
    encode,
    estimate,
    prompt_json,
    prompt_text,
    raw_json,
    reading_json,
    request_json,
)
from agent.llm.tool_call_parser import opened_thought
from agent.messages import Assistant, Message, User
from agent.model import Ahead, Completion, ModelRefused, Piece, PrefillProgress, Request, TextPiece
from agent.prompt import day_opening
from backend.client import BackendUnavailable
from backend.protocol import Endpoint, Phrase, Prefix

_BROKEN = (aiohttp.ClientError, OSError, TimeoutError, StreamTooLong)
_LONGEST_ERROR = 65536  # bytes
_LONGEST_ANSWER = 8 << 20  # bytes of an answer that is not streamed: a long prompt as rendered
_BLOCK = 1 << 14  # bytes that are parsed at once
_COMPLETIONS = "/v1/chat/completions"
_COMPLETION = "/v1/completions"
# llama-server's own form, which alone takes tokens and pictures where a projector is loaded.
_NATIVE = "/completion"
WORDS = ("A", "7 b")  # two messages whose beginnings have nothing in common
FRESH_SECONDS = 1.0  # how old an endpoint may be; a switch of the model takes longer
T = TypeVar("T")


class OpenAIModel:
    """An agent.model.Model behind any OpenAI-compatible server.

    `endpoint` is asked before each call, but only once in FRESH_SECONDS unless a call has failed, so that a
    restart on another port is followed. Its backend.client.BackendUnavailable means that there is no server.
    """

    def __init__(
        self,
        endpoint: Callable[[], Awaitable[Endpoint]],
        *,
        connect_seconds: float = 10.0,
        silence_seconds: float = 600.0,
    ) -> None:
        self._fetch_endpoint = endpoint
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=connect_seconds, sock_read=silence_seconds
        )
        self._session: aiohttp.ClientSession | None = None
        self._known: tuple[float, Endpoint] | None = None  # with the time when it was fetched
        self._names: dict[str, str] = {}
        self.probes = TemplateProbes(self._json)

    async def __aenter__(self) -> Self:
        # A kept connection would be a broken one after each restart of the server.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=self._timeout, headers=PLAIN, auto_decompress=False
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def window(self) -> int:
        return (await self._endpoint()).n_ctx

    async def useful(self) -> int | None:
        """The part of the window that the model uses well, in tokens; None for all of it."""
        return (await self._endpoint()).useful_context

    async def shows_prompts(self) -> bool:
        """Whether the server renders prompts, which `ahead` needs."""
        return (await self._endpoint()).extras

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        began = asyncio.get_running_loop().time()
        endpoint, answer = await self._endpoint(), None
        while answer is None:
            try:
                route, wire = await self._asked(endpoint, request)
                answer = await self._call("POST", endpoint, route, wire)
            except BackendAway:
                before, endpoint = endpoint, await self._endpoint()
                if endpoint == before:
                    raise
            except ModelRefused as error:
                if not error.unparsed:  # the template may be another than the one that was probed
                    self._forget()
                raise
        opened = opened_thought(prompt_text(wire))
        try:
            async with aclosing(self._pieces(answer, began)) as pieces:
                async for piece in pieces:
                    if opened and isinstance(piece, TextPiece):
                        piece, opened = TextPiece(opened + piece.text), ""
                    if isinstance(piece, Completion) and not endpoint.extras:
                        piece = replace(piece, estimated_tokens=estimate(wire))
                    yield piece
        finally:
            answer.close()  # at once, also when cancelled: the slot is freed

    async def count(self, request: Request) -> int:
        """Exact where the server counts rendered requests (llama-server), else an upper estimate."""

        async def counted(endpoint: Endpoint) -> int:
            wire = await self._prompt_json(endpoint, request)
            if not endpoint.extras:
                return estimate(wire)
            try:
                found = await self._json("POST", endpoint, f"{_COMPLETIONS}/input_tokens", wire)
            except ModelRefused:
                return estimate(wire)
            tokens = whole(mapping(found).get("input_tokens"))
            return estimate(wire) if tokens is None else tokens

        return await self._followed(counted)

    async def rendered(self, request: Request) -> str | None:
        """The prompt text of a request; None where the server cannot show it.

        Raises ModelRefused with the template's own complaint.
        """

        async def shown(endpoint: Endpoint) -> str | None:
            if not endpoint.extras:
                return None
            return await self.probes.rendered(endpoint, await self._prompt_json(endpoint, request))

        return await self._followed(shown)

    async def ahead(self, request: Request, *, changed: bool = False) -> Ahead | None:
        """The common beginning of two prompts: the conversation with one and with another message behind it.

        In tokens, so that the server's cache ends exactly there: hybrid and sliding-window models
        cannot go back; where others can, the day of the last message is taken for that of the next.
        Pictures are no tokens: a conversation with some is a text, cut at a token's end.
        """
        messages = with_empty_images(request.messages)

        async def rendered(endpoint: Endpoint) -> Ahead | None:
            if not endpoint.extras:
                return None
            form = await self.probes.form(endpoint, request)
            pictures = len(images_of(request)) if form.pictures else 0
            marker = await self._media_marker(endpoint) if pictures else ""
            if pictures and not marker:
                return None

            async def shown(*behind: Message) -> str:
                wire = prompt_json(replace(request, messages=behind), form, endpoint.template)
                return await self.probes.rendered(endpoint, wire)

            try:
                texts = (each.text for each in reversed(messages) if isinstance(each, User))
                opening = day_opening(next(texts, "")) if endpoint.rolls_back else ""
                prompts = [await shown(*messages, User(opening + words)) for words in WORDS]
                last = messages[-1]
                if changed and isinstance(last, Assistant) and not last.thought:
                    before = await shown(*messages[:-1])
                    if prompts[0].startswith(before + (last.raw or last.text)):
                        return None
                if pictures:
                    text_read = await self._common_text(endpoint, prompts, marker, pictures)
                    return Ahead(text_read, endpoint.keeps_prompts) if text_read else None
                tokens = [await self._tokens(endpoint, prompt) for prompt in prompts]
                same = takewhile(lambda pair: pair[0] == pair[1], zip(*tokens, strict=False))
            except ModelRefused:  # no such message in the template, or no such route
                return None
            read = tuple(token for token, _ in same)
            return Ahead(read, endpoint.keeps_prompts)

        return await self._followed(rendered)

    async def _common_text(
        self, endpoint: Endpoint, prompts: Sequence[str], marker: str, pictures: int
    ) -> str:
        """What both prompts begin with, as far as it gives the same tokens by itself; "" where it does not, or
        where the template shows no marker for some picture."""
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(*prompts, strict=False))
        same = "".join(letter for letter, _ in pairs)
        if same.count(marker) != pictures:
            return ""
        behind = same.rindex(marker) + len(marker)
        whole_tail = await self._tokens(endpoint, prompts[0][behind:])
        for cut in (same, same.rstrip(" ")):  # a space may be of one token with what follows it
            tail = await self._tokens(endpoint, cut[behind:])
            if tail == whole_tail[: len(tail)]:
                return cut
        return ""

    async def _media_marker(self, endpoint: Endpoint) -> str:
        """Return the server's placeholder for an image in a rendered prompt (new at each start), or "" if
        unsupported."""
        try:
            return text(mapping(await self._json("GET", endpoint, "/props")).get("media_marker"))
        except ModelRefused:
            return ""

    async def _tokens(self, endpoint: Endpoint, prompt: str) -> list[int]:
        wire = {"content": prompt, "add_special": True, "parse_special": True}
        found = mapping(await self._json("POST", endpoint, "/tokenize", wire))
        return [token for token in sequence(found.get("tokens")) if isinstance(token, int)]

    async def prefix(self, request: Request) -> Prefix:
        """What every request begins with, in wire form. `request` holds the system text and the tools."""

        async def formed(endpoint: Endpoint) -> Prefix:
            form = await self.probes.whole_form(endpoint) if endpoint.extras else NATIVE
            wire = prompt_json(replace(request, messages=(*request.messages, User(""))), form)
            *fixed, last = wire["messages"]
            return Prefix(messages=fixed, tools=wire.get("tools", []), before=last["content"])

        return await self._followed(formed)

    async def _pieces(self, answer: aiohttp.ClientResponse, began: float) -> AsyncGenerator[Piece]:
        """The answer's pieces; the last one is the completion, "cut" where the stream broke off."""
        chunks, ttft = Chunks(), None
        try:
            async with aclosing(_values(answer)) as values:
                async for value in values:
                    for piece in chunks.feed(value):
                        if ttft is None and not isinstance(piece, PrefillProgress):
                            now = asyncio.get_running_loop().time()
                            ttft = round((now - began) * 1000)
                        yield piece
        except _BROKEN:
            chunks.finish_reason = None
        if chunks.finish_reason is None:
            self._known = None
        yield chunks.completion(chunks.finish_reason or "cut", ttft)

    async def _asked(self, endpoint: Endpoint, request: Request) -> tuple[str, Json]:
        """The server's route for the request, and the body to send."""
        images = images_of(request) if endpoint.vision is not False else []
        if request.prompt:
            return _NATIVE, reading_json(request.prompt, images)
        if not endpoint.extras:  # OpenAI's form has no fields for thinking
            request = replace(request, thinking=None, brief=False)
        wire = request_json(
            request,
            await self._name(endpoint),
            extras=endpoint.extras,
            form=await self.probes.form(endpoint, request),
            sampling=endpoint.sampling,
            template=endpoint.template,
        )
        bound: Json = {}
        if request.constrained and endpoint.extras and request.tools:
            bound = call_grammar.fields(request)
        raw = endpoint.extras and (request.raw or bool(bound))
        if not raw or (images and not await self._media_marker(endpoint)):
            return _COMPLETIONS, wire
        prompt = await self.probes.rendered(endpoint, await self._prompt_json(endpoint, request))
        return _NATIVE if images else _COMPLETION, raw_json(wire, prompt, images) | bound

    async def _prompt_json(self, endpoint: Endpoint, request: Request) -> Json:
        return prompt_json(request, await self.probes.form(endpoint, request), endpoint.template)

    async def _name(self, endpoint: Endpoint) -> str:
        """The model to ask for: the configured one, else the first that the server lists."""
        if endpoint.model:
            return endpoint.model
        if endpoint.url not in self._names:
            listed = mapping(await self._json("GET", endpoint, "/v1/models"))
            first = next(iter(sequence(listed.get("data"))), None)
            self._names[endpoint.url] = text(mapping(first).get("id")) or "default"
        return self._names[endpoint.url]

    async def _json(
        self, method: str, endpoint: Endpoint, path: str, wire: Json | None = None
    ) -> Any:
        answer = await self._call(method, endpoint, path, wire)
        try:
            return parse(await _whole_text(answer))
        except _BROKEN as error:
            raise away_error(error) from None
        finally:
            answer.close()

    async def _call(
        self, method: str, endpoint: Endpoint, path: str, wire: Json | None = None
    ) -> aiohttp.ClientResponse:
        """An answer with status 200, to be closed by the caller."""
        assert self._session, "use `async with OpenAIModel(...)`"
        headers = {"Content-Type": "application/json"}
        if endpoint.api_key:
            headers["Authorization"] = f"Bearer {endpoint.api_key}"
        try:
            answer = await self._session.request(
                method,
                endpoint.url + path,
                data=None if wire is None else encode(wire),
                headers=headers,
                allow_redirects=False,
            )
            if answer.status == 200:
                return answer
            self._known = None
            body = await answer.content.read(_LONGEST_ERROR)
        except _BROKEN as error:
            self._known = None
            if isinstance(error, aiohttp.ClientConnectorError):  # another may come up in its place
                self._forget()
            raise away_error(error) from None
        answer.close()
        if endpoint.api_key:  # some servers repeat a refused key in a text that people read
            body = body.replace(endpoint.api_key.encode(), b"[key]")
        raise error_of_answer(answer.status, body)

    async def _followed(self, ask: Callable[[Endpoint], Awaitable[T]]) -> T:
        """The result of `ask`. A server that turns out to have moved is asked at its new address."""
        endpoint = await self._endpoint()
        try:
            return await ask(endpoint)
        except BackendAway:
            now = await self._endpoint()
            if now == endpoint:
                raise
            return await ask(now)

    def _forget(self) -> None:
        """Forget what was found: a server may come back with another template at the same address."""
        self.probes.found.clear()
        self._names.clear()

    async def _endpoint(self) -> Endpoint:
        """Where the server is. A turn asks many times, so an answer holds for FRESH_SECONDS or until a call fails."""
        now = asyncio.get_running_loop().time()
        if self._known and now - self._known[0] < FRESH_SECONDS:
            return self._known[1]
        try:
            endpoint = await self._fetch_endpoint()
        except BackendUnavailable as error:
            raise BackendAway(Phrase.of(error)) from None
        self._known = now, endpoint
        return endpoint


async def _values(answer: aiohttp.ClientResponse) -> AsyncGenerator[Mapping[str, Any]]:
    """Each chunk of the answer; an error in the stream is raised."""
    if answer.content_type == "application/json":  # a server that does not stream
        yield _chunk(parse(await _whole_text(answer)))
        return
    events = Events()
    async for block in answer.content.iter_chunked(_BLOCK):
        for value in events.feed(block):
            yield _chunk(value)
        await asyncio.sleep(0)  # parsing a backlog of blocks would hold up every other task
    for value in events.close():
        yield _chunk(value)


async def _whole_text(answer: aiohttp.ClientResponse) -> str:
    raw = bytearray()
    async for block in answer.content.iter_any():
        raw += block
        if len(raw) > _LONGEST_ANSWER:
            raise StreamTooLong
    return raw.decode("utf-8", "replace")


def _chunk(value: Any) -> Mapping[str, Any]:
    if value == DONE:  # ends a stream that gave no finish reason before
        return {"done": True}
    chunk = mapping(value)
    if error := chunk.get("error"):
        raise error_of(500, error)
    return chunk


def away_error(error: BaseException) -> BackendAway:
    if isinstance(error, TimeoutError):
        return BackendAway(Phrase("The model server gave no sign of life."))
    return BackendAway(Phrase("The model server cannot be reached."))


# -- a server's error as one of the agent's: wait, shorten the prompt, or tell a person --

_AWAY = {429, 502, 503, 504}
# What proxies say in a 500, or in the middle of a stream, when the server behind them is gone:
# LiteLLM (measured with 1.106), aiohttp, httpx, Envoy, Go's net/http.
_AWAY_WORDS = (
    "apiconnectionerror",
    "connection error",
    "connection refused",
    "connection reset",
    "cannot connect to host",
    "server disconnected",
    "payload is not completed",
    "peer closed connection",
    "no healthy upstream",
    "no deployments available",
    "bad gateway",
)
_TOO_LONG_TYPES = {"exceed_context_size_error", "context_length_exceeded"}
_TOO_LONG_WORDS = ("maximum context length", "exceeds the available context", "context size")
# llama-server's parser of answers, and the grammar that follows a call as it is generated.
_UNPARSED_WORDS = ("does not match the expected", "failed to parse", "empty grammar stack")
_LONGEST_MESSAGE = 300


def error_of_answer(status: int, body: bytes) -> AgentError | ModelRefused:
    """The error for an HTTP answer with another status than 200."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = body.decode("utf-8", "replace")
    return error_of(status, value)


def error_of(status: int, value: Any) -> AgentError | ModelRefused:
    """The error for a JSON error value, in the forms of llama-server, OpenAI and vLLM."""
    error = mapping(value).get("error", value)
    fields = mapping(error)
    found = text(fields.get("message")) or text(fields.get("detail")) or text(error)
    message = " ".join(found.split())[:_LONGEST_MESSAGE]
    status = whole(fields.get("code")) or status
    names = {text(fields.get("type")), text(fields.get("code"))}
    if names & _TOO_LONG_TYPES or contains_any(message, _TOO_LONG_WORDS):
        tokens, window = whole(fields.get("n_prompt_tokens")), whole(fields.get("n_ctx"))
        if tokens is None or window is None:
            return ContextFull(message)
        form = translated(
            "The conversation needs {tokens:,} tokens and the window holds {window:,}."
        )
        return ContextFull(form.format(tokens=tokens, window=window))
    if status in _AWAY or (status >= 500 and contains_any(message, _AWAY_WORDS)):
        return BackendAway(Phrase(message) if message else Phrase("The model server is busy."))
    unparsed = contains_any(message, _UNPARSED_WORDS)
    return ModelRefused(status, message or f"HTTP {status}", unparsed=unparsed)


def contains_any(message: str, words: tuple[str, ...]) -> bool:
    return any(word in message.lower() for word in words)
