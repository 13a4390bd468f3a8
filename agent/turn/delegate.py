"""A sub-task in an inner turn with a short transcript of its own; only its conclusion comes back.

It begins with the same fixed prefix as every conversation, so the model server
has read that part already. Nothing of it is stored: a program that is killed
meanwhile tells the outer turn that the call was interrupted.
"""

import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from agent.errors import ToolError
from agent.events import Event, Reason, TokenUsage, TurnFinished
from agent.messages import Assistant, Message, System, ToolResult, User
from agent.model import Completion
from agent.prompt import system_text
from agent.turn import texts
from agent.turn.journal import TurnState
from agent.turn.turn import Emit, Turn

TOOL = "delegate"
CALLS = 12
SHARE = 4  # of the outer turn's tokens one inner turn may use the fourth part
LEAST_TOKENS = 8192
SHORT = 200  # letters that are kept of an old tool result when the window is full

Run = Callable[[Turn, Emit], Awaitable[TurnFinished]]
Spend = Callable[[Completion], Awaitable[None]]


def delegating(turn: Turn, run: Run, spend: Spend) -> Turn:
    """The turn with a desk at which sub-tasks can be handed on, if it has that tool.

    `spend` hears of each model call of a sub-task: it counts in the outer turn.
    """
    if not any(tool.name == TOOL for tool in turn.tools):
        return turn
    numbers = itertools.count(1)

    async def delegate(task: str) -> str:
        finished = await run(_inner(turn, task, next(numbers), spend), _unheard)
        if finished.reason in ("done", "tool_limit"):
            return finished.text
        raise ToolError(finished.text)

    return replace(turn, desk=replace(turn.desk, delegate=delegate))


def _inner(turn: Turn, task: str, number: int, spend: Spend) -> Turn:
    outer = turn.limits
    limits = replace(
        outer,
        max_tool_calls=min(CALLS, outer.max_tool_calls),
        seconds=outer.seconds / 2,
        tokens=max(LEAST_TOKENS, outer.tokens // SHARE),
    )
    name, chat = f"{turn.journal.turn}.{number}", turn.journal.chat
    journal = ShortJournal(name, chat, _opening(task), spend=spend)
    tools = [tool for tool in turn.tools if tool.name != TOOL]
    return replace(turn, journal=journal, tools=tools, limits=limits)


def _opening(task: str) -> list[Message]:
    return [System(system_text()), User(f"<context>\n{texts.SUB_TASK}\n</context>\n{task}")]


def _unheard(event: Event) -> None:
    """An inner turn's steps are shown to nobody."""


async def freely(completion: Completion) -> None:
    """The `spend` of a turn whose tokens nobody counts."""


@dataclass
class ShortJournal:
    """agent.turn.journal.Journal for as long as the turn lasts. `before` messages are not the turn's own."""

    turn: str
    chat: str
    messages: list[Message] = field(default_factory=list)
    before: int = 1
    spend: Spend = freely

    async def open(self) -> TurnState:
        return TurnState(tuple(self.messages), len(self.messages) - self.before)

    async def asked(self, completion: Completion) -> None:
        await self.spend(completion)

    async def aside(self, completion: Completion) -> None:
        await self.spend(completion)

    async def step(self, message: Assistant) -> None:
        self.messages.append(message)

    async def started(self, call: str) -> None:
        """Not resumed, so nothing to tell."""

    async def result(self, result: ToolResult) -> ToolResult:
        self.messages.append(result)
        return result

    async def steer(self) -> Sequence[User]:
        return ()

    async def note(self, message: User) -> None:
        self.messages.append(message)

    async def compact(self, *, full: bool = False) -> TurnState | None:
        """When the server finds it too long, all tool results but the last are shortened."""
        results = [n for n, m in enumerate(self.messages) if isinstance(m, ToolResult)]
        long = [
            n for n in results[:-1] if len(self._result(n).text) > SHORT + len(texts.SHORTENED) + 1
        ]
        if not full or not long:
            return None
        for number in long:
            result = self._result(number)
            kept = f"{result.text[:SHORT]} {texts.SHORTENED}"
            self.messages[number] = replace(result, text=kept)
        return await self.open()

    async def finish(
        self, message: Assistant | None, text: str, reason: Reason, usage: TokenUsage
    ) -> None:
        """The conclusion is the outer turn's tool result."""

    def _result(self, number: int) -> ToolResult:
        message = self.messages[number]
        assert isinstance(message, ToolResult)
        return message
