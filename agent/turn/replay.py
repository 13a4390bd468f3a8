"""Replay of a recorded turn: each of its model calls is made again, behind the recorded results.

Nothing is executed, delivered or written. The model that serves now answers each recorded
request by itself, so the first difference is the model's.
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
    """The message's text, then a line for each call, without its id and with its JSON normalized."""
    calls = [f"{call.name} {normalized(call.arguments)}" for call in message.calls]
    return [*message.text.strip().splitlines(), *calls]


def normalized(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False, sort_keys=True)
    except ValueError:
        return arguments


def request_of(
    before: Sequence[Message],
    schemas: Sequence[Mapping[str, Any]],
    thinking: int | None,
    max_tokens: int,
    *,
    last: bool = False,
) -> Request:
    """The request that a turn makes behind these messages; `last`: no more tools."""
    return Request(
        messages=(System(system_text()), *before),
        tools=tuple(schemas),
        tool_choice="none" if last else "auto",
        max_tokens=max_tokens,
        thinking=thinking,
    )


async def replay(
    turn: RecordedTurn,
    caller: ModelCaller,
    schemas: Sequence[Mapping[str, Any]],
    limits: TurnLimits,
    thinking: int | None,
) -> AsyncIterator[Answered]:
    """`thinking` is the chat's setting. Raises what ModelCaller.complete raises."""
    max_tokens, known = limits.reply_cap(await caller.window()), KnownTools.of(schemas)
    for place, message in enumerate(turn.own):
        if isinstance(message, Assistant):
            before = (*turn.before, *turn.own[:place])
            last = place == len(turn.own) - 1 and turn.reason == "tool_limit"
            request = request_of(before, schemas, thinking, max_tokens, last=last)
            completion, parser = await caller.complete(request)
            yield Answered(message, read_step(completion, parser, known, ()).message, completion)
