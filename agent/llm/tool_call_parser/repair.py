"""Reads broken JSON. What was cut off in the middle is refused, not repaired.

A library closes whatever is open: it would complete `rm -rf /workspace/buil`.
"""

import ast
import json
import math
import re
from typing import Any

LONGEST = 65536  # the repair library takes seconds beyond it
_CLOSED = re.compile(r"""["'\]}]\s*\Z|\b(?:true|false|null|True|False|None)\s*\Z""")
# Possessive, so that a string of a megabyte that has no end costs one pass.
_STRINGS = {
    '"': re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]++|\\.)*+'", re.DOTALL),
}
_MARK = re.compile(r"""[{}\[\]()"']""")


def arguments_of(text: str) -> dict[str, Any] | None:
    """The arguments of a call as an object, or None when they cannot be read.

    Empty text is an empty object: some servers send that for a tool without arguments.
    """
    value = value_of(text) if text.strip() else {}
    if isinstance(value, str):  # encoded twice
        value = value_of(value)
    if not isinstance(value, dict):
        return None
    return {str(name): encodable(argument) for name, argument in value.items()}


def encodable(value: Any) -> Any:
    """The value without lone surrogates, NaN and infinities: Python reads them, other programs do not."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return [encodable(item) for item in value] if isinstance(value, list) else value


def value_of(text: str) -> Any:
    """The JSON value in `text`, repaired if need be; None where there is none."""
    text = text.strip()
    for read in (json.loads, single_braces, ast.literal_eval, repaired):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(value, dict | list | str):
            return value
    return None


def single_braces(text: str) -> Any:
    """Doubled braces, as prompt templates write them."""
    if not text.startswith("{{"):
        raise ValueError
    if text.endswith("}}"):
        try:
            return json.loads(text[1:-1])
        except ValueError:
            pass
    return json.loads(text.replace("{{", "{").replace("}}", "}"))


def repaired(text: str) -> Any:
    if len(text) > LONGEST or text[:1] not in ("{", "[") or not is_complete(text):
        raise ValueError
    import json_repair  # seldom needed, and slow to load

    return json_repair.loads(text, skip_json_loads=True)


def is_complete(text: str) -> bool:
    """Whether the text ends where a value may end, outside every string."""
    return bool(_CLOSED.search(text)) and not inside_string(text)


def inside_string(text: str) -> bool:
    """Whether the text ends inside a quoted string."""
    quote = '"' if '"' in text else "'"
    place = text.find(quote)
    while place >= 0:
        string = _STRINGS[quote].match(text, place)
        if string is None:
            return True
        place = text.find(quote, string.end())
    return False


def value_end(text: str, start: int) -> int | None:
    """Where the JSON-like value at `start` ends (brackets balanced outside strings), or None yet."""
    depth, place = 0, start
    while mark := _MARK.search(text, place):
        place, letter = mark.end(), mark[0]
        if letter in _STRINGS:
            if letter == "'" and not opens_string(text, mark.start()):
                continue
            string = _STRINGS[letter].match(text, mark.start())
            if string is None:
                return None
            place = string.end()
        elif letter in "{[(":
            depth += 1
        else:
            depth -= 1
            if depth <= 0:
                return place
    return None


def opens_string(text: str, place: int) -> bool:
    """A single quote opens a string only behind what may stand before a value or key."""
    before = text[max(0, place - 64) : place].rstrip()[-1:]
    return before in ("{", "[", "(", ",", ":", "=")
