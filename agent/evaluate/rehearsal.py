"""A recorded turn done again by another model. Its tool calls are answered from the record: nothing is executed, sent or kept.

rehearsed = await rehearse(setup, recorded)
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from statistics import median
from typing import Any

from agent.aio import move_on_when
from agent.approvals import ApprovalRows, Approvals
from agent.evaluate.runner import Power, measured_energy
from agent.events import CallRefused, Event, ModelFinished, Reason, ToolCalled
from agent.llm.queued_model import GpuQueue
from agent.llm.tool_call_parser import arguments_of
from agent.messages import Assistant, Message, System, ToolResult
from agent.model import Model, Piece, Request, WrappedModel
from agent.prompt import system_text
from agent.sandbox.sandbox import Sandbox
from agent.store.turns import RecordedTurn
from agent.tools.context import ToolContext
from agent.tools.tool import Call, Output, Tool
from agent.turn.delegate import TransientJournal
from agent.turn.loop import run_turn
from agent.turn.repetition import signature
from agent.turn.turn import Constrain, Turn, TurnLimits, at_once, never
from backend.protocol import EVAL, IDLE

NOT_RECORDED = "This call is not on record, so there is no result. Answer with what you know."
CIRCLED = ("loop", "tool_limit")


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """How a turn went. Of its `recorded` tool calls `same` were made again; `calls` counts those made in all,
    `broken` those that no tool could take. `circled`: a call was made more often than on record. Speeds are medians
    over its model calls, in tokens/s and seconds; what nothing measures is None. `then` and `now` are the model's
    words and calls, by line.
    """

    turn: str
    then: tuple[str, ...]
    now: tuple[str, ...]
    recorded: int
    same: int
    calls: int
    broken: int
    circled: bool
    reason: Reason
    seconds: float
    decode_tok_s: float | None
    first_word_s: float | None
    joules: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """Turns together: sums and, for speeds, medians. `looped` counts those that circled."""

    turns: int
    recorded: int
    same: int
    calls: int
    broken: int
    looped: int
    failed: int
    seconds: float
    decode_tok_s: float | None
    first_word_s: float | None
    watt_hours: float | None


@dataclass(frozen=True)
class RehearsalSetup:
    """What all turns of a rehearsal run with. `queue` is of the backend that serves people."""

    model: Model
    queue: GpuQueue
    tools: Sequence[Tool]
    schemas: Sequence[Mapping[str, Any]]
    approvals: ApprovalRows
    sandbox: Sandbox
    power: Power
    limits: TurnLimits = field(default_factory=TurnLimits)
    ready: Any = at_once
    constrain: Callable[[], Awaitable[Constrain]] = never


async def rehearse(setup: RehearsalSetup, recorded: RecordedTurn) -> Rehearsed:
    """Raises what is no fault of the model's, such as BackendAway."""
    record = Record.of(recorded.own)
    often = Counter(each[1] for each in record.results)
    before = [System(system_text()), *recorded.before]
    asked = takewhile(lambda message: not isinstance(message, Assistant), recorded.own)
    finished_calls: list[ModelFinished] = []
    broken, made = 0, Counter[str]()

    def on_event(event: Event) -> None:
        nonlocal broken
        match event:
            case ModelFinished():
                finished_calls.append(event)
            case ToolCalled(name=name, arguments=arguments):
                made[signature(name, given(arguments))] += 1
            case CallRefused():
                broken += 1

    journal = TransientJournal(recorded.id, EVAL, [*before, *asked], before=len(before))
    first = len(journal.messages)
    tools = [replace(tool, function=partial(record.run, tool.name)) for tool in setup.tools]
    turn = Turn(
        model=IdleModel(setup.model, setup.queue),
        journal=journal,
        tools=tools,
        schemas=setup.schemas,
        context=ToolContext(setup.sandbox),
        approvals=Approvals(setup.approvals, None),
        limits=setup.limits,
        ready=setup.ready,
        constrain=setup.constrain,
    )
    began = asyncio.get_running_loop().time()
    async with measured_energy(setup.power) as energy:
        finished = await run_turn(turn, on_event)
    return Rehearsed(
        turn=recorded.id,
        then=lines_of(recorded.own),
        now=(*lines_of(journal.messages[first:]), *finished.text.splitlines()),
        recorded=record.size,
        same=record.same,
        calls=finished.tool_calls,
        broken=broken,
        circled=finished.reason in CIRCLED or any(n > max(1, often[c]) for c, n in made.items()),
        reason=finished.reason,
        seconds=round(asyncio.get_running_loop().time() - began, 3),
        decode_tok_s=middle([each.decode_tok_s for each in finished_calls]),
        first_word_s=middle([each.ttft_ms and each.ttft_ms / 1000 for each in finished_calls]),
        joules=energy.joules,
    )


