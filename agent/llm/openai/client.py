"""OpenAIModel: chat completions over HTTP, streamed.

There is no total time-out: a long prefill is no fault. What ends a wait is the
connection refused, broken, or without one byte (a comment is one) for `silence_seconds`.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import takewhile
from typing import Any, Self, TypeVar

import aiohttp
from pydantic import TypeAdapter

from agent.errors import BackendAway
from agent.llm.openai.chunks import DONE, Chunks, Events, StreamTooLong, parse
from agent.llm.openai.errors import error_of, error_of_answer
from agent.llm.openai.prompt_form import (
    ASKED,
    BLIND,
    FORMS,
    NATIVE,
    PROBE,
    RAW_CALLED,
    THOUGHT_CALLED,
    WORDS,
    WORDS_CALLED,
    Json,
    PromptForm,
    ThoughtForm,
    complete,
    gap_behind_words,
    images_of,
    takes_raw_calls,
    thought_form,
    with_empty_images,
)
from agent.llm.openai.values import mapping, sequence, text, whole
from agent.llm.openai.wire import (
    EFFORTS,
    NO_EFFORT,
    NONSENSE,
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
from agent.model import Ahead, ModelRefused, Piece, PrefillProgress, Request, TextPiece
from agent.store.key_values import KeyValueTable
from backend.client import BackendUnavailable
from backend.protocol import Endpoint, Prefix

_BROKEN = (aiohttp.ClientError, OSError, TimeoutError, StreamTooLong)
_LONGEST_ERROR = 65536  # bytes
_LONGEST_ANSWER = 8 << 20  # bytes of an answer that is not streamed: a long prompt as rendered
_BLOCK = 1 << 14  # bytes that are parsed at once
_COMPLETIONS = "/v1/chat/completions"
_PLAIN = "/v1/completions"
# llama-server's own form, which alone takes tokens and pictures where a projector is loaded.
_NATIVE = "/completion"
NO_ROUTE = (404, 405, 501)
FRESH_SECONDS = 1.0  # how old an endpoint may be; a switch of the model takes longer
T = TypeVar("T")


class OpenAIModel:
    """A model behind any OpenAI-compatible server; agent.model.Model says what it does.

    `kept` holds what was found of chat templates, by their text. `endpoint` is asked before each call, at
    most once in FRESH_SECONDS unless a call has failed, so that a restart on another port is followed;
    backend.client.BackendUnavailable from it means that none is there.
    """

    def __init__(
        self,
        endpoint: Callable[[], Awaitable[Endpoint]],
        *,
        connect_seconds: float = 10.0,
        silence_seconds: float = 600.0,
        kept: KeyValueTable | None = None,
    ) -> None:
        self._fetch_endpoint = endpoint
        self._kept = kept
        self._timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=connect_seconds, sock_read=silence_seconds
        )
        self._session: aiohttp.ClientSession | None = None
        self._known: tuple[float, Endpoint] | None = None  # with the time when it was fetched
        self._names: dict[str, str] = {}
        self.probes: dict[tuple[str, str, str | None, str], Any] = {}
        self._identities: dict[tuple[str, str, str | None], str] = {}

    async def __aenter__(self) -> Self:
        # A kept connection would be a broken one after each restart of the server.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        # Nothing compressed: it could be a thousand times as much as was received.
        plain = {"Accept-Encoding": "identity"}
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=self._timeout, headers=plain, auto_decompress=False
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()

    async def window(self) -> int:
        return (await self._endpoint()).n_ctx

    async def useful(self) -> int | None:
        """How much of the window the model uses well, in tokens; None: all of it."""
        return (await self._endpoint()).useful_context

    async def shows_prompts(self) -> bool:
        """Whether its server renders prompts, so that `ahead` can find something."""
        return (await self._endpoint()).extras

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        began = asyncio.get_running_loop().time()
        endpoint = await self._endpoint()
        try:
            route, wire = await self._asked(endpoint, request)
            answer = await self._call("POST", endpoint, route, wire)
        except BackendAway as error:
            endpoint = await self._moved(endpoint, error)
            route, wire = await self._asked(endpoint, request)
            answer = await self._call("POST", endpoint, route, wire)
        except ModelRefused as error:
            if not error.unparsed:  # perhaps another template than the one that was probed
                self._forget()
            raise
        opened = opened_thought(prompt_text(wire)) if request.raw else ""
        try:
            async with aclosing(self._pieces(answer, began)) as pieces:
                async for piece in pieces:
                    if opened and isinstance(piece, TextPiece):
                        piece, opened = TextPiece(opened + piece.text), ""
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
            return await self._template(endpoint, await self._prompt_json(endpoint, request))

        return await self._followed(shown)

    async def ahead(self, request: Request, *, changed: bool = False) -> Ahead | None:
        """Found by rendering two different messages behind the conversation: what both begin with.

        Tokens, so that the server's cache ends exactly there: hybrid and sliding-window models
        cannot go back. Pictures are no tokens: a conversation with some is a text, cut where its tokens end.
        """
        messages = with_empty_images(request.messages)

        async def rendered(endpoint: Endpoint) -> Ahead | None:
            if not endpoint.extras:
                return None
            form = await self._form(endpoint, request)
            pictures = len(images_of(request)) if form.pictures else 0
            marker = await self._media_marker(endpoint) if pictures else ""
            if pictures and not marker:
                return None

            async def shown(*behind: Message) -> str:
                asked = replace(request, messages=behind)
                return await self._template(endpoint, prompt_json(asked, form, endpoint.template))

            try:
                prompts = [await shown(*messages, User(words)) for words in WORDS]
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
            except (
                ModelRefused
            ):  # a template that takes no such message, or a server without routes
                return None
            read = tuple(token for token, _ in same)
            return Ahead(read, endpoint.keeps_prompts)

        return await self._followed(rendered)

    async def _common_text(
        self, endpoint: Endpoint, prompts: Sequence[str], marker: str, pictures: int
    ) -> str:
        """What both prompts begin with, as far as it gives the same tokens by itself; "" where it does not, or
        where the template has not a marker for each picture."""
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
        """What stands for a picture in this server's rendered prompts, another word after each of its starts;
        "" where it takes no pictures in a plain completion."""
        try:
            return text(mapping(await self._json("GET", endpoint, "/props")).get("media_marker"))
        except ModelRefused:
            return ""

    async def _tokens(self, endpoint: Endpoint, prompt: str) -> list[int]:
        wire = {"content": prompt, "add_special": True, "parse_special": True}
        found = mapping(await self._json("POST", endpoint, "/tokenize", wire))
        return [token for token in sequence(found.get("tokens")) if isinstance(token, int)]

    async def prefix(self, request: Request) -> Prefix:
        """What every request begins with, in the form of its messages: of a system text and tools."""

        async def formed(endpoint: Endpoint) -> Prefix:
            form = await self._whole_form(endpoint) if endpoint.extras else NATIVE
            wire = prompt_json(replace(request, messages=(*request.messages, User(""))), form)
            *fixed, last = wire["messages"]
            return Prefix(messages=fixed, tools=wire.get("tools", []), before=last["content"])

        return await self._followed(formed)

    async def _pieces(self, answer: aiohttp.ClientResponse, began: float) -> AsyncGenerator[Piece]:
        """The answer's pieces; the last one is the completion, "cut" when the stream broke off."""
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
        """The route of this server that completes the request, and what it is sent."""
        images = images_of(request) if endpoint.vision is not False else []
        if request.prompt:
            return _NATIVE, reading_json(request.prompt, images)
        wire = await self._completion_json(endpoint, request)
        if not (request.raw and endpoint.extras):
            return _COMPLETIONS, wire
        if images and not await self._media_marker(endpoint):
            return _COMPLETIONS, wire
        prompt = await self._template(endpoint, await self._prompt_json(endpoint, request))
        return _NATIVE if images else _PLAIN, raw_json(wire, prompt, images)

    async def _completion_json(self, endpoint: Endpoint, request: Request) -> Json:
        if not endpoint.extras:  # OpenAI's form knows of no thinking
            request = replace(request, thinking=None, brief=False)
        return request_json(
            request,
            await self._name(endpoint),
            extras=endpoint.extras,
            form=await self._form(endpoint, request),
            sampling=endpoint.sampling,
            template=endpoint.template,
        )

    async def _prompt_json(self, endpoint: Endpoint, request: Request) -> Json:
        return prompt_json(request, await self._form(endpoint, request), endpoint.template)

    async def _form(self, endpoint: Endpoint, request: Request) -> PromptForm:
        """How this server's template wants the request, tried once where something depends on it."""
        sees = (
            endpoint.vision is not False
        )  # nobody has asked: somebody thought so who kept the picture
        if not endpoint.extras:
            return NATIVE if sees else BLIND
        form = await self._whole_form(endpoint)
        answers = [m for m in request.messages if isinstance(m, Assistant)]
        return replace(
            form,
            raw_calls=any(m.raw and m.calls for m in answers)
            and await self._takes_raw_calls(endpoint, form),
            thoughts=await self._thought_form(endpoint)
            if any(m.thought for m in answers)
            else "none",
            gap=await self._gap(endpoint, form) if any(m.words for m in answers) else None,
            efforts=frozenset() if request.thinking is None else await self._efforts(endpoint),
            pictures=sees,
        )

    async def _whole_form(self, endpoint: Endpoint) -> PromptForm:
        """The first form in which the template shows all of a conversation with calls."""

        async def tried() -> PromptForm:
            for form in FORMS:
                wire = prompt_json(PROBE, form, endpoint.template)
                try:
                    shown = await self._template(endpoint, wire)
                except ModelRefused as error:
                    if error.status in NO_ROUTE:
                        break
                    continue  # the template's complaint: another form may please it
                if not shown or complete(shown):
                    return form
            return NATIVE

        return await self._probed(endpoint, "form of calls", PromptForm, tried)

    async def _takes_raw_calls(self, endpoint: Endpoint, form: PromptForm) -> bool:
        """Whether the template repeats a call as text to the letter, shows its result, and goes on.

        Gemma 4's drops results that follow no structured call, without an error.
        """

        async def tried() -> bool:
            before = await self._shown(endpoint, ASKED, form)
            behind = await self._shown(endpoint, RAW_CALLED, replace(form, raw_calls=True))
            return takes_raw_calls(before, behind) if before and behind else False

        return await self._probed(endpoint, "text calls", bool, tried)

    async def _thought_form(self, endpoint: Endpoint) -> ThoughtForm:
        """How the template shows what was thought before a call, behind its result.

        It may be sent to a server that cannot show prompts: others pass over what they do not know.
        """

        async def tried() -> ThoughtForm:
            form = replace(await self._whole_form(endpoint), thoughts="whole")
            wire = prompt_json(THOUGHT_CALLED, form, endpoint.template)
            try:
                return thought_form(await self._template(endpoint, wire))
            except ModelRefused as error:
                return "whole" if error.status in NO_ROUTE else "none"

        return await self._probed(endpoint, "thoughts", ThoughtForm, tried)

    async def _gap(self, endpoint: Endpoint, form: PromptForm) -> str | None:
        """The white space that the template writes between words and a call."""

        async def tried() -> tuple[str | None]:
            prompt = await self._shown(endpoint, WORDS_CALLED, form)
            return (gap_behind_words(prompt or ""),)

        (gap,) = await self._probed(endpoint, "words before a call", tuple[str | None], tried)
        return gap

    async def _efforts(self, endpoint: Endpoint) -> frozenset[str]:
        """The values of `reasoning_effort` that the template takes; none where they change nothing.

        One that takes any word does not say which of them mean "do not think".
        """

        async def tried() -> frozenset[str]:
            shown = {}
            for effort in (*EFFORTS, NONSENSE):
                values = {**endpoint.template, "reasoning_effort": effort}
                model = endpoint.model_copy(update={"template": values})
                if prompt := await self._shown(model, ASKED):
                    shown[effort] = prompt
            unsure = {NONSENSE, *NO_EFFORT} if NONSENSE in shown else set[str]()
            return frozenset(shown.keys() - unsure if len(set(shown.values())) > 1 else ())

        return await self._probed(endpoint, "efforts", frozenset[str], tried)

    async def _probed(
        self, endpoint: Endpoint, what: str, kind: Any, tried: Callable[[], Awaitable[T]]
    ) -> T:
        """What a probe found of this model's template, tried once for each template and server's build."""
        key = (endpoint.url, endpoint.model, endpoint.profile, what)
        if key not in self.probes:
            identity = await self._template_identity(endpoint) if self._kept else ""
            record, found = f"template {identity} {what}", None
            if self._kept and identity:
                found = await self._kept.get(record, kind)
            if found is None:
                found = await tried()
                if self._kept and identity:
                    await self._kept.put(record, TypeAdapter(kind).dump_python(found, mode="json"))
            self.probes[key] = found
        known: T = self.probes[key]
        return known

    async def _template_identity(self, endpoint: Endpoint) -> str:
        """A digest of the template's text and values, and of the server's build; "" where it does not tell."""
        key = (endpoint.url, endpoint.model, endpoint.profile)
        if key not in self._identities:
            try:
                props = mapping(await self._json("GET", endpoint, "/props"))
            except ModelRefused:
                props = {}
            told = [text(props.get("chat_template")), text(props.get("chat_template_tool_use"))]
            parts = [*told, text(props.get("build_info")), endpoint.template, repr(PROBE)]
            digest = hashlib.sha256(encode({"template": parts})).hexdigest()[:24]
            self._identities[key] = digest if any(told) else ""
        return self._identities[key]

    async def _shown(
        self, endpoint: Endpoint, request: Request, form: PromptForm = NATIVE
    ) -> str | None:
        """The prompt of a probe; None where the template refuses it."""
        try:
            return await self._template(endpoint, prompt_json(request, form, endpoint.template))
        except ModelRefused:
            return None

    async def _template(self, endpoint: Endpoint, wire: Json) -> str:
        """The prompt as the server's template renders it."""
        found = await self._json("POST", endpoint, "/apply-template", wire)
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
            if isinstance(error, aiohttp.ClientConnectorError):  # down; it may come back another
                self._forget()
            raise away_error(error) from None
        answer.close()
        if endpoint.api_key:  # some servers repeat the key that they refuse, and people read that
            body = body.replace(endpoint.api_key.encode(), b"[key]")
        raise error_of_answer(answer.status, body)

    async def _followed(self, ask: Callable[[Endpoint], Awaitable[T]]) -> T:
        """What `ask` gets; a server that has moved since we knew of it is asked where it is now."""
        endpoint = await self._endpoint()
        try:
            return await ask(endpoint)
        except BackendAway as error:
            return await ask(await self._moved(endpoint, error))

    def _forget(self) -> None:
        """Whoever runs a server may start it with another template at the same address."""
        self.probes.clear()
        self._identities.clear()
        self._names.clear()

    async def _moved(self, endpoint: Endpoint, error: BackendAway) -> Endpoint:
        """Where the server is now; raises the error when it is where it failed."""
        now = await self._endpoint()
        if now == endpoint:
            raise error
        return now

    async def _endpoint(self) -> Endpoint:
        """Of a moment ago at most: a turn asks many times over. What failed is asked for anew."""
        now = asyncio.get_running_loop().time()
        if self._known and now - self._known[0] < FRESH_SECONDS:
            return self._known[1]
        try:
            endpoint = await self._fetch_endpoint()
        except BackendUnavailable as error:
            raise BackendAway(str(error)) from None
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
        await asyncio.sleep(0)  # what is received already would keep everything else waiting
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
    if value == DONE:  # ends a stream that gave no reason before
        return {"done": True}
    chunk = mapping(value)
    if error := chunk.get("error"):
        raise error_of(500, error)
    return chunk


def away_error(error: BaseException) -> BackendAway:
    if isinstance(error, TimeoutError):
        return BackendAway("The model server gave no sign of life.")
    return BackendAway("The model server cannot be reached.")
