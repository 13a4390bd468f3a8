"""The text so far, as the recognisers of call formats see it, and what they answer.

A recogniser takes a view and the place of a sign, and answers with an Outcome.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent.llm.tool_call_parser.calls import KnownTools, ParsedCall

NOISE = "]<]minimax[>["  # MiniMax M3 writes it in front of every tag
_SPACE = re.compile(rf"(?:\s|{re.escape(NOISE)})*")


@dataclass(frozen=True)
class Hidden:
    """The text up to `end` is not shown.

    `thought`: where in it reasoning stands, which is not part of the answer. `drops`: so was
    all before it (a lone `</think>`).
    """

    end: int
    calls: tuple[ParsedCall, ...] = ()
    thought: slice | None = None
    drops: bool = False


class Wait:
    """More text decides."""


@dataclass(frozen=True)
class Thinking(Wait):
    """Reasoning goes on, from `begin` to one of the closing marks, in lower case."""

    begin: int
    closing: tuple[str, ...]


WAIT = Wait()
Outcome = Hidden | Wait | None  # None: plain text
BROKEN = ParsedCall("", None)


@dataclass(frozen=True)
class ParserView:
    """`final`: nothing more comes, so nothing is worth waiting for."""

    text: str
    final: bool
    known: KnownTools

    def space(self, place: int) -> int:
        """The place behind white space."""
        found = _SPACE.match(self.text, place)
        return found.end() if found else place

    def literal(self, place: int, literals: Iterable[str]) -> str | Wait | None:
        """Which of the literals stands at `place`, ignoring case; WAIT when one may be beginning."""
        literals = tuple(literals)
        rest = self.text[place : place + max(map(len, literals))].lower()
        found = [literal for literal in literals if rest.startswith(literal)]
        if found:
            return max(found, key=len)
        if self.ends_in(place, rest) and any(x.startswith(rest) for x in literals):
            return WAIT
        return None

    def ends_in(self, place: int, rest: str) -> bool:
        """Whether the text ends with what was looked at, and may still grow."""
        return not self.final and place + len(rest) >= len(self.text)

    def after(self, place: int, literals: Iterable[str]) -> int | Wait:
        """The place behind white space and one of the literals, if it stands there."""
        spaced = self.space(place)
        found = self.literal(spaced, literals)
        if isinstance(found, str):
            return spaced + len(found)
        if found is WAIT:
            return WAIT
        return place
