"""A sub-task runs in an inner turn with a short transcript of its own; only its conclusion comes back.

It begins with the same fixed prefix as every conversation, which the model server
has read already. Nothing of it is stored: after a kill, the outer turn is told that
the call was interrupted.
"""

import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from agent.errors import ToolError
from agent.events import Emit, Reason, TokenUsage, TurnFinished
from agent.messages import Assistant, Message, System, ToolResult, User
from agent.model import Completion
from agent.prompt import system_text
from agent.tools.tool import Withhold, untold
from agent.trust import Taint, named
from agent.turn import texts
from agent.turn.conversation import TurnState
from agent.turn.turn import Turn
from agent.turn.untrusted_reader import Spend, uncounted

TOOL = "delegate"
CALLS = 12
SHARE = 4  # an inner turn may use a fourth of the outer turn's tokens
LEAST_TOKENS = 8192
SHORT = 200  # characters kept of an old tool result when the window is full

Run = Callable[[Turn, Emit], Awaitable[TurnFinished]]


def delegating(turn: Turn, run: Run, spend: Spend, withhold: Withhold) -> Turn:
    """The turn, able to run sub-tasks if it has that tool.

    `run` is agent.turn.loop.run_turn. `spend` is called with each model call of a
    sub-task, which counts towards the outer turn; `withhold` with what a sub-task withheld.
    """
    if not any(tool.name == TOOL for tool in turn.tools):
        return turn
    numbers = itertools.count(1)
    limits = replace(
        turn.limits,
        max_tool_calls=min(CALLS, turn.limits.max_tool_calls),
        seconds=turn.limits.seconds / 2,
        tokens=max(LEAST_TOKENS, turn.limits.tokens // SHARE),
    )
    tools = [tool for tool in turn.tools if tool.name != TOOL]

    async def delegate(task: str, strangers: list[str]) -> str:
        first = User(f"<context>\n{texts.SUB_TASK}\n</context>\n{task}")
        journal = TransientJournal(
            f"{turn.journal.turn}.{next(numbers)}",
            turn.journal.chat,
            [System(system_text()), first],
            spend=spend,
            held=list(await turn.journal.taints()),
            told=withhold,
        )
        known = len(journal.held)
        inner = replace(turn, journal=journal, tools=tools, limits=limits)
        try:
            finished = await run(inner, lambda _event: None)  # its steps are not shown
        finally:
            strangers.extend(taint.source for taint in journal.held[known:])
        if finished.reason in ("done", "tool_limit"):
            return finished.text
        raise ToolError(finished.text)

    return replace(turn, context=replace(turn.context, delegate=delegate))


@dataclass
class TransientJournal:
    """An agent.turn.conversation.Journal in memory. The first `before` messages are not the turn's own;
    `held` is the strangers' text that it has read; `told` is called with what it withheld."""

    turn: str
    chat: str
    messages: list[Message] = field(default_factory=list)
    before: int = 1
    spend: Spend = uncounted
    held: list[Taint] = field(default_factory=list)
    told: Withhold = untold

    async def open(self) -> TurnState:
        return TurnState(tuple(self.messages), len(self.messages) - self.before)

    async def called(self, completion: Completion, sent: Sequence[Message] | None) -> None:
        await self.spend(completion)

    async def add(self, message: Message, *, own: bool, strangers: Sequence[str] = ()) -> Message:
        self.messages.append(message)
        self.held += [Taint(named(source), time.time()) for source in strangers]
        return message

    async def taints(self) -> Sequence[Taint]:
        return self.held

    async def started(self, call: str) -> None:
        """A sub-task is not resumed, so there is nothing to record."""

    async def withhold(self, what: str) -> None:
        await self.told(what)

    async def steer(self) -> Sequence[User]:
        return ()

    async def compact(
        self, messages: Sequence[Message], begins: Callable[[], None], *, full: bool
    ) -> TurnState | None:
        """If the server has refused the transcript as too long, cut all tool results but the last to `SHORT` characters.
        Returns the new state, None if nothing was cut. No model is asked, so `begins` is not called."""
        results = [(n, m) for n, m in enumerate(messages) if isinstance(m, ToolResult)][:-1]
        long = [(n, m) for n, m in results if len(m.text) > SHORT + len(texts.SHORTENED) + 1]
        if not full or not long:
            return None
        for number, result in long:
            text = f"{result.text[:SHORT]} {texts.SHORTENED}"
            self.messages[number] = replace(result, text=text)
        return await self.open()

    async def finish(
        self,
        message: Assistant | None,
        text: str,
        reason: Reason,
        usage: TokenUsage,
        changes: int = 0,
    ) -> None:
        """The conclusion is the outer turn's tool result."""