def summary(turns: Sequence[Rehearsed]) -> Summary:
    joules = [each.joules for each in turns if each.joules is not None]
    return Summary(
        turns=len(turns),
        recorded=sum(each.recorded for each in turns),
        same=sum(each.same for each in turns),
        calls=sum(each.calls for each in turns),
        broken=sum(each.broken for each in turns),
        looped=sum(each.circled for each in turns),
        failed=sum(each.reason not in ("done", *CIRCLED) for each in turns),
        seconds=round(sum(each.seconds for each in turns), 1),
        decode_tok_s=middle([each.decode_tok_s for each in turns]),
        first_word_s=middle([each.first_word_s for each in turns]),
        watt_hours=round(sum(joules) / 3600, 3) if joules else None,
    )


def middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value]
    return round(median(known), 3) if known else None


@dataclass
class Record:
    """The results of a turn's calls, by name and signature, each given out once, in order.

    A call that was made otherwise gets the next result of the same tool, so that the turn can go on; one that is
    made again gets its result again.
    """

    results: list[tuple[str, str, str]]  # name, signature, result
    size: int = 0
    same: int = 0
    given: dict[str, str] = field(default_factory=dict)  # results by signature

    @classmethod
    def of(cls, messages: Sequence[Message]) -> "Record":
        calls = {call.id: call for m in messages if isinstance(m, Assistant) for call in m.calls}
        found = [
            (calls[m.call].name, signature_of(calls[m.call].name, calls[m.call].arguments), m.text)
            for m in messages
            if isinstance(m, ToolResult) and m.call in calls
        ]
        return cls(found, len(found))

    async def run(self, name: str, call: Call, **arguments: Any) -> Output:
        """The function of each tool."""
        made = signature(name, given(arguments))
        if made in self.given:
            return Output(self.given[made])
        exact = next((each for each in self.results if each[1] == made), None)
        self.same += exact is not None
        found = exact or next((each for each in self.results if each[0] == name), None)
        if found is None:
            return Output(NOT_RECORDED, ok=False)
        self.results.remove(found)
        self.given[made] = found[2]
        return Output(found[2])


def lines_of(messages: Sequence[Message]) -> tuple[str, ...]:
    """The model's words, and a line for each call, without its id and with its JSON normalized."""
    lines: list[str] = []
    for message in messages:
        if isinstance(message, Assistant):
            lines += message.text.strip().splitlines()
            lines += [f"{call.name} {in_order(call.arguments)}" for call in message.calls]
    return tuple(lines)


def in_order(arguments: str) -> str:
    """Arguments as JSON that is the same for the same arguments."""
    return json.dumps(given(arguments_of(arguments) or {}), ensure_ascii=False, sort_keys=True)


def signature_of(name: str, arguments: str) -> str:
    return signature(name, given(arguments_of(arguments) or {}))


def given(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments without those left empty, which some models write and others leave out."""
    return {name: value for name, value in arguments.items() if value not in (None, "", [])}


@dataclass(frozen=True)
class IdleModel(WrappedModel):
    """A model whose calls run while nobody else wants the GPU. One that is interrupted is made again, so nothing of
    it is passed on before its end."""

    queue: GpuQueue

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        pieces: list[Piece] | None = None
        while pieces is None:
            async with self.queue(EVAL, IDLE, None) as hold, move_on_when(hold.wanted):
                pieces = [piece async for piece in self.model.stream(request)]
        for piece in pieces:
            yield piece
