"""OpenAIModel: chat completions over HTTP, streamed.

No total time-out: a long prefill is no fault. What ends a wait is the connection
refused, broken, or without one byte (a comment is one) for `silence_seconds`.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Self, TypeVar

import aiohttp

from agent.errors import BackendAway
from agent.llm.openai.chunks import Chunks
from agent.llm.openai.refusals import error_of, refusal
from agent.llm.openai.sse import DONE, Events, StreamTooLong, parse
from agent.llm.openai.values import mapping, sequence, text, whole
from agent.llm.openai.wire import (
    Json,
    encode,
    estimate,
    prompt_json,
    request_json,
    takes_text_calls,
    text_call_probe,
)
from agent.messages import Assistant
from agent.model import Completion, ModelRefused, Piece, Reading, Request
from backend.client import BackendUnavailable
from backend.protocol import Endpoint

_BROKEN = (aiohttp.ClientError, OSError, TimeoutError, StreamTooLong)
_LONGEST_ERROR = 65536
Asked = TypeVar("Asked")
FRESH_SECONDS = 1.0  # how old an endpoint may be; a switch of the model takes longer
# What "[DONE]" says to a stream that gave no reason before.
_LAST: Mapping[str, Any] = {"done": True}


class OpenAIModel:
    """A model behind any OpenAI-compatible server; agent.model.Model says what it does.

    `endpoint` is asked before each call, at most once in FRESH_SECONDS unless a call
    has failed, so that a restart on another port is followed;
    backend.client.BackendUnavailable from it means that none is there.
    """

    def __init__(
        self,
        endpoint: Callable[[], Awaitable[Endpoint]],
        *,
        connect_seconds: float = 10.0,
        silence_seconds: float = 600.0,
    ) -> None:
        self._source = endpoint
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=connect_seconds, sock_read=silence_seconds
        )
        self._session: aiohttp.ClientSession | None = None
        self._known: tuple[float, Endpoint] | None = None
        self._names: dict[str, str] = {}
        self._takes_text_calls: dict[tuple[str, str, str | None], bool] = {}

    async def __aenter__(self) -> Self:
        # A kept connection would be a broken one after each restart of the server.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def window(self) -> int:
        return (await self._endpoint()).n_ctx

    async def useful(self) -> int | None:
        """How much of the window the model uses well, in tokens; None: all of it."""
        return (await self._endpoint()).useful_context

    async def sees(self) -> bool:
        """Whether the model takes pictures: llama-server tells; of others nobody knows, so no."""
        return await self._asked(self._sees)

    async def count(self, request: Request) -> int:
        """Exact where the server counts rendered requests (llama-server), else an upper estimate."""
        return await self._asked(lambda endpoint: self._count(endpoint, request))

    async def rendered(self, request: Request) -> str | None:
        """The prompt text of a request; None where the server cannot show it.

        Raises ModelRefused with the template's own complaint.
        """
        return await self._asked(lambda endpoint: self._shown(endpoint, request))

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        asked = asyncio.get_running_loop().time()
        answer = await self._asked(lambda endpoint: self._ask(endpoint, request))
        try:
            async for piece in _pieces(answer, asked):
                if isinstance(piece, Completion) and piece.finish_reason == "cut":
                    self._known = None
                yield piece
        finally:
            answer.close()  # at once, also when cancelled: the slot is freed

    async def _ask(self, endpoint: Endpoint, request: Request) -> aiohttp.ClientResponse:
        """The open answer, to be closed by the caller."""
        if not endpoint.extras:  # OpenAI's form knows no such budget
            request = replace(request, thinking=0)
        wire = request_json(
            request,
            await self._name(endpoint),
            extras=endpoint.extras,
            calls_as_text=await self._calls_as_text(endpoint, request),
            sampling=endpoint.sampling,
            template=endpoint.template,
        )
        return await self._call("POST", endpoint, "/v1/chat/completions", wire)

    async def _sees(self, endpoint: Endpoint) -> bool:
        if not endpoint.extras:
            return False
        try:
            props = mapping(await self._json("GET", endpoint, "/props"))
        except ModelRefused:
            return False
        return mapping(props.get("modalities")).get("vision") is True

    async def _count(self, endpoint: Endpoint, request: Request) -> int:
        wire = await self._prompt(endpoint, request)
        counted = await self._counted(endpoint, wire) if endpoint.extras else None
        return estimate(wire) if counted is None else counted

    async def _shown(self, endpoint: Endpoint, request: Request) -> str | None:
        if not endpoint.extras:
            return None
        wire = await self._prompt(endpoint, request)
        found = await self._json("POST", endpoint, "/apply-template", wire)
        return text(mapping(found).get("prompt"))

    async def _prompt(self, endpoint: Endpoint, request: Request) -> Json:
        as_text = await self._calls_as_text(endpoint, request)
        return prompt_json(request, calls_as_text=as_text, template=endpoint.template)

    async def _calls_as_text(self, endpoint: Endpoint, request: Request) -> bool:
        """Whether this server's template repeats a call as text to the letter and shows its result.

        Gemma 4's drops results that follow no structured call, without a word:
        so the template is tried, once, and where it cannot be, the answer is no.
        """
        if not endpoint.extras or not _has_text_calls(request):
            return False
        key = (endpoint.url, endpoint.model, endpoint.profile)
        if key not in self._takes_text_calls:
            probe = text_call_probe(endpoint.template)
            before, behind = [await self._rendered(endpoint, wire) for wire in probe]
            self._takes_text_calls[key] = bool(before) and takes_text_calls(before, behind)
        return self._takes_text_calls[key]

    async def _rendered(self, endpoint: Endpoint, wire: Json) -> str:
        """The prompt as the server's template renders it; empty when the template refuses it."""
        try:
            found = await self._json("POST", endpoint, "/apply-template", wire)
        except ModelRefused:
            return ""
        return text(mapping(found).get("prompt"))

    async def _name(self, endpoint: Endpoint) -> str:
        """The model to ask for: the configured one, else the first that the server lists."""
        if endpoint.model:
            return endpoint.model
        if endpoint.url not in self._names:
            listed = mapping(await self._json("GET", endpoint, "/v1/models"))
            first = next(iter(sequence(listed.get("data"))), None)
            self._names[endpoint.url] = text(mapping(first).get("id")) or "default"
        return self._names[endpoint.url]

    async def _counted(self, endpoint: Endpoint, wire: Json) -> int | None:
        try:
            path = "/v1/chat/completions/input_tokens"
            found = await self._json("POST", endpoint, path, wire)
        except ModelRefused:
            return None
        return whole(mapping(found).get("input_tokens"))

    async def _json(
        self, method: str, endpoint: Endpoint, path: str, wire: Json | None = None
    ) -> Any:
        answer = await self._call(method, endpoint, path, wire)
        try:
            return json.loads(await answer.read())
        except _BROKEN as error:
            raise _away(error) from None
        except ValueError:
            return None
        finally:
            answer.close()

    async def _call(
        self, method: str, endpoint: Endpoint, path: str, wire: Json | None = None
    ) -> aiohttp.ClientResponse:
        """An answer with status 200, to be closed by the caller."""
        assert self._session, "use `async with OpenAIModel(...)`"
        try:
            answer = await self._session.request(
                method,
                endpoint.url + path,
                data=None if wire is None else encode(wire),
                headers=_headers(endpoint),
                allow_redirects=False,
            )
            if answer.status == 200:
                return answer
            self._known = None
            body = await answer.content.read(_LONGEST_ERROR)
        except _BROKEN as error:
            self._known = None
            raise _away(error) from None
        answer.close()
        raise refusal(answer.status, _without_key(body, endpoint))

    async def _asked(self, ask: Callable[[Endpoint], Awaitable[Asked]]) -> Asked:
        """What `ask` gets; a server that has moved since we knew of it is asked where it is now."""
        endpoint = await self._endpoint()
        try:
            return await ask(endpoint)
        except BackendAway:
            now = await self._endpoint()
            if now == endpoint:
                raise
            return await ask(now)

    async def _endpoint(self) -> Endpoint:
        """Of a moment ago at most: a turn asks many times over. What failed is asked for anew."""
        now = asyncio.get_running_loop().time()
        if self._known and now - self._known[0] < FRESH_SECONDS:
            return self._known[1]
        try:
            endpoint = await self._source()
        except BackendUnavailable as error:
            raise BackendAway(str(error)) from None
        self._known = now, endpoint
        return endpoint


