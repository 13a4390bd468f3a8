"""The proxy of one call: HTTP(S) from its empty network to the hosts that the owner allows.

It takes CONNECT and absolute http:// addresses, resolves a name once, connects to a public address of
it, adds no credentials, and bounds connections, bytes and time. One server may answer for many names,
so a request's Host header and the name in a TLS handshake must be that of the host that was asked for.
Every request that can be seen, also in a tunnel, is permitted by itself, and searched with its headers
and body for what must not leave. Of TLS only the host is seen, unless it is terminated (TunnelEnd).
"""

import asyncio
import io
import ipaddress
import logging
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import urlsplit

from agent.aio import BackgroundTasks
from agent.errors import ToolError
from agent.leaks import Leak, LeakDetector
from agent.sandbox.hosts import TUNNEL, HostRefused, HostRequest, Hosts, Permit, WholeWeb
from agent.sandbox.observer import Observer

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 64  # of one call, with two descriptors each; a service may have 1,024
MOST_BYTES = 256 << 20  # of one call, both directions
MOST_REFUSED = 64  # hosts of one call whose refusal is told to the observer
HEAD_BYTES = 32 << 10
HEAD_SECONDS = 15
CONNECT_SECONDS = 15
IDLE_SECONDS = 60
HELD_SECONDS = 0.2  # for which the beginning of a secret waits for its rest
PIECE = 1 << 16
CLOSE_SECONDS = 5
RETRY_SECONDS = 0.2  # after a connection that could not be accepted
DROPPED = (b"host", b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive")
TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # RFC 9110
REQUEST_LINE = re.compile(rb"(" + TOKEN + rb") ([!-~]+) HTTP/1\.[01]")
HEADER = re.compile(rb"(" + TOKEN + rb"):[^\r\n\0]*")
TLS_HANDSHAKE = 22
MOST_PERMITTED = 1000  # requests that are remembered


async def unbounded(count: int) -> None:
    """The `sends` of an Outflow without a budget."""


@dataclass(frozen=True, slots=True)
class FoundLeak:
    """A leak in a text that is about to be sent to `place`, "name:port"."""

    place: str
    text: str
    leak: Leak


async def refused(found: FoundLeak) -> None:
    raise ToolError(f"It holds {found.leak.what}.")


@dataclass(frozen=True, slots=True)
class Outflow:
    """The checks on what leaves the sandbox: `sends` is awaited with a number of bytes before they are sent,
    `found` when `leaks` has found something in readable ones. Either raises ToolError where they may not leave."""

    sends: Callable[[int], Awaitable[None]] = unbounded
    leaks: LeakDetector = field(default_factory=LeakDetector)
    found: Callable[[FoundLeak], Awaitable[None]] = refused


class TunnelEnd(Protocol):
    """Terminates the TLS of tunnels to some hosts (agent.mcp.tls_termination)."""

    def ends(self, host: str, port: int) -> bool: ...

    async def connect(
        self, proxy: "EgressProxy", host: str, port: int, addresses: Sequence[str]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to what ends the TLS in place of the host; each request in it is permitted by itself."""
        ...


@dataclass(slots=True)
class EgressProxy:
    """The proxy of one call. `reached` collects the hosts ("name:port") that it connected to; `program_at` finds the
    program in the sandbox by the port that it connects from; `waiting` is entered while an owner may be asked."""

    hosts: Hosts | WholeWeb
    permit: Permit
    program_at: Callable[[int], str] = lambda port: ""
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    observer: Observer = field(default_factory=Observer)
    outflow: Outflow = field(default_factory=Outflow)
    tls: TunnelEnd | None = None
    refused: set[str] = field(default_factory=set)  # hosts whose refusal the observer was told
    reached: set[str] = field(default_factory=set)
    permitted: set[HostRequest] = field(default_factory=set)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    passed: int = 0  # bytes

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection from the sandbox."""
        name = ""
        async with closing(writer):
            try:
                async with asyncio.timeout(HEAD_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                host, port, request = parse_request(head)
                name = f"{host}:{port}"
                addresses = await self.hosts.addresses(host, port)
                client = writer.get_extra_info("peername")[1]
                tls = self.tls if self.tls and not request and self.tls.ends(host, port) else None
                if not tls:
                    await self.allow(host, port, request, client)
                async with asyncio.timeout(CONNECT_SECONDS):
                    host_reader, host_writer = await (
                        tls.connect(self, host, port, addresses)
                        if tls
                        else asyncio.open_connection(addresses[0], port)
                    )
                async with closing(host_writer), asyncio.TaskGroup() as both:
                    if not request:
                        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    both.create_task(self.receive(host_reader, writer))
                    if not request:
                        request = await tunnel_start(reader, host, port)
                        if REQUEST_LINE.match(request):
                            await self.allow(host, port, request, client)
                    await self.send(name, request, reader, host_writer)
            except* (HostRefused, ToolError) as errors:
                writer.write(refusal(str(errors.exceptions[0]), 403))
                await self.refuse(name, str(errors.exceptions[0]))
            except* (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                writer.write(refusal("The host did not answer.", 502))

    async def allow(self, host: str, port: int, head: bytes, client: int) -> None:
        """Permit a request, or a tunnel where `head` is no request: one after another and each once, so that
        nobody is asked about the same one twice. `client` is the port from which it comes."""
        line = REQUEST_LINE.match(head)
        method, target = (line[1].decode(), line[2].decode()) if line else (TUNNEL, "")
        request = self.hosts.marked(HostRequest(method, host, port, target))
        async with self.asking:
            if request in self.permitted:
                return
            program = await asyncio.to_thread(self.program_at, client)
            with self.waiting():
                await self.permit(replace(request, program=program))
            if len(self.permitted) >= MOST_PERMITTED:
                self.permitted.clear()
            if request.place not in self.reached:
                await self.observer.connection(request.place)
            self.permitted.add(request)
            self.reached.add(request.place)
            log.info("connected to %s", request.place)

    async def refuse(self, place: str, why: str) -> None:
        """Tell the observer that something was refused, once for each host."""
        log.info("refused: %s", why)
        if place and place not in self.refused and len(self.refused) < MOST_REFUSED:
            self.refused.add(place)
            with suppress(ToolError):  # it needs no record, as nothing was done
                await self.observer.connection(place, why)

    async def send(
        self, place: str, begin: bytes, source: asyncio.StreamReader, host: asyncio.StreamWriter
    ) -> None:
        """Pass on what a client sends, `begin` first. What may be the start of a secret waits HELD_SECONDS
        for the rest."""
        seen = begin[:1] != bytes([TLS_HANDSHAKE])
        stream, piece = self.outflow.leaks.stream(), begin
        while self.passed < MOST_BYTES:
            leaving = stream.feed_bytes(piece) if seen else piece
            if stream.leak:
                text = stream.held.decode("utf-8", "replace")
                with self.waiting():
                    await self.outflow.found(FoundLeak(place, text, stream.leak))
                leaving = stream.allowed()
            await self.leave(leaving, host)
            try:
                async with asyncio.timeout(HELD_SECONDS if stream.held else IDLE_SECONDS):
                    piece = await source.read(PIECE)
            except TimeoutError:
                if not stream.held:
                    raise
                await self.leave(stream.rest(), host)
                piece = b""
                continue
            if not piece:
                break
        await self.leave(stream.rest(), host)
        end(host)

    async def leave(self, raw: bytes, host: asyncio.StreamWriter) -> None:
        if raw:
            self.passed += len(raw)
            with self.waiting():
                await self.outflow.sends(len(raw))
            host.write(raw)
            await host.drain()

    async def receive(self, host: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Pass on what the host answers."""
        while self.passed < MOST_BYTES:
            async with asyncio.timeout(IDLE_SECONDS):
                piece = await host.read(PIECE)
            if not piece:
                break
            self.passed += len(piece)
            sink.write(piece)
            await sink.drain()
        end(sink)


def end(sink: asyncio.StreamWriter) -> None:
    if sink.can_write_eof():
        sink.write_eof()


def parse_request(head: bytes) -> tuple[str, int, bytes]:
    """Host, port, and for plain HTTP the request to send on; HostRefused for anything else."""
    try:
        method, address, _ = head.partition(b"\r\n")[0].decode("ascii").split(" ")
        tunnel = method == TUNNEL
        parts = urlsplit(f"//{address}" if tunnel else address)
        host, port = parts.hostname, parts.port or (443 if tunnel else 80)
    except ValueError:
        raise HostRefused("This proxy takes CONNECT and http:// addresses.") from None
    if not host or parts.scheme != ("" if tunnel else "http"):
        raise HostRefused("This proxy takes CONNECT and http:// addresses.")
    if tunnel:
        return host, port, b""
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return host, port, plain_request(head, path.encode(), host, port)


def plain_request(head: bytes, path: bytes, host: str, port: int) -> bytes:
    """A request for this host only; HostRefused where a server could read it differently."""
    line, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    named = [HEADER.fullmatch(header) for header in headers]
    if not REQUEST_LINE.fullmatch(line) or not all(named):
        raise HostRefused("This request is not plain HTTP/1.1.")
    method, _, version = line.split(b" ")
    name = f"[{host}]" if ":" in host else host
    # Connection: close, because a second request might name another host.
    kept = [
        b" ".join([method, path, version]),
        b"Host: " + (name if port == 80 else f"{name}:{port}").encode(),
        b"Connection: close",
        *(found[0] for found in named if found and found[1].lower() not in DROPPED),
    ]
    return b"\r\n".join(kept) + b"\r\n\r\n"


async def tunnel_start(reader: asyncio.StreamReader, host: str, port: int) -> bytes:
    """What the client of a tunnel sends first; HostRefused where it is HTTP or TLS for another host, or may be."""
    start = b""
    while len(start) < HEAD_BYTES:
        async with asyncio.timeout(IDLE_SECONDS):
            piece = await reader.read(HEAD_BYTES)
        if not piece and not start:
            return start
        if not piece:
            break
        start += piece
        if start[0] == TLS_HANDSHAKE:
            end = 5 + int.from_bytes(start[3:5])
            if len(start) < max(end, 6):
                continue
            name = server_name(start[5:end])
            if name != host.rstrip(".").lower() and (name or not is_address(host)):
                raise HostRefused(f"The TLS handshake does not name {host}.")
            return start
        text = start.lstrip(b"\r\n\t ")  # servers skip blanks before a request
        line, newline, _ = text.partition(b"\n")
        if not re.fullmatch(rb"[ -~\t\r]*", line):
            if b" HTTP/" in line.upper():  # a lenient server would take it for a request
                raise HostRefused("This request is not plain HTTP/1.1.")
            return start
        if not newline or (b" HTTP/" in line.upper() and b"\r\n\r\n" not in text):
            continue
        if b" HTTP/" not in line.upper():
            return start
        head, end_of_head, body = text.partition(b"\r\n\r\n")
        if not REQUEST_LINE.fullmatch(line.rstrip(b"\r")):
            raise HostRefused("This request is not plain HTTP/1.1.")
        path = line.split(b" ")[1]
        if not path.startswith(b"/"):
            raise HostRefused("A request in a tunnel must name a path, not an address.")
        return plain_request(head + end_of_head, path, host, port) + body
    raise HostRefused("A tunnel must begin with a whole TLS handshake or request.")


def server_name(hello: bytes) -> str:
    """The host that a TLS ClientHello names (RFC 8446, 6066), empty without one; HostRefused for anything
    else, or a ClientHello in several records."""
    stream = io.BytesIO(hello)

    def vector(width: int) -> bytes:
        length = int.from_bytes(stream.read(width))
        piece = stream.read(length)
        if len(piece) < length:
            raise HostRefused("The TLS handshake cannot be read.")
        return piece

    if stream.read(1) != b"\x01":
        raise HostRefused("The TLS handshake cannot be read.")
    stream = io.BytesIO(vector(3))
    stream.read(34)  # version and random
    vector(1), vector(2), vector(1)  # session, cipher suites, compression
    stream = io.BytesIO(vector(2))
    while kind := stream.read(2):
        content = vector(2)
        if kind == b"\0\0":  # length of the list, kind of name, length of the name
            return content[5:].decode("ascii", "replace").lower()
    return ""


def is_address(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def refusal(why: str, status: int) -> bytes:
    text = f"{why}\n".encode()
    head = f"HTTP/1.1 {status} Refused\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    return head.encode() + text


@asynccontextmanager
async def closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Flush and close within CLOSE_SECONDS; abort where the block raises."""
    try:
        yield
        writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await writer.wait_closed()
    finally:
        writer.transport.abort()


@asynccontextmanager
async def serve_proxy(listener: int, proxy: EgressProxy) -> AsyncIterator[None]:
    """Serve on a listening descriptor; it and all connections are closed on leaving."""
    with socket.socket(fileno=listener) as sock:
        sock.setblocking(False)
        async with BackgroundTasks() as tasks:
            work = accept(sock, proxy.serve, MOST_CONNECTIONS, tasks)
            tasks.start(work, "the proxy of a sandbox")
            yield


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Answers one connection from a sandbox until that is closed."""


async def accept(sock: socket.socket, answer: Serve, most: int, tasks: BackgroundTasks) -> None:
    """Answer connections, at most `most` at once; more wait in the kernel's queue."""
    free = asyncio.Semaphore(most)

    async def serve(connection: socket.socket) -> None:
        try:
            streams = await asyncio.open_connection(sock=connection, limit=HEAD_BYTES)
            await answer(*streams)
        except OSError as error:
            log.info("a connection broke: %s", error)
        finally:
            free.release()

    while True:
        await free.acquire()
        try:
            connection, _ = await asyncio.get_running_loop().sock_accept(sock)
        except OSError as error:  # out of descriptors, or the client is gone
            log.warning("a connection of a sandbox was not accepted: %s", error)
            free.release()
            await asyncio.sleep(RETRY_SECONDS)
        else:
            tasks.start(serve(connection), "a connection of a sandbox")
