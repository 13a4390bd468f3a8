"""One model behind an OpenAI-compatible llama-server: completions, counts, facts.

Requests are sequential and append-only, so that the server's one slot keeps
what it has read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from socket import AF_UNIX, socket
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, Field

Message = Mapping[str, Any]
TIMEOUT_SECONDS = 120.0
MAX_TOKENS = 400


class WireError(Exception):
    """The server cannot be reached; the text says why."""


class Refused(WireError):
    """The server answered a request with an error, such as a call that it cannot parse."""


class _Function(BaseModel):
    name: str
    arguments: str


class _Call(BaseModel):
    id: str
    function: _Function


class _Said(BaseModel):
    content: str | None = None
    tool_calls: list[_Call] = Field(default_factory=list)


class _Choice(BaseModel):
    message: _Said
    finish_reason: str


class _Timings(BaseModel):
    cache_n: int = 0
    prompt_n: int = 0
    prompt_ms: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    timings: _Timings = Field(default_factory=_Timings)


@dataclass(frozen=True, slots=True)
class Asked:
    """A tool call as the server parsed it. `arguments` is None where they are no JSON object."""

    id: str
    name: str
    text: str
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back; tokens read, kept and written, milliseconds of decoding."""

    text: str
    calls: tuple[Asked, ...]
    message: Message
    finished: str
    cached: int
    read: int
    written: int
    decode_ms: float


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens: a URL, or the path of a UNIX socket."""

    url: str = ""
    socket: str = ""

    def connection(self) -> HTTPConnection:
        if self.socket:
            return _SocketConnection(self.socket)
        return HTTPConnection(urlsplit(self.url).netloc, timeout=TIMEOUT_SECONDS)


class _SocketConnection(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=TIMEOUT_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket(AF_UNIX)
        self.sock.settimeout(TIMEOUT_SECONDS)
        self.sock.connect(self._path)


class Wire:
    """Blocking calls with a deadline of TIMEOUT_SECONDS each; raises WireError."""

    def __init__(self, address: Address, system: str, tools: Sequence[Mapping[str, Any]]) -> None:
        self._address = address
        self._system = {"role": "system", "content": system}
        self._tools = tools

    def ask(self, messages: Sequence[Message], max_tokens: int = MAX_TOKENS, **more: Any) -> Reply:
        """The model's next message behind the fixed prefix, greedily decoded."""
        body = self._body(messages) | {"temperature": 0, "max_tokens": max_tokens} | more
        return _reply(_Completion.model_validate(self._post("/v1/chat/completions", body)))

    def prefix_tokens(self) -> int:
        """Tokens that every conversation shares: all before the first word of a person."""
        one, two = (self._tokens([{"role": "user", "content": word}]) for word in ("A", "7"))
        differs = (i for i, pair in enumerate(zip(one, two, strict=False)) if len(set(pair)) > 1)
        return next(differs, len(one))

    def prompt_tokens(self, messages: Sequence[Message]) -> int:
        return len(self._tokens(messages))

    def window(self) -> int:
        settings = get(self._address, "/props")["default_generation_settings"]
        return int(settings["n_ctx"])

    def meta(self) -> Mapping[str, Any]:
        """llama.cpp's facts of the model: n_params, n_vocab, n_ctx_train, size in bytes."""
        models = get(self._address, "/v1/models")["data"]
        return dict(models[0].get("meta") or {})

    def _body(self, messages: Sequence[Message]) -> dict[str, Any]:
        return {"messages": [self._system, *messages], "tools": self._tools}

    def _tokens(self, messages: Sequence[Message]) -> list[int]:
        prompt = self._post("/apply-template", self._body(messages))["prompt"]
        body = {"content": prompt, "add_special": True, "parse_special": True}
        return list(self._post("/tokenize", body)["tokens"])

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return _request(self._address, "POST", path, json.dumps(body).encode())


def get(address: Address, path: str) -> dict[str, Any]:
    """Raises WireError when there is no server, Refused when it does not answer 200."""
    return _request(address, "GET", path)


def _request(address: Address, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    connection = address.connection()
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (OSError, HTTPException, ValueError) as error:
        raise WireError(f"no answer from the model server to {path}: {error}") from error
    finally:
        connection.close()
    if response.status != 200:
        raise Refused(f"{path} answered {response.status}: {answer.get('error')}")
    return dict(answer)


def _reply(completion: _Completion) -> Reply:
    choice, timings = completion.choices[0], completion.timings
    said = choice.message
    return Reply(
        text=said.content or "",
        calls=tuple(_asked(call) for call in said.tool_calls),
        message={"role": "assistant", **_as_sent(said)},
        finished=choice.finish_reason,
        cached=timings.cache_n,
        read=timings.prompt_n,
        written=timings.predicted_n,
        decode_ms=timings.predicted_ms,
    )


def _as_sent(said: _Said) -> dict[str, Any]:
    """The assistant's message for the next request, calls exactly as they came."""
    if not said.tool_calls:
        return {"content": said.content or ""}
    calls = [{"type": "function", **call.model_dump()} for call in said.tool_calls]
    return {"content": said.content or "", "tool_calls": calls}


def _asked(call: _Call) -> Asked:
    try:
        arguments = json.loads(call.function.arguments)
    except ValueError:
        arguments = None
    known = arguments if isinstance(arguments, dict) else None
    return Asked(call.id, call.function.name, call.function.arguments, known)
