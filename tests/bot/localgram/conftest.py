"""A server, a raw client of it, and small files."""

import json
import struct
import zlib
from collections.abc import AsyncIterator

import aiohttp
import pytest

from fakes.localgram import Localgram, Person

TOKEN = "777:local-gram_Token"
Result = dict[str, object]


class Raw:
    """Calls methods and gives back the envelope, refused or not."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self.http = http
        self.url = url

    async def __call__(self, method: str, token: str = TOKEN, /, **fields: object) -> Result:
        form = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in fields.items()
        }
        async with self.http.post(f"{self.url}/bot{token}/{method}", data=form) as response:
            body: Result = await response.json()
            assert response.status == (200 if body["ok"] else body["error_code"])
            return body

    async def ok(self, method: str, **fields: object) -> object:
        body = await self(method, **fields)
        assert body["ok"], body
        return body["result"]

    async def refusal(self, method: str, **fields: object) -> str:
        body = await self(method, **fields)
        assert not body["ok"], body
        return str(body["description"])


@pytest.fixture
async def gram() -> AsyncIterator[Localgram]:
    async with Localgram(TOKEN) as running:
        yield running


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def raw(http: aiohttp.ClientSession, gram: Localgram) -> Raw:
    return Raw(http, gram.url)


@pytest.fixture
def alice(gram: Localgram) -> Person:
    return gram.user("Alice", id=5, started=True)


def png(width: int = 4, height: int = 3) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        sum_ = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + sum_

    rows = zlib.compress((b"\0" + b"\x20\x80\xa0" * width) * height)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
