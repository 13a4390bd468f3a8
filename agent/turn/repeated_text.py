"""Detects a completion that repeats the same words without end."""

import math
import re

LONGEST_UNIT = 200  # characters of the words that are repeated
FEWEST_REPETITIONS = 8
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
    counts as a loop only where it is longer than a person would ask for.
    """

    def __init__(self) -> None:
        self._tail = ""
        self._new = 0
        self._line = ""  # the last line, as far as it has come
        self._in_code = False

    def feed(self, piece: str) -> bool:
        """Whether the text repeats itself by now."""
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
        wanted = SHORT_LENGTH if length < SHORT_UNIT else LENGTH
        unit = self._tail[-length:]
        if not unit.strip() or not self._ends_with(unit, wanted):
            return False
        return not self._is_data(unit) or self._ends_with(unit, DATA_LENGTH - length)

    def _ends_with(self, unit: str, wanted: int) -> bool:
        """Whether the text ends with the unit over and over, at least `wanted` characters of it."""
        count = max(FEWEST_REPETITIONS, math.ceil(wanted / len(unit)))
        return self._tail.endswith(unit * count)

    def _is_data(self, unit: str) -> bool:
        """Whether the unit looks like data, of which equal rows may be meant."""
        numbers = any(map(str.isdigit, unit)) and not any(map(str.isalpha, unit))
        # The unit may begin within a word.
        values = "," in unit and {*re.findall(r"\w+", (unit * 3).lower())[1:-1]} <= _VALUES
        lines = (unit * 2).split("\n")[1:-1]  # whole ones
        rows = bool(lines) and (_ROW.search(unit) or all(map(_RECORD.fullmatch, lines)))
        return self._in_code or numbers or values or bool(rows)
