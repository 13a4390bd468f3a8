"""One turn: ask the model, run what it calls, repeat until it answers.

    finished = await run_turn(Turn(...), emit)

Every finished step is in the journal before the next one starts, so a turn cut
off anywhere is taken up again by running it once more with the same journal.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent.approvals import Approvals
from agent.events import Event, TurnFinished
from agent.journal import Journal
from agent.limits import Limits
from agent.model import Model
from agent.tool import Desk, Tool

Emit = Callable[[Event], None]


async def at_once() -> None:
    """The `ready` of a backend that nobody restarts."""


@dataclass(frozen=True)
class Turn:
    """What one turn works with.

    `schemas` is the wire form of the tools, the same object for every request of
    every chat; `tools` are those that run. `ready` returns once the backend
    answers again and raises errors.BackendAway when it gives up. Setting `stop`
    ends the turn within a second with reason "cancelled".
    """

    model: Model
    journal: Journal
    tools: Sequence[Tool]
    schemas: Sequence[Mapping[str, Any]]
    desk: Desk
    approvals: Approvals
    limits: Limits = field(default_factory=Limits)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    ready: Callable[[], Awaitable[None]] = at_once
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    clock: Callable[[], float] = time.monotonic


async def run_turn(turn: Turn, emit: Emit) -> TurnFinished:
    """Run or resume a turn; its last event, exactly one TurnFinished, is returned as well.

    `emit` must not block. Cancelling the task leaves the turn as it stands, to be
    resumed from its journal (a shutdown); `turn.stop` finishes it (/stop).
    """
    raise NotImplementedError
