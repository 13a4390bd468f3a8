"""llama-server over HTTP: the only module of the backend that knows its routes and fields."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from backend.protocol import JsonObject, Phrase

ANSWER_SECONDS = 30.0
EMBEDDING_SECONDS = 120.0  # 16 texts of 500 tokens take about 5 on one core
LONGEST_LINE = 8 << 20  # bytes: the last event of a prefill repeats its prompt


class ServerAway(Exception):
    """The server cannot be reached, or broke off its answer."""


class ServerRefused(Exception):
    """An HTTP error with the code `status`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Props:
    n_ctx: int
    model: str
    sleeping: bool
    vision: bool
    build: str  # such as "b11434-abc"
    audio: bool = False


@dataclass(frozen=True, slots=True)
class Slots:
    """The activity of the server's slots.

    `marks` changes whenever any slot reads or writes a token; `decoded` are tokens written.
    """

    processing: bool
    marks: tuple[tuple[int, int, int], ...]
    decoded: int


@dataclass(frozen=True, slots=True)
class Prefilled:
    """A finished prefill: tokens from the cache, tokens read, seconds."""

    cached: int
    prompt: int
    seconds: float


def objects(value: object) -> list[dict[str, Any]]:
    """The objects in a list, of whatever else a server may answer."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


class LlamaServer:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.url = url
        self._session = session

    async def healthy(self, seconds: float = 2.0) -> bool:
        """Whether /health answers 200; False while the model loads or the server is unreachable."""
        try:
            await self._json("GET", "/health", seconds=seconds)
        except (ServerAway, ServerRefused):
            return False
        return True

    async def models(self, seconds: float) -> list[dict[str, Any]]:
        """The rows of /v1/models, which every OpenAI-compatible server has."""
        answer = await self._json("GET", "/v1/models", seconds=seconds)
        return objects(answer if isinstance(answer, list) else answer.get("data"))

    async def loaded_models(self, seconds: float) -> list[dict[str, Any]] | None:
        """The loaded models with the windows that they were given, of Ollama (`/api/ps`) and of LM Studio
        (`/api/v1/models`, before 0.4 `/api/v0/models`); None where there is no such route."""
        routes = ("/api/ps", "/api/v1/models", "/api/v0/models")
        asked = (self._json("GET", route, seconds=seconds) for route in routes)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        found = [answer for answer in answers if isinstance(answer, dict)]
        if not found:
            return None
        models = [row for a in found for row in objects(a.get("models") or a.get("data"))]
        for row in models:
            models += [  # of LM Studio's v1; each is asked for by its own id or by the model's key
                {"id": name, **config}
                for each in objects(row.get("loaded_instances"))
                if isinstance(config := each.get("config"), dict)
                for name in (row.get("key"), each.get("id"))
            ]
        return models

    async def props(self, seconds: float = 5.0) -> Props:
        answer = await self._json("GET", "/props", seconds=seconds)
        settings = answer.get("default_generation_settings") or {}
        return Props(
            n_ctx=int(settings.get("n_ctx") or 0),
            model=str(answer.get("model_alias") or answer.get("model_path") or ""),
            sleeping=bool(answer.get("is_sleeping", False)),
            vision=bool((answer.get("modalities") or {}).get("vision", False)),
            build=str(answer.get("build_info") or "unknown"),
            audio=bool((answer.get("modalities") or {}).get("audio", False)),
        )

    async def show_picture(self, model: str, picture: str, seconds: float) -> None:
        """Request one token about a picture (a data URL). ServerRefused if pictures are not accepted."""
        shown = {"type": "image_url", "image_url": {"url": picture}}
        content = [{"type": "text", "text": "One word: what is this?"}, shown]
        body = {"model": model, "messages": [{"role": "user", "content": content}], "max_tokens": 1}
        await self._json("POST", "/v1/chat/completions", body, seconds)

    async def slots(self, seconds: float) -> Slots:
        answer = await self._json("GET", "/slots", seconds=seconds)
        rows = [slot for slot in answer if isinstance(slot, dict)]
        return Slots(
            processing=any(slot.get("is_processing") for slot in rows),
            marks=tuple(mark(slot) for slot in rows),
            decoded=sum(decoded_tokens(slot) for slot in rows if slot.get("is_processing")),
        )

    async def render(
        self, messages: Sequence[JsonObject], tools: Sequence[JsonObject], template: JsonObject
    ) -> str:
        """The prompt text of these messages; `template` are chat_template_kwargs."""
        body: dict[str, Any] = {"messages": list(messages)}
        if tools:
            body["tools"] = list(tools)
        if template:
            body["chat_template_kwargs"] = dict(template)
        return str((await self._json("POST", "/apply-template", body))["prompt"])

    async def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        """The tokens of a prompt, or with `special` False of a plain text within one."""
        body = {"content": text, "add_special": special, "parse_special": special}
        return [int(token) for token in (await self._json("POST", "/tokenize", body))["tokens"]]

    async def embeddings(self, body: JsonObject) -> Any:
        return await self._json("POST", "/v1/embeddings", body, EMBEDDING_SECONDS)

    async def answer(
        self, words: str, template: JsonObject, most_tokens: int, seconds: float
    ) -> str:
        """The text of the answer to a message; `template` are chat_template_kwargs."""
        message = {"role": "user", "content": words}
        body = {
            "messages": [message],
            "max_tokens": most_tokens,
            "chat_template_kwargs": dict(template),
        }
        answer = await self._json("POST", "/v1/chat/completions", body, seconds)
        return str(answer["choices"][0]["message"].get("content") or "").strip()

    async def completion(self, body: JsonObject) -> AsyncGenerator[dict[str, Any]]:
        """The events of a streamed completion, each with timings. No deadline: a prefill may take long."""
        body = {**body, "cache_prompt": True, "stream": True, "timings_per_token": True}
        async with self._open("POST", "/completion", body, None) as answer:
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    yield json.loads(line[6:])

    async def prefill(
        self, tokens: Sequence[int], on_progress: Callable[[int, int], None] | None = None
    ) -> Prefilled:
        """Read `tokens` into a slot's cache; `on_progress` is called with (done, total)."""
        body = {"prompt": list(tokens), "n_predict": 0, "return_progress": True}
        last: dict[str, Any] = {}
        async with aclosing(self.completion(body)) as events:
            async for event in events:
                last |= event
                if on_progress and (progress := last.get("prompt_progress")):
                    on_progress(int(progress["processed"]), int(progress["total"]))
        if "error" in last or not last:
            said = Phrase(str(last["error"])[:500]) if last else Phrase("it gave no answer")
            raise ServerRefused(500, said)
        timings = last.get("timings") or {}
        return Prefilled(
            cached=cached_tokens(timings, len(tokens)),
            prompt=int(timings.get("prompt_n") or len(tokens)),
            seconds=float(timings.get("prompt_ms") or 0) / 1000,
        )

    async def save(self, filename: str) -> tuple[int, int]:
        """Save slot 0 to a file; return the number of tokens saved, and of bytes written."""
        saved = await self._slot("save", filename)
        return int(saved["n_saved"]), int(saved["n_written"])

    async def restore(self, filename: str) -> int:
        """Restore slot 0 from a file; return the number of tokens that the server claims to have restored.

        The claim proves nothing (llama.cpp #25913).
        """
        return int((await self._slot("restore", filename))["n_restored"])

    async def _slot(self, action: str, filename: str) -> Any:
        return await self._json("POST", f"/slots/0?action={action}", {"filename": filename})

    async def _json(
        self,
        method: str,
        path: str,
        body: JsonObject | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> Any:
        async with self._open(method, path, body, seconds) as answer:
            try:
                return await answer.json(content_type=None)
            except (ValueError, RecursionError):
                raise ServerRefused(answer.status, Phrase("its answer is not JSON")) from None

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, body: JsonObject | None, seconds: float | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        # aiohttp's own total time-out swallows a cancellation in the same loop iteration (3.14).
        try:
            async with (
                asyncio.timeout(seconds),
                self._session.request(method, self.url + path, json=body) as answer,
            ):
                if answer.status >= 400:
                    raise ServerRefused(answer.status, (await answer.text())[:500])
                yield answer
        except (OSError, aiohttp.ClientError) as error:
            raise ServerAway(str(error) or type(error).__name__) from None


@asynccontextmanager
async def llama_server(
    url: str, api_key: str, connect_seconds: float = 5, silent_seconds: float | None = None
) -> AsyncIterator[LlamaServer]:
    """`url` has no /v1. An answer that sends nothing for `silent_seconds` raises ServerAway."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    # The server closes connections after its answer; a reused one would fail.
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=connect_seconds, sock_read=silent_seconds
    )
    async with aiohttp.ClientSession(
        headers=headers, connector=connector, timeout=timeout, read_bufsize=LONGEST_LINE
    ) as session:
        yield LlamaServer(session, url)


def mark(slot: Mapping[str, Any]) -> tuple[int, int, int]:
    task = int(slot.get("id_task") or 0)
    read = int(slot.get("n_prompt_tokens_processed") or 0)
    return task, read, decoded_tokens(slot)


def decoded_tokens(slot: Mapping[str, Any]) -> int:
    following = slot.get("next_token")
    rows = following if isinstance(following, list) else [following or {}]
    return sum(int(row.get("n_decoded") or 0) for row in rows)


def cached_tokens(timings: Mapping[str, Any], prompt: int) -> int:
    """How many of a prompt's tokens came from the cache; ik_llama.cpp reports only those that it read."""
    read = int(timings.get("prompt_n", prompt))
    return int(timings.get("cache_n", max(0, prompt - read)))
