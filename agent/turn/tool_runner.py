"""Running the calls of a step: known tool, valid arguments, not once more the same, then run."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from agent.approvals import Approvals, GuardedCall
from agent.errors import ToolError
from agent.events import CallRefused, Event, ToolCalled, ToolFinished, ToolProgress
from agent.llm.tool_call_parser import arguments_of
from agent.messages import ToolCall
from agent.tools.context import ToolContext
from agent.tools.tool import Call, Output, Tool
from agent.turn import texts
from agent.turn.tool_loop_detection import ToolLoopDetector

Emit = Callable[[Event], None]
_LINE = 120


@dataclass
class TurnProgress:
    """What a turn has done so far.

    `calls` were taken up (run, or answered as repetition); `done` are names of
    tools that ran without an error; `tainted` once strangers' text was read.
    """

    calls: int = 0
    done: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    tainted: bool = False
    repetition: ToolLoopDetector = field(default_factory=ToolLoopDetector)

    def remember(self, call: ToolCall, result: str) -> None:
        """A call of before a restart; whether its text was foreign is not known, so it counts as such."""
        self.calls += 1
        self.done.add(call.name)
        self.tainted = True
        self.lines.append(described(call))
        self.repetition.ran(call.name, arguments_of(call.arguments) or {}, result)


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """`text` is the model's result. `refused`: it was no call; `circle`: it ends the turn."""

    text: str
    refused: bool = False
    circle: bool = False


@dataclass
class ToolRunner:
    """One call at a time. `begun` is awaited before a tool starts; `room` is Call.output_bytes."""

    tools: Mapping[str, Tool]
    desk: ToolContext
    approvals: Approvals
    emit: Emit
    turn: str
    chat: str
    tally: TurnProgress
    room: int = 0

    async def __call__(
        self, call: ToolCall, begun: Callable[[], Awaitable[None]], *, readable: bool
    ) -> CallOutcome:
        try:
            tool = self._tool(call)
            arguments = self._arguments(tool, call, readable=readable)
        except ToolError as error:
            self.emit(CallRefused(call.name, str(error)))
            return CallOutcome(str(error), refused=True)
        self.tally.calls += 1
        verdict = self.tally.repetition.verdict(tool.name, arguments)
        self.emit(ToolCalled(call.id, tool.name, arguments))
        if verdict != "run":
            return self._repeated(call, arguments, circle=verdict == "end")
        await begun()
        return await self._run(tool, call, arguments)

    def _tool(self, call: ToolCall) -> Tool:
        if call.name not in self.tools:
            raise ToolError(self._unknown(call.name))
        return self.tools[call.name]

    def _unknown(self, name: str) -> str:
        if near := get_close_matches(name, self.tools, 1):
            return texts.NO_TOOL.format(name=name, form=self.tools[near[0]].signature)
        return texts.UNKNOWN_TOOL.format(name=name, tools=", ".join(self.tools))

    def _arguments(self, tool: Tool, call: ToolCall, *, readable: bool) -> dict[str, Any]:
        arguments = arguments_of(call.arguments) if readable else None
        if arguments is None:
            raise ToolError(texts.UNREADABLE.format(form=tool.signature))
        return tool.check(arguments)

    def _repeated(
        self, call: ToolCall, arguments: Mapping[str, Any], *, circle: bool
    ) -> CallOutcome:
        self.tally.repetition.noted(call.name, arguments)
        self._finished(call, Output(texts.REPEATED, ok=False), 0.0)
        return CallOutcome(texts.REPEATED, circle=circle)

    async def _run(self, tool: Tool, call: ToolCall, arguments: dict[str, Any]) -> CallOutcome:
        now = asyncio.get_running_loop().time
        began = now()
        try:
            output = await tool.run(self._call(call), arguments)
        except ToolError as error:
            output = Output(str(error), ok=False)
        self._record(call, arguments, output)
        self._finished(call, output, now() - began)
        return CallOutcome(output.text)

    def _record(self, call: ToolCall, arguments: Mapping[str, Any], output: Output) -> None:
        self.tally.repetition.ran(call.name, arguments, output.text)
        self.tally.lines.append(f"{described(call)}: {'ok' if output.ok else 'failed'}")
        self.tally.tainted |= output.foreign
        if output.ok:
            self.tally.done.add(call.name)

    def _finished(self, call: ToolCall, output: Output, seconds: float) -> None:
        self.emit(
            ToolFinished(
                call.id, call.name, output.ok, output.text, round(seconds * 1000), output.shown
            )
        )

    def _call(self, call: ToolCall) -> Call:
        step = GuardedCall(self.turn, call.id, self.chat, lambda: self.tally.tainted)
        return Call(
            id=call.id,
            turn=self.turn,
            chat=self.chat,
            context=self.desk,
            approve=self.approvals.approver(step, self.emit),
            progress=lambda text: self.emit(ToolProgress(call.id, text)),
            output_bytes=self.room,
        )


def described(call: ToolCall) -> str:
    """A call in one short line, for reports."""
    arguments = arguments_of(call.arguments) or {}
    shown = " ".join(str(value) for value in arguments.values())
    line = " ".join(f"{call.name} {shown}".split())
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"


def by_name(tools: Sequence[Tool]) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools}
