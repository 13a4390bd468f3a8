"""JSON as nobody should send it: fields missing, of other types, huge, negative, numbers as strings."""

import copy
import random
from collections.abc import Iterator
from typing import Any

VALUES: list[Any] = [
    None, True, 0, -1, 10**12, -(10**12), 10**18, 10**30, 1e308, 0.5,
    "", "7", "-1", "x" * 20_000, "\x00\u202e", "\ud800", [], [[]], [None], {}, {"id": {}}, ["a", 1],
]  # fmt: skip


def mutated(value: Any, chance: random.Random) -> Any:
    """The same JSON with one field or two missing or of another value."""
    value = copy.deepcopy(value)
    for _ in range(chance.choice((1, 1, 2))):
        places = list(_fields(value))
        if not places:
            return value
        holder, key = chance.choice(places)
        if chance.random() < 0.2:
            del holder[key]
        elif isinstance(holder[key], int) and chance.random() < 0.3:
            holder[key] = str(holder[key])
        else:
            holder[key] = copy.deepcopy(chance.choice(VALUES))
    return value


def _fields(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in nested JSON: what holds it, and its key."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _fields(value[key])
