"""A recorded turn once more, dry: each model call as it was made, with the recorded results before it.

Nothing is executed, delivered or written. The model that serves now answers each
request of the record on its own, so that the first difference is the model's.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.llm.tool_call_parser import KnownTools
from agent.messages import Assistant, Message, System
from agent.model import Completion, Request
from agent.prompt import system_text
from agent.store.turns import RecordedTurn
from agent.turn.model_caller import ModelCaller
from agent.turn.step import read_step
from agent.turn.turn import TurnLimits


@dataclass(frozen=True, slots=True)
class Answered:
    """One model call: what is on record, and what the model says now."""

    then: Assistant
    now: Assistant
    completion: Completion

    @property
    def same(self) -> bool:
        return lines_of(self.then) == lines_of(self.now)


def lines_of(message: Assistant) -> list[str]:
    """What a message comes to, in lines: its words, its calls in one form whatever their ids and spacing."""
    calls = [f"{call.name} {plain(call.arguments)}" for call in message.calls]
    return [*message.text.strip().splitlines(), *calls]


def plain(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False, sort_keys=True)
    except ValueError:
        return arguments


def request_of(
    before: Sequence[Message],
    schemas: Sequence[Mapping[str, Any]],
    thinking: int | None,
    most: int,
    *,
    last: bool = False,
) -> Request:
    """The request for what follows these messages, as a turn makes it; `last`: no more tools."""
    return Request(
        messages=(System(system_text()), *before),
        tools=tuple(schemas),
        tool_choice="none" if last else "auto",
        max_tokens=most,
        thinking=thinking,
    )


@dataclass(frozen=True)
class Replay:
    """`thinking` is the chat's setting, as for a turn."""

    caller: ModelCaller
    schemas: Sequence[Mapping[str, Any]]
    limits: TurnLimits
    thinking: int | None = None

    async def __call__(self, turn: RecordedTurn) -> AsyncIterator[Answered]:
        """Raises as a turn's model call does."""
        most = self.limits.reply_cap(await self.caller.window())
        for place, message in enumerate(turn.own):
            if isinstance(message, Assistant):
                last = place == len(turn.own) - 1 and turn.reason == "tool_limit"
                before = (*turn.before, *turn.own[:place])
                yield await self._answer(before, message, most, last=last)

    async def _answer(
        self, before: Sequence[Message], then: Assistant, most: int, *, last: bool
    ) -> Answered:
        request = request_of(before, self.schemas, self.thinking, most, last=last)
        completion, reader = await self.caller.complete(request)
        step = read_step(completion, reader, KnownTools.of(self.schemas), ())
        return Answered(then, step.message, completion)
