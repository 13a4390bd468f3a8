"""What the loop needs of durable state: every finished step is written before the next starts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent.events import Reason, Usage
from agent.messages import Assistant, Message, ToolResult, User
from agent.model import Completion


@dataclass(frozen=True, slots=True)
class Opening:
    """Where a turn stands when the loop takes it up: at its start, or after a crash.

    `messages` is the whole transcript in the window, the turn's own messages last.
    `own` is how many of them belong to this turn (its user message and finished
    steps). `started` are ids of tool calls that had started but not finished.
    """

    messages: tuple[Message, ...]
    own: int
    started: frozenset[str] = field(default_factory=frozenset)


class Journal(Protocol):
    """The durable side of one turn. Each method returns once its row is committed."""

    turn: str
    chat: str

    async def open(self) -> Opening: ...

    async def asked(self, completion: Completion) -> None:
        """A model call ended: its token figures, for usage and the cache record."""
        ...

    async def step(self, message: Assistant) -> None:
        """The model's message with its tool calls."""
        ...

    async def started(self, call: str) -> None:
        """A tool is about to run (so that a crash is told as an interruption)."""
        ...

    async def result(self, result: ToolResult) -> None: ...

    async def steer(self) -> Sequence[User]:
        """Messages that arrived meanwhile, now part of this turn and its transcript."""
        ...

    async def note(self, message: User) -> None:
        """A message of the program's own to the model (advice, a repair), kept in the transcript."""
        ...

    async def compact(self, *, full: bool = False) -> Opening | None:
        """Shorten the transcript when it nears the window; the new opening, or None if nothing changed.

        Asked before every model call. `full`: the server has just refused the
        transcript as too long, so shorten it whatever the count says.
        """
        ...

    async def finish(
        self, message: Assistant | None, text: str, reason: Reason, usage: Usage
    ) -> None:
        """The last step, the reply's outbox rows and the inbox rows' end, in one transaction.

        `message` is None when the model gave no last message (cancelled, failed).
        """
        ...
