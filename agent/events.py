"""What happens in a turn, as it happens: one frozen dataclass each, one union.

`as_json` gives the form that `voltaire ask --json` prints, one object a line.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

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
    """A model call waits for the GPU behind `ahead` others, for a live message; not part of the JSON
    form. 0: it has it."""

    ahead: int


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """Prefill, in tokens; `cached` of `total` were not read again."""

    processed: int
    total: int
    cached: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThoughtDelta:
    """Reasoning, as it comes."""

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
    """`output` is what the model sees; `shown`, where given, is meant for the person (a diff)."""

    id: str
    name: str
    ok: bool
    output: str
    duration_ms: int
    shown: str = ""


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A call that was not run because it was none: unknown tool, wrong or unreadable arguments.

    Not part of the JSON form; `advice` is the result that the model gets.
    """

    name: str
    advice: str


@dataclass(frozen=True, slots=True)
class ApprovalPending:
    """An owner is being asked, for a live message; not part of the JSON form. ApprovalAsked ends it."""


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """Emitted once, when it has been decided."""

    id: str
    what: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class PlanChanged:
    """The plan of the task, whole, for a live message; not part of the JSON form."""

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
    """Exactly one ends every turn; `text` is never empty."""

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
    """The public JSON form of an event, or None for one that has none."""
    name = _TYPES.get(type(event))
    if name is None:
        return None
    fields = asdict(event)
    fields.pop("shown", None)
    return {"type": name, **fields}
