"""Reading JSON of unknown shape: what has the wrong type counts as not there."""

from collections.abc import Mapping, Sequence
from typing import Any

MOST = 1 << 31  # tokens, milliseconds, a status: sums of them stay numbers that a database holds


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def text(value: Any) -> str:
    """A string, or the joined text parts of a list; UTF-8 can hold the result."""
    if isinstance(value, list):
        parts = (mapping(part).get("text") for part in value)
        value = "".join(part for part in parts if isinstance(part, str))
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def whole(value: Any) -> int | None:
    """A count; one beyond `MOST` is none."""
    counts = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST
    return value if counts else None


def number(value: Any) -> float | None:
    """A finite number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1e15:
        return None
    return float(value)
