"""A text that has come to repeat its last words without end, as small models do."""

import math

LONGEST = 200  # characters of the words that are repeated
LEAST = 8  # repetitions
LENGTH = 600  # characters of all of them together
SHORT, SHORT_LENGTH = 8, 2000  # a line of dashes is no circle yet
STEP = 100  # characters between two looks


class TextLoopDetector:
    """Is fed with a text as it comes."""

    def __init__(self) -> None:
        self._tail = ""
        self._new = 0

    def feed(self, piece: str) -> bool:
        """Whether it goes in a circle by now."""
        self._tail = (self._tail + piece)[-SHORT_LENGTH:]
        self._new += len(piece)
        if self._new < STEP:
            return False
        self._new = 0
        return any(self._repeats(length) for length in range(1, LONGEST + 1))

    def _repeats(self, length: int) -> bool:
        wanted = SHORT_LENGTH if length < SHORT else LENGTH
        count = max(LEAST, math.ceil(wanted / length))
        unit = self._tail[-length:]
        return bool(unit.strip()) and self._tail.endswith(unit * count)
