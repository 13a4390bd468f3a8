"""Models that say what a script tells them: in process, or as a server of the OpenAI form.

model = ScriptedModel(says("Hello"), calls("bash", command="ls"), refused(500, "no"))

async with ModelServer(calls("bash", command="ls"), says("Done.")) as server:
    ... server.url, server.requests
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from aiohttp import web

from agent.messages import ToolCall
from agent.model import (
    Ahead,
    Completion,
    ModelRefused,
    Piece,
    PrefillProgress,
    ReasoningPiece,
    Request,
    TextPiece,
    ToolCallPiece,
)
from backend.protocol import Endpoint

Json = dict[str, Any]
FinishReason = Literal["stop", "tool_calls", "length", "cut"]


@dataclass(frozen=True)
class Reply:
    """One completion. `size` is how many characters a piece has; `hold` is awaited before the end,
    `hold_thought` in the middle of what is thought.

    `raw` replaces the whole body, `whole` is sent as one JSON document instead of
    a stream (both: the server only). `tokens` are (prompt, cached, completion).
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    finish_reason: FinishReason | None = None
    size: int = 3
    hold: Callable[[], Awaitable[object]] | None = None
    hold_thought: Callable[[], Awaitable[object]] | None = None
    raw: Sequence[bytes] | None = None
    whole: Json | None = None
    tokens: tuple[int, int, int] | None = (100, 80, 10)

    @property
    def reason(self) -> FinishReason:
        return self.finish_reason or ("tool_calls" if self.calls else "stop")

    def parts(self) -> Iterator[str]:
        for start in range(0, len(self.text), self.size):
            yield self.text[start : start + self.size]


@dataclass(frozen=True)
class Refusal:
    """An HTTP error with this status and error object."""

    status: int
    error: Json


Line = Reply | Refusal | Exception
Script = Callable[[Any], Line]


HELD = ReasoningPiece(" ...")  # what is thought after `hold_thought`


def says(text: str, **fields: Any) -> Reply:
    return Reply(text, **fields)


def calls(name: str, /, id: str = "", **arguments: Any) -> Reply:
    return Reply(calls=(ToolCall(id, name, json.dumps(arguments)),))


def also(first: Reply, *more: Reply) -> Reply:
    """One completion with the calls of all."""
    return replace(first, calls=first.calls + tuple(c for one in more for c in one.calls))


def refused(status: int, message: str, **fields: Any) -> Refusal:
    return Refusal(status, {"code": status, "message": message, **fields})


def in_order(lines: Sequence[Line]) -> Script:
    """The lines one after the other; the last one again and again."""
    left = list(lines)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


@dataclass
class ScriptedModel:
    """agent.model.Model in process. `requests` are those received."""

    script: Script
    n_ctx: int = 8192
    requests: list[Request] = field(default_factory=list)

    @classmethod
    def of(cls, *lines: Line, **fields: Any) -> Self:
        return cls(in_order(lines), **fields)

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        self.requests.append(request)
        line = self.script(request)
        if isinstance(line, Exception):
            raise line
        if isinstance(line, Refusal):
            raise ModelRefused(line.status, line.error["message"])
        for piece in _pieces(line):
            await asyncio.sleep(0)
            if piece == HELD and line.hold_thought:
                await line.hold_thought()
            yield piece
        if line.hold:
            await line.hold()
        yield _completion(line)

    async def window(self) -> int:
        return self.n_ctx

    async def shows_prompts(self) -> bool:
        return False

    async def count(self, request: Request) -> int:
        return sum(len(str(message)) for message in request.messages) // 4

    async def ahead(self, _: Request, *, changed: bool = False) -> Ahead | None:
        return None


def _pieces(reply: Reply) -> Iterator[Piece]:
    prompt, cached, _ = reply.tokens or (1, 0, 0)
    yield PrefillProgress(prompt, prompt, cached)
    if reply.hold_thought:
        yield ReasoningPiece(reply.reasoning)
        yield HELD
    elif reply.reasoning:
        yield ReasoningPiece(reply.reasoning)
    for part in reply.parts():
        yield TextPiece(part)
    for call in reply.calls:
        yield ToolCallPiece(call.name)


def _completion(reply: Reply) -> Completion:
    prompt, cached, completion = reply.tokens or (None, None, None)
    return Completion(
        text=reply.text,
        calls=reply.calls,
        reasoning=reply.reasoning,
        finish_reason=reply.reason,
        prompt_tokens=prompt,
        cached_tokens=cached,
        completion_tokens=completion,
    )


