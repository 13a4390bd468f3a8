"""What one turn is given, what it may use up, and how it ended."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
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


Constrain = Literal["never", "text call", "missed call", "always"]


@dataclass(slots=True)
class TurnTime:
    """The time limits of a turn and of the turns within it; they stand still while no model can be asked."""

    _running: list[asyncio.Timeout] = field(default_factory=list)
    _left: list[float] = field(default_factory=list)  # seconds, while they stand still

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        async with asyncio.timeout(seconds) as limit:
            self._running.append(limit)
            try:
                yield limit
            finally:
                self._running.remove(limit)

    @property
    def left(self) -> float:
        """Seconds that are left of the innermost limit."""
        return (self._running[-1].when() or math.inf) - asyncio.get_running_loop().time()

    def stand_still(self, still: bool) -> None:
        now = asyncio.get_running_loop().time()
        if still and not self._left:
            self._left = [(limit.when() or now) - now for limit in self._running]
            for limit in self._running:
                limit.reschedule(None)
        elif not still:
            for limit, left in zip(self._running, self._left, strict=False):
                limit.reschedule(now + left)
            self._left = []


async def at_once() -> None:
    """The `ready` of a backend that is not supervised."""


async def never() -> Constrain:
    """The `constrain` of a server that decodes under no grammar."""
    return "never"


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
    cannot; once the model has written a call as text; also once it has shown a command in place of
    calling; or always, as it is known to do so. It is asked once the backend has answered.
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
    constrain: Callable[[], Awaitable[Constrain]] = never
    history: WorkspaceHistory | None = None  # None: what the turn changes is not recorded
    time: TurnTime = field(default_factory=TurnTime)


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
