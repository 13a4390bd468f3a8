"""An answer from one of our isolated programs: a little JSON, and perhaps a descriptor."""

import asyncio
import json
import socket
from typing import Any

_SECONDS = 30
_LONGEST = 1 << 18


async def answered(reply: socket.socket) -> tuple[Any, int | None]:
    """The value and the descriptor; OSError as it happened over there."""
    loop = asyncio.get_running_loop()
    reply.setblocking(False)
    ready = loop.create_future()
    loop.add_reader(reply, lambda: None if ready.done() else ready.set_result(None))
    try:
        async with asyncio.timeout(_SECONDS):
            await ready
    finally:
        loop.remove_reader(reply)
    text, fds, _, _ = socket.recv_fds(reply, _LONGEST, 1)
    return _value(text), fds[0] if fds else None


def _value(text: bytes) -> Any:
    if not text:
        raise OSError("there was no answer")
    answer = json.loads(text)
    if "errno" in answer:
        raise OSError(answer["errno"], answer["strerror"])
    return answer.get("value")