class ModelServer:
    """An OpenAI-compatible server on a free port of 127.0.0.1.

    `extras`: with llama-server's own fields and routes; without, a field that
    OpenAI's form does not have is refused with 400. `requests` are the parsed
    bodies of completions, `bodies` their bytes; `left` is set once a client went
    before the end.
    """

    def __init__(
        self,
        *lines: Line,
        script: Script | None = None,
        extras: bool = False,
        n_ctx: int = 8192,
        model: str = "scripted",
    ) -> None:
        self.script = script or in_order(lines)
        self.extras = extras
        self.n_ctx = n_ctx
        self.model = model
        self.sees = True
        self.requests: list[Json] = []
        self.bodies: list[bytes] = []
        self.left = asyncio.Event()
        self.asked = asyncio.Event()
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/v1/models", self._models),
                web.post("/v1/chat/completions", self._complete),
            ]
        )
        if self.extras:
            app.router.add_get("/props", self._props)
            app.router.add_post("/v1/chat/completions/input_tokens", self._count)
        # A handler must end when its client leaves, or a held reply would outlive the test.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def endpoint(self) -> Endpoint:
        return Endpoint(url=self.url, n_ctx=self.n_ctx, extras=self.extras, vision=self.sees)

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": self.model}]})

    async def _props(self, request: web.Request) -> web.Response:
        return web.json_response({"default_generation_settings": {"n_ctx": self.n_ctx}})

    async def _count(self, request: web.Request) -> web.Response:
        return web.json_response({"input_tokens": len(await request.read()) // 4})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = json.loads(body)
        self.bodies.append(body)
        self.requests.append(asked)
        self.asked.set()
        if unknown := set(asked) - KNOWN_FIELDS - (EXTRA_FIELDS if self.extras else set()):
            return _error(refused(400, f"Unrecognized request argument: {sorted(unknown)[0]}"))
        line = self.script(asked)
        if isinstance(line, Exception):
            raise line
        if isinstance(line, Refusal):
            return _error(line)
        if line.whole is not None:
            return web.json_response(line.whole)
        return await self._stream(request, line)

    async def _stream(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        try:
            await answer.prepare(request)
            for block in reply.raw if reply.raw is not None else self._blocks(reply):
                if not block and reply.hold_thought:
                    await reply.hold_thought()
                await answer.write(block)
            if reply.hold:
                await reply.hold()
            if reply.reason == "cut":
                assert request.transport
                request.transport.abort()
            elif reply.raw is None:
                for block in self._end(reply):
                    await answer.write(block)
        except (ConnectionError, asyncio.CancelledError):
            self.left.set()
            raise
        return answer

    def _blocks(self, reply: Reply) -> Iterator[bytes]:
        if self.extras and reply.tokens:
            prompt, cached, _ = reply.tokens
            progress = {"total": prompt, "cache": cached, "processed": prompt, "time_ms": 1}
            yield _event({"choices": [], "prompt_progress": progress})
        yield _delta({"role": "assistant", "content": None})
        if reply.reasoning:
            yield _delta({"reasoning_content": reply.reasoning})
            if reply.hold_thought:
                yield b""
                yield _delta({"reasoning_content": HELD.text})
        for part in reply.parts():
            yield _delta({"content": part})
        for index, call in enumerate(reply.calls):
            head = {"name": call.name, "arguments": ""}
            start = {"index": index, "type": "function", "function": head}
            yield _delta({"tool_calls": [{**start, "id": call.id or f"call_{index}"}]})
            for place in range(0, len(call.arguments), max(reply.size, 1)):
                piece = {"arguments": call.arguments[place : place + reply.size]}
                yield _delta({"tool_calls": [{"index": index, "function": piece}]})

    def _end(self, reply: Reply) -> Iterator[bytes]:
        yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": reply.reason}]})
        if reply.tokens:
            yield _event({"choices": [], **self._figures(*reply.tokens)})
        yield b"data: [DONE]\n\n"

    def _figures(self, prompt: int, cached: int, completion: int) -> Json:
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        timings = {
            "cache_n": cached,
            "prompt_n": prompt - cached,
            "prompt_per_second": 1000.0,
            "predicted_n": completion,
            "predicted_per_second": 50.0,
        }
        return {"usage": usage, "timings": timings} if self.extras else {"usage": usage}


KNOWN_FIELDS = {
    "model",
    "messages",
    "tools",
    "tool_choice",
    "stream",
    "stream_options",
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "seed",
}
EXTRA_FIELDS = {
    "cache_prompt",
    "return_progress",
    "timings_per_token",
    "chat_template_kwargs",
    "thinking_budget_tokens",
    "reasoning_budget_tokens",
    "top_k",
    "min_p",
}


def _event(value: Json) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _delta(delta: Json) -> bytes:
    return _event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def _error(refusal: Refusal) -> web.Response:
    return web.json_response({"error": refusal.error}, status=refusal.status)
