"""Reads the JSON answer of an untrusted server, up to a limit."""

import json
import re
from typing import Any

import aiohttp

LONGEST = 8 << 20  # bytes
MOST_VALUES = 500_000  # about 0.1 s on the event loop
MARKS = b",:[{"  # one for each value, about
STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
PLAIN = {"Accept-Encoding": "identity"}  # a compressed answer could grow a thousandfold


async def bounded_json(answer: aiohttp.ClientResponse) -> Any:
    """Read and parse a JSON body. Raises ValueError for more than LONGEST bytes, and as `parsed_json` does.

    The session must have PLAIN as its headers and `auto_decompress` off.
    """
    raw = bytearray()
    async for piece in answer.content.iter_any():
        raw += piece
        if len(raw) > LONGEST:
            raise ValueError(f"the answer has more than {LONGEST >> 20} MiB")
    return parsed_json(raw)


def parsed_json(raw: bytes | bytearray) -> Any:
    """Parse JSON. Raises ValueError if it is invalid, nested deeply, or has more than MOST_VALUES, for which marks in
    strings do not count: they are somebody's words."""
    bare = STRING.sub(b"", raw, 2 * MOST_VALUES) if marks_in(raw) > MOST_VALUES else b""
    if marks_in(bare) > MOST_VALUES:
        raise ValueError(f"the answer has more than {MOST_VALUES:,} values")
    try:
        return json.loads(raw)
    except RecursionError:
        raise ValueError("the answer is nested too deep") from None


def marks_in(raw: bytes | bytearray) -> int:
    return sum(map(raw.count, MARKS))
