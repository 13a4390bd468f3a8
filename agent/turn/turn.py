"""What one turn is given, what it may use up, and how it ended."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agent.approvals import Approvals
from agent.budgets import DailyBudgets
from agent.events import Reason
from agent.messages import Assistant
from agent.model import Model
from agent.sandbox.history import WorkspaceHistory
from agent.tools.context import ToolContext
from agent.tools.tool import Tool
from agent.turn.conversation import Journal
from agent.turn.step import NewId, new_call_id


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Budgets of one turn. `tokens` counts what the model generates, over all its calls.

    `away_seconds` is how long a turn waits for a backend that is away before it
    ends with reason "backend"; `trouble_seconds` how long it waits before it asks a
    server once more that answers with errors alone. `max_repairs` bounds how often a
    malformed call is sent back for repair.
    """

    max_tool_calls: int = 24
    seconds: float = 1800.0
    tokens: int = 48_000
    reply_tokens: int = 8192
    away_seconds: float = 600.0
    trouble_seconds: float = 3.0
    max_repairs: int = 2

    def reply_cap(self, window: int) -> int:
        """The most tokens of one model call: never more than compaction leaves free (a fifth)."""
        return max(256, min(self.reply_tokens, window // 5))


Constrain = Literal["never", "once needed", "always"]


async def at_once() -> None:
    """The `ready` of a backend that is not supervised."""


@dataclass(frozen=True)
class Turn:
    """What one turn works with.

    `schemas` is the wire form of the tools, the same object for every request of
    every chat; `tools` are those that run. `ready` returns once the backend
    answers again and raises errors.BackendAway when it gives up. Setting `stop`
    ends the turn within a second with reason "cancelled"; setting `answer_now`
    ends the thought under way, and the rest of the turn goes without thought. With a
    `frozen` sentence no tool is called, and the sentence precedes the reply. `constrain`: whether
    calls are kept readable by a grammar (agent.model.Request.constrained): never, as the server
    cannot; once the model has written a call as text; or always, as it is known to do that.
    """

    model: Model
    journal: Journal
    tools: Sequence[Tool]
    schemas: Sequence[Mapping[str, Any]]
    context: ToolContext
    approvals: Approvals
    limits: TurnLimits = field(default_factory=TurnLimits)
    thinking: int | None = None  # agent.model.Request.thinking of each call
    ready: Callable[[], Awaitable[None]] = at_once
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    answer_now: asyncio.Event = field(default_factory=asyncio.Event)
    new_id: NewId = new_call_id
    budgets: DailyBudgets | None = None  # None: nothing is counted
    frozen: str = ""
    constrain: Constrain = "never"
    history: WorkspaceHistory | None = None  # None: what the turn changes is not recorded


@dataclass(frozen=True)
class Ending:
    """`text` goes to the person; `message` is what the transcript keeps of it."""

    text: str
    reason: Reason
    message: Assistant

    @classmethod
    def said(cls, text: str, reason: Reason) -> "Ending":
        """An ending in the program's own words, which the transcript keeps as the model's."""
        return cls(text, reason, Assistant(text))
