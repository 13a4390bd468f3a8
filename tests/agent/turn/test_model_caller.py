"""One completion, piece by piece; with whole turns in test_backend.py and test_thoughts.py."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import pytest

from agent.events import Event, ModelFinished, Notice, TextDelta, ThoughtDelta
from agent.llm.tool_call_parser import KnownTools
from agent.messages import User
from agent.model import (
    Ahead,
    Completion,
    ModelRefused,
    Piece,
    ReasoningPiece,
    Request,
    TextPiece,
)
from agent.turn import texts
from agent.turn.model_caller import ModelCaller
from agent.turn.turn import TurnLimits, at_once


@dataclass
class Played:
    """A model that plays one list of pieces for each request, the last again and again."""

    plays: list[list[Piece]]
    requests: list[Request] = field(default_factory=list)

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        self.requests.append(request)
        for piece in self.plays.pop(0) if len(self.plays) > 1 else self.plays[0]:
            yield piece

    async def window(self) -> int:
        return 8192

    async def count(self, request: Request) -> int:
        return 1

    async def ahead(self, _: Request, *, changed: bool = False) -> Ahead | None:
        return None


async def played(
    *plays: list[Piece], answer_now: bool = False, brief: bool = False
) -> tuple[list[Event], Completion, str]:
    """The events of one completion, what came of it, and what a person may see of it."""
    events: list[Event] = []
    model, asked = Played(list(plays)), asyncio.Event()
    if answer_now:
        asked.set()
    caller = ModelCaller(model, KnownTools.of(()), TurnLimits(), at_once, events.append, asked)
    completion, parser = await caller.complete(Request((User("hi"),), (), brief=brief))
    return events, completion, parser.visible


WHOLE = Completion("Hello.", (), "", "stop", 1, 2, 3, 4, 5.5, 6.5)


@pytest.mark.parametrize("brief", [False, True])
async def test_a_thought_ends_where_an_answer_is_wanted_now(brief: bool) -> None:
    """In the request for that answer nothing is left to end."""
    thinking: list[Piece] = [ReasoningPiece("one "), ReasoningPiece("two"), WHOLE]
    events, completion, _ = await played(thinking, answer_now=True, brief=brief)
    if brief:
        assert completion == WHOLE
        assert events[:2] == [ThoughtDelta("one "), ThoughtDelta("two")]
    else:
        assert completion == Completion("", (), "one ", "length")
        assert events[:2] == [ThoughtDelta("one "), Notice(texts.ANSWER_NOW)]


@pytest.mark.parametrize(
    ("shown", "again", "deltas"),
    [
        ("Hel", "Hello.", ["Hel", "lo."]),
        ("Hello.", "Hel", ["Hello."]),
        ("Hello.", "Hello.", ["Hello."]),
        ("Hi", "Hello.", ["Hi", None, "Hello."]),
    ],
    ids=["goes on", "shorter", "same", "other"],
)
async def test_of_an_answer_that_is_read_again_what_is_new_is_shown(
    shown: str, again: str, deltas: list[str | None]
) -> None:
    """None stands for the notice that what was shown is void."""
    events: list[Event] = []

    class Unparsed(Played):
        async def stream(self, request: Request) -> AsyncGenerator[Piece]:
            if not request.raw:
                yield TextPiece(shown)
                raise ModelRefused(500, "unparsed", unparsed=True)
            for letter in (again[:1], again[1:]):
                yield TextPiece(letter)
            yield Completion(again, (), "", "stop")

    caller = ModelCaller(Unparsed([]), KnownTools.of(()), TurnLimits(), at_once, events.append)
    completion, _ = await caller.complete(Request((User("hi"),), ()))
    assert completion.text == again
    expected = [TextDelta(text) if text else Notice(texts.READ_AGAIN) for text in deltas]
    assert [event for event in events if not isinstance(event, ModelFinished)] == expected


@pytest.mark.parametrize(("shown", "pieces"), [(False, 41), (True, 200)])
async def test_words_that_nobody_reads_are_not_generated_to_their_end(
    shown: bool, pieces: int
) -> None:
    said = 0

    class Talking(Played):
        async def stream(self, request: Request) -> AsyncGenerator[Piece]:
            nonlocal said
            for said in range(1, 201):
                yield TextPiece(f"word {said:04} ")
            yield Completion("", (), "", "stop")

    caller = ModelCaller(Talking([]), KnownTools.of(()), TurnLimits(), at_once, lambda _: None)
    completion, _ = await caller.complete(Request((User("hi"),), ()), shown=shown)
    assert (said, completion.finish_reason) == (pieces, "stop")
