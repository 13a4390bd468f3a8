"""A model server of raw TCP whose answer is one kind of bytes, as many as are taken."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass

from backend.protocol import Endpoint

EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
PACKED = gzip.compress(b"data: x\n" * 500_000, mtime=0)  # of no time whose bytes could end a line
CALLS = b",".join(b'{"id":"%d"}' % n for n in range(40_000))

# Head, how the body begins, and what is repeated.
FLOODS: dict[str, tuple[bytes, bytes, bytes]] = {
    "a line without an end": (EVENTS, b"data: ", b"x" * 65536),
    "a text without an end": (EVENTS, b'data: {"choices":[{"delta":{"content":"', b"x" * 65536),
    "lists in an event": (EVENTS, b"data: [", b"[]," * 20_000),
    "lines that are no JSON": (EVENTS, b"", b"data: x\n" * 8192),
    "lines of another field": (EVENTS, b"", b"x: y\n" * 13_000),
    "lines without a field": (EVENTS, b"", b"junk\n" * 13_000),
    "empty lines of an event": (EVENTS, b"", b"data:\n" * 10_000),
    "calls": (EVENTS, b"", b'data: {"choices":[{"delta":{"tool_calls":[' + CALLS + b"]}}]}\n\n"),
    "lists": (WHOLE, b"[", b"[]," * 20_000),
    "floats": (WHOLE, b"[", b"1e1," * 20_000),
    "compressed": (EVENTS + b"Content-Encoding: gzip\r\n", b"", PACKED),
}  # fmt: skip


@dataclass
class FloodingModel:
    """Sends at most `most` bytes of a flood; `sent` are those that the system has taken."""

    flood: str
    most: int = 24_000_000
    url: str = ""
    sent: int = 0

    async def endpoint(self) -> Endpoint:
        return Endpoint(url=self.url, n_ctx=8192, model="flood")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, start, piece = FLOODS[self.flood]
        with closing(writer), suppress(OSError, asyncio.CancelledError):
            asked = await reader.readuntil(b"\r\n\r\n")
            if b"/completions " not in asked:
                writer.write(b"HTTP/1.1 404 No\r\nConnection: close\r\n\r\n")
                return
            writer.write(head + b"Connection: close\r\n\r\n" + start)
            while self.sent < self.most:
                writer.write(piece)
                await writer.drain()
                self.sent += len(piece)


@asynccontextmanager
async def flooding(flood: str) -> AsyncIterator[FloodingModel]:
    model = FloodingModel(flood)
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield model
