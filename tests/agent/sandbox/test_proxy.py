"""What the proxy lets through of a connection: requests for the host that was asked for, and no more."""

import asyncio
import os
import resource
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.sandbox.hosts import HostRequest
from agent.sandbox.proxy import MOST_CONNECTIONS, EgressProxy, serve_proxy
from fakes.patience import SECONDS, soon
from fakes.web_server import Site


async def permit(request: HostRequest) -> None:
    pass


@asynccontextmanager
async def proxy_for(web: Site) -> AsyncIterator[int]:
    """The port of a proxy that reaches this site alone."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = int(listener.getsockname()[1])
    async with serve_proxy(listener.detach(), EgressProxy(web.hosts(), permit)):
        yield port


async def answer(port: int, *pieces: bytes, eof: bool = False) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    if eof:
        writer.write_eof()
    async with asyncio.timeout(SECONDS):
        received = await reader.read()
    writer.close()
    return received


@pytest.mark.parametrize(
    "head",
    [
        "GET http://{host}/x HTTP/1.1\r\nHost: evil.example",
        "GET http://{host}/x HTTP/1.1\r\nHost: a\r\nhOST: b",
        "GET http://u:p@{host}/x HTTP/1.0\r\nHost: evil.example",
        "GET http://{host}/x HTTP/1.1",
    ],
)
async def test_the_host_header_is_that_of_the_address(web: Site, head: str) -> None:
    async with proxy_for(web) as port:
        received = await answer(port, f"{head.format(host=web.host)}\r\n\r\n".encode())
    assert received.endswith(b"hello")
    assert web.seen == [f"{web.host}/x"]


@pytest.mark.parametrize(
    "head",
    [
        "GET http://{host}/x HTTP/1.1\r\nA: b\r\n Host: evil",  # folded
        "GET http://{host}/x HTTP/1.1\r\nA: b\nHost: evil",  # a bare line feed
        "GET http://{host}/x HTTP/1.1\r\nHost : evil",
        "GET http://{host}/x\nHost:evil HTTP/1.1",
        "GET http://{host}/x HTTP/2.0",
        "GET http://{host}/x HTTP/1.1\r\nA: b\r\n\0Host: evil",
    ],
)
async def test_heads_that_another_server_could_read_otherwise(web: Site, head: str) -> None:
    async with proxy_for(web) as port:
        received = await answer(port, f"{head.format(host=web.host)}\r\n\r\n".encode())
    assert received.startswith(b"HTTP/1.1 403 ")
    assert web.seen == []


@pytest.mark.parametrize("before", [b"", b"\r\n \t"])
@pytest.mark.parametrize("pieces", [1, 7])
async def test_http_in_a_tunnel_is_for_that_host(web: Site, before: bytes, pieces: int) -> None:
    request = before + b"GET /t HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    step = -(-len(request) // pieces)
    cut = [request[at : at + step] for at in range(0, len(request), step)]
    async with proxy_for(web) as port:
        received = await answer(port, f"CONNECT {web.host} HTTP/1.1\r\n\r\n".encode(), *cut)
    assert received.endswith(b"hello")
    assert web.seen == [f"{web.host}/t"]


@pytest.mark.parametrize("target", ["http://evil.example/t", "*"])
async def test_a_request_in_a_tunnel_names_a_path(web: Site, target: str) -> None:
    request = f"GET {target} HTTP/1.1\r\n\r\n".encode()
    async with proxy_for(web) as port:
        received = await answer(port, f"CONNECT {web.host} HTTP/1.1\r\n\r\n".encode(), request)
    assert b"HTTP/1.1 403 " in received
    assert web.seen == []


def hello_for(name: str | None) -> bytes:
    """The first bytes of a TLS client that asks for that name."""
    context = ssl.create_default_context()
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize(
    ("hello", "through"),
    [
        (hello_for("localhost"), True),
        (hello_for("evil.example"), False),
        (hello_for(None), False),
        (hello_for("localhost")[:60], False),
        (b"\x16\x03\x01\x00\x05hello", False),
        (b"\x16\x03\x01\x00\x00", False),
        (b"\x16\x03\x01\xff\xff" + bytes(40_000), False),
        (b"SSH-2.0-x\r\n", True),
        (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", True),  # a binary protocol
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", False),
        (b"GET / HTTP/1.0\x00\r\nHost: evil.example\r\n\r\n", False),
    ],
    ids=map(str, range(11)),  # a ClientHello is random: each worker must name the cases alike
)
async def test_what_a_tunnel_may_begin_with(hello: bytes, through: bool) -> None:
    reached = asyncio.Queue[bytes]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.put_nowait(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "localhost", 0)
    web = Site(server.sockets[0].getsockname()[1])
    async with server, proxy_for(web) as port:
        await answer(port, f"CONNECT {web.host} HTTP/1.1\r\n\r\n".encode(), hello, eof=True)
        async with asyncio.timeout(SECONDS):
            assert await reached.get() == (hello if through else b"")


async def test_many_connections_take_few_descriptors(web: Site) -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    async with proxy_for(web) as port:
        before = opened()
        clients = [
            socket.create_connection(("127.0.0.1", port)) for _ in range(MOST_CONNECTIONS + 30)
        ]
        for client in clients:
            client.setblocking(False)
        await soon(lambda: opened() - before - len(clients) >= MOST_CONNECTIONS)
        for _ in range(50):
            await asyncio.sleep(0)
        assert opened() - before - len(clients) == MOST_CONNECTIONS
        for client in clients:
            client.close()
        request = f"GET http://{web.host}/x HTTP/1.1\r\n\r\n".encode()
        assert (await answer(port, request)).endswith(b"hello")


async def test_without_a_free_descriptor_it_waits(web: Site) -> None:
    request = f"GET http://{web.host}/x HTTP/1.1\r\n\r\n".encode()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with proxy_for(web) as port:
        with socket.create_connection(("127.0.0.1", port)) as client:
            highest = max(int(p.name) for p in Path("/proc/self/fd").iterdir())
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            try:
                for _ in range(50):
                    await asyncio.sleep(0)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert highest < soft
            client.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(client, request)
            async with asyncio.timeout(SECONDS):
                assert (await loop.sock_recv(client, 4096)).startswith(b"HTTP/1.1 200")
