"""What a model is to the agent: it takes a request and streams pieces, of which a completion is the last."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agent.messages import Message, ToolCall

UNBOUNDED = -1  # tokens of thought
ToolChoice = Literal["auto", "none", "required"]


@dataclass(frozen=True, slots=True)
class Request:
    """`tools` is the wire form of the default set, the same object for every request.

    `thinking` is how many tokens the model may think before it answers (0: none,
    UNBOUNDED: as many as it likes), as far as its template or its server can be told;
    None leaves that to the profile. `brief`: this call alone goes without thought, in a
    way that leaves the beginning of the prompt as it is. `raw`: the server is not to
    look for calls and thoughts in the answer, because its parser has failed with it.
    `constrained`: calls are kept readable by a grammar, where the server decodes under one; there alone
    "required" is kept as well, and calls are to the tools named in `only`, or to any where it is empty.
    `prompt`: this is read as it is and nothing is generated; `messages` only tell what
    it was made of, with its pictures (`Model.ahead`).
    """

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: ToolChoice = "auto"
    max_tokens: int | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    thinking: int | None = None
    brief: bool = False
    raw: bool = False
    constrained: bool = False
    only: frozenset[str] = frozenset()
    prompt: tuple[int, ...] | str = ()


@dataclass(frozen=True, slots=True)
class Ahead:
    """What the next message's request begins with: the server's tokens or, where there are pictures, a text with
    the server's marker for each of them.

    `others_kept`: reading it evicts no other chat's prompt, as the server keeps several.
    """

    prompt: tuple[int, ...] | str
    others_kept: bool


@dataclass(frozen=True, slots=True)
class PrefillProgress:
    """Prefill progress in tokens."""

    processed: int
    total: int
    cached: int


@dataclass(frozen=True, slots=True)
class TextPiece:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPiece:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallPiece:
    """A sign of life: a structured tool call is being generated."""

    name: str


@dataclass(frozen=True, slots=True)
class Completion:
    """The end of a stream. `finish_reason` is "cut" where the stream broke off, "repeats" where it was
    stopped because the text repeated itself. `ended` is the server's word for an end that is none of the model's
    own, such as "content_filter".

    Token counts and speeds are None where the server does not give them. `estimated_tokens` is an upper
    estimate of the prompt's, where the server counts none beforehand.
    """

    text: str
    calls: tuple[ToolCall, ...]
    reasoning: str
    finish_reason: Literal["stop", "tool_calls", "length", "cut", "repeats"]
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    ttft_ms: int | None = None
    prefill_tok_s: float | None = None
    decode_tok_s: float | None = None
    draft_tokens: int | None = None
    draft_accepted: int | None = None
    estimated_tokens: int | None = None
    ended: str = field(default="", kw_only=True)


Piece = PrefillProgress | TextPiece | ReasoningPiece | ToolCallPiece | Completion


class Model(Protocol):
    """A language model behind some server.

    `stream` yields pieces and ends with one Completion. It raises
    errors.BackendAway when the server is not there (or went away before the
    first piece), errors.ContextFull when the prompt is too long, and
    ModelRefused when the server answered with an error.
    """

    def stream(self, request: Request) -> AsyncGenerator[Piece]: ...

    async def window(self) -> int:
        """The context window in tokens."""
        ...

    async def count(self, request: Request) -> int:
        """Tokens of the rendered request: exact where the server can count, else on the safe side."""
        ...

    async def ahead(self, request: Request, *, changed: bool = False) -> Ahead | None:
        """What the request with one more message of a person's will begin with.

        None where the server cannot show it; with `changed`, also where it only continues the
        last request and its answer, which the server has cached already.
        """
        ...


async def completion_of(model: Model, request: Request) -> Completion:
    """The completion that ends the model's answer. Raises as `Model.stream` does."""
    async with aclosing(model.stream(request)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Completion):
                return piece
    raise AssertionError("a model's stream ends with its completion")


@dataclass(frozen=True)
class WrappedModel:
    """A model that passes everything on to another one; subclasses override what they change."""

    model: Model

    def stream(self, request: Request) -> AsyncGenerator[Piece]:
        return self.model.stream(request)

    async def window(self) -> int:
        return await self.model.window()

    async def count(self, request: Request) -> int:
        return await self.model.count(request)

    async def ahead(self, request: Request, *, changed: bool = False) -> Ahead | None:
        return await self.model.ahead(request, changed=changed)


class ModelRefused(Exception):
    """The server answered a request with an error; `status` is the HTTP status.

    `unparsed`: the model did answer, but the server could not parse that.
    """

    def __init__(self, status: int, message: str, *, unparsed: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.unparsed = unparsed
