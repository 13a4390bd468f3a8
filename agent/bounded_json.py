"""The JSON answer of a server that is not ours, with a bound."""

import json
from typing import Any

import aiohttp

LONGEST = 8 << 20  # bytes
MOST_VALUES = 500_000  # about 0.1 s on the event loop
PLAIN = {"Accept-Encoding": "identity"}  # a compressed answer could be a thousand times as much


async def bounded_json(answer: aiohttp.ClientResponse) -> Any:
    """The value. Raises ValueError for more than LONGEST bytes, and for what is no JSON, or too deep.

    The session has PLAIN as its headers, and `auto_decompress` off.
    """
    raw = bytearray()
    async for piece in answer.content.iter_any():
        raw += piece
        if len(raw) > LONGEST:
            raise ValueError(f"the answer has more than {LONGEST >> 20} MiB")
    return parsed_json(raw)


def parsed_json(raw: bytes | bytearray) -> Any:
    """The value. Raises ValueError for what is no JSON, is too deep, or has more than MOST_VALUES."""
    if sum(map(raw.count, b",:[{")) > MOST_VALUES:
        raise ValueError(f"the answer has more than {MOST_VALUES:,} values")
    try:
        return json.loads(raw)
    except RecursionError:
        raise ValueError("the answer is nested too deep") from None
