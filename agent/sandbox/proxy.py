"""The proxy of one call: HTTP(S) from its empty network to the hosts that the owner allows.

It takes CONNECT and absolute http:// addresses, looks a name up once, connects to
a public address of it, adds no credentials and bounds bytes and time.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from agent.errors import ToolError
from agent.sandbox.hosts import HostRefused, Hosts, Permit

log = logging.getLogger(__name__)

MOST_BYTES = 256 << 20  # of one call, both directions
HEAD_BYTES = 32 << 10
HEAD_SECONDS = 15
CONNECT_SECONDS = 15
IDLE_SECONDS = 60
HOP_BY_HOP = (b"connection:", b"proxy-connection:", b"proxy-authorization:", b"keep-alive:")


@dataclass(slots=True)
class EgressProxy:
    """`reached` are the hosts ("name:port") that were connected to."""

    hosts: Hosts
    permit: Permit
    reached: set[str] = field(default_factory=set)
    bytes: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from the sandbox."""
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            host, port, forward = parse_request(head)
            host_reader, host_writer = await self.connect(host, port)
            try:
                if forward:
                    host_writer.write(forward)
                else:
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                async with asyncio.TaskGroup() as both:
                    both.create_task(self.relay(reader, host_writer))
                    both.create_task(self.relay(host_reader, writer))
            finally:
                host_writer.close()
        except (HostRefused, ToolError) as error:
            log.info("refused: %s", error)
            writer.write(refusal(str(error), 403))
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.write(refusal("The host did not answer.", 502))
        finally:
            writer.close()

    async def connect(
        self, host: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        addresses = await self.hosts.addresses(host, port)
        if (name := f"{host}:{port}") not in self.reached:
            await self.permit(name)
            self.reached.add(name)
            log.info("connected to %s", name)
        async with asyncio.timeout(CONNECT_SECONDS):
            return await asyncio.open_connection(addresses[0], port)

    async def relay(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while self.bytes < MOST_BYTES:
            async with asyncio.timeout(IDLE_SECONDS):
                piece = await source.read(1 << 16)
            if not piece:
                break
            self.bytes += len(piece)
            sink.write(piece)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()


def parse_request(head: bytes) -> tuple[str, int, bytes]:
    """Host, port, and for plain HTTP the request to send on; HostRefused for anything else."""
    line, _, rest = head.partition(b"\r\n")
    try:
        method, address, version = line.decode("ascii").split(" ")
        if method == "CONNECT":
            parts = urlsplit(f"//{address}")
            return str(parts.hostname), int(parts.port or 443), b""
        parts = urlsplit(address)
        port = parts.port or 80
    except ValueError:
        raise HostRefused("This proxy takes CONNECT and http:// addresses.") from None
    if parts.scheme != "http" or not parts.hostname:
        raise HostRefused("This proxy takes CONNECT and http:// addresses.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # One request per connection: the next one might name another host.
    first = f"{method} {path} {version}\r\nConnection: close\r\n".encode()
    headers = [h for h in rest.split(b"\r\n") if not h.lower().startswith(HOP_BY_HOP)]
    return parts.hostname, port, first + b"\r\n".join(headers)


def refusal(why: str, status: int) -> bytes:
    text = f"{why}\n".encode()
    head = f"HTTP/1.1 {status} Refused\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    return head.encode() + text


@asynccontextmanager
async def serve_proxy(listener: int, proxy: EgressProxy) -> AsyncIterator[None]:
    """Serve on a listening descriptor, which is closed on leaving with all connections."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await proxy.serve(reader, writer)
        except BaseExceptionGroup:
            log.info("a connection broke")
        finally:
            tasks.discard(task)

    sock = socket.socket(fileno=listener)
    server = await asyncio.start_server(serve, sock=sock, limit=HEAD_BYTES)
    try:
        yield
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
