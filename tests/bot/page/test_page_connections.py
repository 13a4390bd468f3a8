"""Connections without a session cannot keep the owner from the page, however many there are."""

import asyncio
from pathlib import Path

import pytest

from backend import connections
from fakes.page_state import fill_state
from fakes.patience import SECONDS

from .conftest import Visitor, served, visiting

UNFINISHED = [
    b"",
    b"G",
    b"GET / HTTP/1.1",
    b"GET / HTTP/1.1\r\n",
    b"GET / HTTP/1.1\r\nHost: ",
    b"GET /api/now HTTP/1.1\r\nHost: x\r\nX: ",
    b"POST /api/telegram HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
    b"POST /api/telegram HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    b"\x16\x03\x01\x02\x00\x01",
    b"GET /static/main.js HTTP/1.1\r\nHost: HOST\r\n\r\n",
]


BROKEN = [  # each with the key
    b"GET /?key=KEY\xc3\xa9 HTTP/1.1\r\nHost: HOST\r\n\r\n",
    b"GET /?key=KEY HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: a\r\nContent-Length: 1\r\n\r\n",
    b"GET /?key=KEY HTTP/9.x\r\n\r\n",
    b"GET /?key=KEY\r\n\r\n",
    b"GET  /?key=KEY  HTTP/1.1\r\n\r\n",
    b"G@T /?key=KEY HTTP/1.1\r\n\r\n",
    b"/?key=KEY\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: HOST\r\nReferer /?key=KEY\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: HOST\r\n: KEY\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: HOST\r\nContent-Length: KEY\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: HOST\r\nX: KEY\0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: HOST\r\n\r\nKEY",
    b"GET /" + b"a" * 9000 + b"?key=KEY HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: KEY\r\n" * 5000 + b"\r\n",
    b"POST /api/telegram HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\nKEY\r\n",
]


@pytest.mark.parametrize("sent", BROKEN, ids=range(len(BROKEN)))
async def test_what_is_no_request_leaves_nothing_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    async with served(tmp_path) as page:
        page.access.connections.seconds = 0.2
        key = page.access.key.encode()
        reader, writer = await opened(page.origin, sent.replace(b"KEY", key))
        async with asyncio.timeout(SECONDS):
            await end(reader)
        writer.close()
    assert page.access.key not in caplog.text
    assert "Traceback" not in caplog.text


async def opened(origin: str, sent: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = origin.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent.replace(b"HOST", origin.removeprefix("http://").encode()))
    return reader, writer


async def end(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(1 << 16):
            pass
    except ConnectionError:
        pass


@pytest.mark.parametrize("sent", UNFINISHED)
async def test_what_shows_no_session_ends_in_time(tmp_path: Path, sent: bytes) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    async with served(tmp_path) as page:
        page.access.connections.seconds = 0.2
        reader, writer = await opened(page.origin, sent)
        async with asyncio.timeout(SECONDS):
            await end(reader)
        writer.close()


async def test_hundreds_of_unfinished_requests_lock_nobody_out(visitor: Visitor) -> None:
    visitor.page.access.connections.seconds = 10 * SECONDS  # the crowd does not end by itself
    live = await visitor.get("/api/live")
    crowd = [await opened(visitor.page.origin, UNFINISHED[n % len(UNFINISHED)]) for n in range(300)]
    assert (await visitor.get("/api/now")).status == 200
    async with visiting(visitor.page) as late:
        assert (await late.get("/api/now")).status == 200
    assert len(visitor.page.access.connections._open) <= connections.MOST_OF_ADDRESS
    async with asyncio.timeout(SECONDS):
        await end(crowd[0][0])
        assert (await live.content.readline()).startswith(b"retry")
    for _, writer in crowd:
        writer.close()


async def test_a_connection_with_a_session_lasts(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    async with served(tmp_path) as page:
        page.access.connections.seconds = 2.0
        async with visiting(page) as visitor:
            reader, writer = await opened(page.origin, b"")
            async with asyncio.timeout(SECONDS):
                await end(reader)  # a connection that began later has ended
            writer.close()
            assert list(page.access.connections._open.values()) == [None]
            assert (await visitor.get("/api/now")).status == 200
