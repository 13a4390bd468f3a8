"""Detects loops: a completion that repeats the same words without end, and a turn that makes the same tool calls
with the same results over and over.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

LONGEST_UNIT = 500  # characters of the words that are repeated
FEWEST_REPETITIONS = 8
LONG_UNIT, FEWEST_OF_LONG = 200, 4  # some sentences in turn
LENGTH = 600  # characters of all repetitions together
SHORT_UNIT, SHORT_LENGTH = 8, 2000  # a line of dashes is no loop yet
STRIDE = 100  # characters between two checks
DATA_LENGTH = 12_000  # of equal rows, numbers or lines of code, which may be meant
_ROW = re.compile(r"[\w\"')\]}][,;|\t]\s?[\w\"'({[.-]|\||</\w+>")
# A key and its value, or a line of a drawing.
_RECORD = re.compile(r"\s*(?:- )?[\w.-]+: ?\S*|[^\w\n]+")
_VALUES = {"true", "false", "null", "none", "nan", "nil"}
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)


class RepeatedTextDetector:
    """Is fed with a text as it is generated: small models end up repeating their last words.

    Data may have many equal rows (in a block of code; rows with separators; numbers or values alone): it
    counts as a loop only where it is longer than a person would ask for. `fewest_of_long`: how often some
    sentences in turn stand before they count.
    """

    def __init__(self, fewest_of_long: int = FEWEST_OF_LONG) -> None:
        self._fewest_of_long = fewest_of_long
        self._tail = ""
        self._new = 0
        self._line = ""  # the last line, as far as it has come
        self._in_code = False

    def feed(self, piece: str) -> bool:
        """Append a piece of the generated text. Returns whether the text ends in a loop.

        The check costs time, so it runs once every `STRIDE` characters and returns False in between."""
        self._tail = (self._tail + piece)[-DATA_LENGTH:]
        *lines, self._line = (self._line + piece).split("\n")
        for line in lines:
            self._in_code ^= bool(_FENCE.match(line))
        self._new += len(piece)
        if self._new < STRIDE:
            return False
        self._new = 0
        return any(self._repeats(length) for length in range(1, LONGEST_UNIT + 1))

    def _repeats(self, length: int) -> bool:
        unit = self._tail[-length:]
        wanted = SHORT_LENGTH if length < SHORT_UNIT or not unit.strip() else LENGTH
        if not self._ends_with(unit, wanted):
            return False
        return not self._is_data(unit) or self._ends_with(unit, DATA_LENGTH - length)

    def _ends_with(self, unit: str, wanted: int) -> bool:
        """Whether the text ends with the unit over and over, at least `wanted` characters of it."""
        fewest = self._fewest_of_long if len(unit) > LONG_UNIT else FEWEST_REPETITIONS
        count = max(fewest, math.ceil(wanted / len(unit)))
        return self._tail.endswith(unit * count)

    def _is_data(self, unit: str) -> bool:
        """Whether the unit looks like data, of which equal rows may be meant."""
        numbers = any(map(str.isdigit, unit)) and not any(map(str.isalpha, unit))
        # The unit may begin within a word.
        values = "," in unit and {*re.findall(r"\w+", (unit * 3).lower())[1:-1]} <= _VALUES
        lines = (unit * 2).split("\n")[1:-1]  # whole ones
        rows = bool(lines) and (_ROW.search(unit) or all(map(_RECORD.fullmatch, lines)))
        return self._in_code or numbers or values or bool(rows)


def without_repetition(text: str) -> str:
    """A text that was stopped because it repeated itself, without what it had said before at its end."""
    sentences = re.findall(r".+?(?:[.!?]+\s+|\n+|\Z)", text, re.DOTALL)
    left = sentences[:-1]  # the last was cut
    while left and any(left[-1].strip() == earlier.strip() for earlier in left[:-1]):
        left.pop()
    return "".join(left).rstrip() if len(left) < len(sentences) - 2 else text


# -- tool calls ----------------------------------------------------------------


LONGEST_CYCLE = 4  # calls
WAITED = 2.0  # seconds: what took longer has waited for something, and may show something else now


class RepeatedCallDetector:
    """Remembers the calls of a turn and their results, in order.

    A cycle is one to four calls that are made again with the same results.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[str, str]] = []  # signature and result
        self._waited = False  # the last call has

    def completes_cycle(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether this call, not run yet, would be the last of a cycle's second round.

        The calls of that round before it have had the same results as in the first, so running it
        again can tell the model nothing that it does not know.
        """
        call = signature(name, arguments)
        return any(self._repeats(call, period) for period in range(1, LONGEST_CYCLE + 1))

    def ran(
        self, name: str, arguments: Mapping[str, Any], result: str, seconds: float = 0.0
    ) -> None:
        entry = (signature(name, arguments), result)
        self._waited = seconds >= WAITED and entry not in self._entries[-1:]
        self._entries.append(entry)

    def _repeats(self, call: str, period: int) -> bool:
        entries, before = self._entries, period - 1
        if len(entries) < period + before or entries[-period][0] != call:
            return False
        if period == 1 and self._waited:
            return False
        earlier = entries[-2 * period : 1 - 2 * period]
        if any(each[0] == call and each != entries[-period] for each in earlier):
            return False  # it told something new in each round
        return all(entries[-n] == entries[-n - period] for n in range(1, period))


def signature(name: str, arguments: Mapping[str, Any]) -> str:
    """What makes a call the same: all but its time limit, which changes nothing where the command has ended."""
    meant = {key: value for key, value in arguments.items() if key != "seconds"}
    return json.dumps([name, meant], sort_keys=True, ensure_ascii=False, default=str)
