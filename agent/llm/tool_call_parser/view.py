"""What a recogniser of a call format gets, the text so far, and what it returns.

A recogniser takes a view and the place of a sign, and returns an Outcome.
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

    `thought`: where in it reasoning stands, which is not part of the answer. `drops`: all
    before it was reasoning, too (a lone `</think>`).
    """

    end: int
    calls: tuple[ParsedCall, ...] = ()
    thought: slice | None = None
    drops: bool = False


class Wait:
    """More text must come before anything can be decided."""


@dataclass(frozen=True)
class Thinking(Wait):
    """Reasoning that has not ended: from `begin` to one of the closing marks (in lower case)."""

    begin: int
    closing: tuple[str, ...]


WAIT = Wait()
Outcome = Hidden | Wait | None  # None: plain text
BROKEN = ParsedCall("", None)


@dataclass(frozen=True)
class ParserView:
    """The text so far, and what a recogniser asks of it; `final`: no more text comes."""

    text: str
    final: bool
    known: KnownTools

    def space(self, place: int) -> int:
        """The end of the white space at `place`."""
        found = _SPACE.match(self.text, place)
        return found.end() if found else place

    def literal(self, place: int, literals: Iterable[str]) -> str | Wait | None:
        """The literal that stands at `place`, ignoring case; WAIT where one may be beginning. None where it is quoted in
        `backticks`: it is spoken of there."""
        literals = tuple(literals)
        rest = self.text[place : place + max(map(len, literals))].lower()
        found = [literal for literal in literals if rest.startswith(literal)]
        if found:
            longest = max(found, key=len)
            after = place + len(longest)
            if not re.search(r"(?<!`)`\Z", self.text[max(0, place - 2) : place]):
                return longest
            if self.text[after : after + 1] == "`":
                return None
            return longest if self.text[after:] or self.final else WAIT
        if self.ends_in(place, rest) and any(x.startswith(rest) for x in literals):
            return WAIT
        return None

    def ends_in(self, place: int, rest: str) -> bool:
        """Whether the text ends with `rest`, which stands at `place`, and may still grow."""
        return not self.final and place + len(rest) >= len(self.text)

    def unfinished(self, call: ParsedCall = BROKEN) -> Hidden | Wait:
        """Return the outcome for a call that has not ended: to wait or, if no more text comes, `call`."""
        return Hidden(len(self.text), (call,)) if self.final else WAIT

    def after(self, place: int, literals: Iterable[str]) -> int | Wait:
        """The place behind white space and one of the literals; `place` where there is none of them."""
        spaced = self.space(place)
        found = self.literal(spaced, literals)
        if isinstance(found, str):
            return spaced + len(found)
        if found is WAIT:
            return WAIT
        return place