async def _pieces(answer: aiohttp.ClientResponse, asked: float) -> AsyncGenerator[Piece]:
    """The answer's pieces; the last one is the completion, "cut" when the stream broke off."""
    now = asyncio.get_running_loop().time
    chunks, first = Chunks(), None
    try:
        async with aclosing(_values(answer)) as values:
            async for value in values:
                for piece in chunks.feed(value):
                    if first is None and not isinstance(piece, Reading):
                        first = now()
                    yield piece
    except _BROKEN:
        chunks.finish_reason = None
    ttft = None if first is None else round((first - asked) * 1000)
    yield chunks.completion(chunks.finish_reason or "cut", ttft)


async def _values(answer: aiohttp.ClientResponse) -> AsyncGenerator[Mapping[str, Any]]:
    """Each chunk of the answer; an error in the stream is raised."""
    if answer.content_type == "application/json":  # a server that does not stream
        yield _chunk(parse(await answer.text("utf-8", "replace")))
        return
    events = Events()
    async for block in answer.content.iter_any():
        for value in events.feed(block):
            yield _chunk(value)
    for value in events.close():
        yield _chunk(value)


def _chunk(value: Any) -> Mapping[str, Any]:
    if value == DONE:
        return _LAST
    chunk = mapping(value)
    if error := chunk.get("error"):
        raise error_of(500, error)
    return chunk


def _has_text_calls(request: Request) -> bool:
    return any(isinstance(m, Assistant) and m.raw and m.calls for m in request.messages)


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {"Content-Type": "application/json"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    return headers


def _without_key(body: bytes, endpoint: Endpoint) -> bytes:
    """Some servers repeat the key that they refuse; people read what is said of it."""
    key = endpoint.api_key.encode()
    return body.replace(key, b"[key]") if key else body


def _away(error: BaseException) -> BackendAway:
    if isinstance(error, TimeoutError):
        return BackendAway("The model server gave no sign of life.")
    return BackendAway("The model server cannot be reached.")
