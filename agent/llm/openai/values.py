"""Reads JSON of unknown shape: a value of the wrong type counts as missing."""

from collections.abc import Mapping, Sequence
from typing import Any

MOST = 1 << 31  # tokens, milliseconds, a status: a database can hold sums of such numbers


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def text(value: Any) -> str:
    """A string, or the joined text parts of a list, without lone surrogates."""
    if value and isinstance(value, list):
        parts = (mapping(part).get("text") for part in value)
        value = "".join(part for part in parts if isinstance(part, str))
    if not value or not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


class TextStream:
    """Reads pieces of text in order, and joins a sign that was cut between its UTF-16 units."""

    _half = ""

    def read(self, value: Any) -> str:
        if isinstance(value, str) and value and (self._half or not value.isascii()):
            if "\udc00" <= value[0] <= "\udfff":
                value = (self._half + value).encode("utf-16", "surrogatepass")
                value = value.decode("utf-16", "surrogatepass")
            self._half = value[-1] if "\ud800" <= value[-1] <= "\udbff" else ""
            value = value.removesuffix(self._half)
        return text(value)


def whole(value: Any) -> int | None:
    """Read a count from 0 to `MOST`, also one that is written as 12.0; None for anything else."""
    if type(value) is int:
        return value if 0 <= value <= MOST else None
    found = number(value)
    return int(found) if found is not None and found <= MOST and found.is_integer() else None


def number(value: Any) -> float | None:
    """A number from 0 to 1e15."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e15:
        return None
    return float(value)
