"""The events of a turn: one frozen dataclass each, and their union.

`as_json` gives the form that `voltaire ask --json` prints, one object a line.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from pydantic import TypeAdapter

from agent.plan import Plan

Reason = Literal["done", "cancelled", "tool_limit", "loop", "context", "backend", "error"]
Decision = Literal["denied", "once", "chat"]


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Summed over the model calls of a turn, in tokens."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class TurnStarted:
    turn: str
    chat: str


@dataclass(frozen=True, slots=True)
class GpuQueued:
    """A model call waits for the GPU behind `ahead` others; 0: it holds the GPU, or is next. For a live message; not
    part of the JSON form."""

    ahead: int


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """Prefill, in tokens; `cached` of `total` did not have to be read again."""

    processed: int
    total: int
    cached: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """A piece of reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCalled:
    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """The newest output of a running tool, for a live message; not part of the JSON form."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool call has ended. `output` is what the model sees; `shown`, if there is any, is for the person (a diff)."""

    id: str
    name: str
    ok: bool
    output: str
    duration_ms: int
    shown: str = ""


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A call that was not run: unknown tool, invalid or unreadable arguments.

    `advice` is the result that the model gets. Not part of the JSON form.
    """

    name: str
    advice: str


@dataclass(frozen=True, slots=True)
class ApprovalPending:
    """An owner is being asked, until ApprovalAsked. For a live message; not part of the JSON form."""


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A question to an owner, told once it has been decided."""

    id: str
    what: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class PlanChanged:
    """The whole plan of the task. For a live message; not part of the JSON form."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class Notice:
    text: str


@dataclass(frozen=True, slots=True)
class ModelFinished:
    """Figures that the server does not give are None."""

    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    ttft_ms: int | None
    prefill_tok_s: float | None
    decode_tok_s: float | None
    finish_reason: str


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The last event of every turn; `text` is never empty."""

    text: str
    reason: Reason
    tool_calls: int
    usage: TokenUsage = field(default_factory=TokenUsage)


Event = (
    TurnStarted
    | GpuQueued
    | ModelProgress
    | TextDelta
    | ThoughtDelta
    | ToolCalled
    | ToolProgress
    | ToolFinished
    | CallRefused
    | ApprovalPending
    | ApprovalAsked
    | PlanChanged
    | Notice
    | ModelFinished
    | TurnFinished
)
Emit = Callable[[Event], None]
"""Takes a turn's events; it must not block."""

_TYPES: dict[type, str] = {
    TurnStarted: "turn.started",
    ModelProgress: "model.progress",
    TextDelta: "text.delta",
    ThoughtDelta: "thought.delta",
    ToolCalled: "tool.called",
    ToolFinished: "tool.finished",
    ApprovalAsked: "approval.asked",
    Notice: "notice",
    ModelFinished: "model.finished",
    TurnFinished: "turn.finished",
}


def as_json(event: Event) -> dict[str, Any] | None:
    """The public JSON form of an event; None where it has none."""
    if type(event) not in _TYPES:
        return None
    fields = asdict(event)
    fields.pop("shown", None)
    return {"type": _TYPES[type(event)], **fields}


def wire_form(event: Event) -> dict[str, Any]:
    """All of an event as JSON, for a terminal that shows it."""
    return {"type": "event", "event": type(event).__name__, **asdict(event)}


def from_wire(message: Mapping[str, Any]) -> Event:
    """The event of a `wire_form`."""
    fields = {name: value for name, value in message.items() if name not in ("type", "event")}
    event: Event = TypeAdapter(_EVENTS[message["event"]]).validate_python(fields)
    return event


_EVENTS: dict[str, Any] = {each.__name__: each for each in get_args(Event)}
