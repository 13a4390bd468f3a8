"""Running the calls of a step: known tool, valid arguments, no endless repetition, then run."""

import asyncio
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any

from agent.approvals import GuardedCall
from agent.budgets import COSTS, CallBudget
from agent.errors import Looping, NoSandbox, ToolError, TurnError
from agent.events import CallRefused, Emit, PlanChanged, ToolCalled, ToolFinished, ToolProgress
from agent.language import translated
from agent.llm.tool_call_parser import arguments_of
from agent.messages import ToolCall
from agent.tools.tool import Call, Output, Tool, Withhold
from agent.turn import texts
from agent.turn.repeated_tool_calls import RepeatedCallDetector
from agent.turn.transcript import TurnTranscript
from agent.turn.turn import Turn

_LINE = 120  # characters
_REPORTED = 8  # lines of a report


class ToolRunner:
    """Runs one call at a time, and remembers what a turn has done.

    `calls` counts those that were taken up (run, or answered as repeated); `done`
    holds the names of tools that ran without an error; `malformed` counts steps
    with calls that were none. `output_bytes` and `withhold` are those of agent.tools.tool.Call.
    """

    def __init__(
        self, turn: Turn, transcript: TurnTranscript, emit: Emit, withhold: Withhold
    ) -> None:
        self.calls = 0
        self.done: set[str] = set()
        self.malformed = 0
        self.output_bytes = 0
        self._turn = turn
        self._tools = {tool.name: tool for tool in turn.tools}
        self._transcript = transcript
        self._emit = emit
        self._withhold = withhold
        self._lines: list[str] = []
        self._detector = RepeatedCallDetector()
        self._no_sandbox = ""  # why

    def remember(self, call: ToolCall, result: str) -> None:
        """A call from before a restart."""
        self.calls += 1
        self.done.add(call.name)
        self._lines.append(described(call))
        self._detector.ran(call.name, arguments_of(call.arguments) or {}, result)

    def report(self, why: str) -> str:
        """`why` the turn ended, and its last calls, for a person."""
        lines = [f"- {line}" for line in self._lines[-_REPORTED:]]
        return "\n".join([why, *([translated(texts.DONE_SO_FAR), *lines] if lines else [])])

    async def run(
        self,
        calls: Sequence[ToolCall],
        *,
        unreadable: Collection[str] = (),
        interrupted: Collection[str] = (),
    ) -> None:
        """Run the calls in order and write their results to the transcript.

        The collections hold ids: `unreadable` calls have arguments that are no JSON
        object, `interrupted` ones had started when the program was killed. Raises
        Looping when a cycle of calls has been repeated too often, TurnError when no
        command can be run here.
        """
        most, refused = self._turn.limits.max_tool_calls, False
        images: list[str] = []
        for call in calls:
            if call.id in interrupted:
                await self._transcript.result(call, texts.INTERRUPTED)
                continue
            if self.calls >= most:
                await self._transcript.result(call, texts.NOT_RUN_LIMIT.format(count=most))
                continue
            verdict = "run"
            strangers: Sequence[str] = ()
            try:
                tool = self._known(call.name)
                arguments = _arguments(tool, call, readable=call.id not in unreadable)
            except ToolError as error:
                refused, text = True, str(error)
                self._emit(CallRefused(call.name, text))
            else:
                self.calls += 1
                self._emit(ToolCalled(call.id, tool.name, arguments))
                verdict = self._detector.verdict(tool.name, arguments)
                if verdict == "run":
                    output, strangers = await self._run(tool, call, arguments)
                    text = output.text
                    images += output.images
                else:
                    text = texts.REPEATED
                    self._detector.skipped(call.name, arguments)
                    self._finished(call, Output(text, ok=False), 0.0)
            if self.calls >= most:
                text = f"{text}\n{texts.LAST_CALL}"
            await self._transcript.result(call, text, strangers)
            if verdict == "end":
                raise Looping(self.report(translated(texts.LOOPING).format(call=described(call))))
            if self._no_sandbox:
                raise TurnError(self._no_sandbox)
        if images:  # a template shows pictures of people's messages alone
            await self._transcript.note(texts.PICTURES_OF_CALLS, images)
        self.malformed += refused

    def _known(self, name: str) -> Tool:
        if name in self._tools:
            return self._tools[name]
        if near := get_close_matches(name, self._tools, 1):
            form = self._tools[near[0]].signature
            raise ToolError(texts.NO_TOOL.format(name=name, form=form))
        raise ToolError(texts.UNKNOWN_TOOL.format(name=name, tools=", ".join(self._tools)))

    async def _run(
        self, tool: Tool, call: ToolCall, arguments: dict[str, Any]
    ) -> tuple[Output, Sequence[str]]:
        """What the tool gave, and where text of strangers in it comes from."""
        await self._transcript.start(call)
        journal = self._turn.journal
        turn, chat = journal.turn, journal.chat
        guarded = GuardedCall(turn, call.id, chat, journal.taints)
        approve = self._turn.approvals.approver(guarded, self._emit)
        daily, costs = self._turn.budgets, COSTS.get(tool.name, {})
        budget = daily.of_call(chat, approve, described(call)) if daily else CallBudget()
        context = Call(
            id=call.id,
            turn=turn,
            chat=chat,
            context=self._turn.context,
            approve=approve,
            progress=lambda text: self._emit(ToolProgress(call.id, text)),
            output_bytes=self.output_bytes,
            taints=journal.taints,
            withhold=self._withhold,
            planned=lambda plan: self._emit(PlanChanged(plan)),
            budget=budget,
        )
        began = asyncio.get_running_loop().time()
        reserved = False
        try:
            await budget.reserve({"calls": 1, **costs})
            reserved = True
            output = await tool.run(context, arguments)
        except ToolError as error:
            output = Output(str(error), ok=False)
            if isinstance(error, NoSandbox):
                self._no_sandbox = str(error)
        if reserved and not output.ok:
            await budget.settle({kind: -count for kind, count in costs.items()})
        seconds = max(0.0, asyncio.get_running_loop().time() - began - approve.waited)
        self._detector.ran(call.name, arguments, output.text)
        self._lines.append(f"{described(call)}: {'ok' if output.ok else 'failed'}")
        if output.ok:
            self.done.add(call.name)
        self._finished(call, output, seconds)
        return output, list(dict.fromkeys(context.strangers))

    def _finished(self, call: ToolCall, output: Output, seconds: float) -> None:
        milliseconds = round(seconds * 1000)
        self._emit(
            ToolFinished(call.id, call.name, output.ok, output.text, milliseconds, output.shown)
        )


def _arguments(tool: Tool, call: ToolCall, *, readable: bool) -> dict[str, Any]:
    arguments = arguments_of(call.arguments) if readable else None
    if arguments is None:
        raise ToolError(texts.UNREADABLE.format(form=tool.signature))
    return tool.check(arguments)


def described(call: ToolCall) -> str:
    """A call in one short line, for reports."""
    arguments = arguments_of(call.arguments) or {}
    shown = " ".join(str(value) for value in arguments.values())
    line = " ".join(f"{call.name} {shown}".split())
    return line if len(line) <= _LINE else line[: _LINE - 1] + "…"
