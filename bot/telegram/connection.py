"""How calls reach the Bot API server: python-telegram-bot's request over aiohttp.

Its own goes through httpx, which costs six times the CPU time of a call (1.2 against
0.2 ms on a kept connection, measured with httpx 0.28 and aiohttp 3.14).
"""

import asyncio
import re
import ssl
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from typing import Any, BinaryIO
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi
from aiohttp.abc import AbstractStreamWriter
from telegram._utils.defaultvalue import DefaultValue
from telegram._utils.types import ODVInput
from telegram.error import NetworkError, TimedOut
from telegram.request import BaseRequest, RequestData

from agent.aio import no_answer

CONNECT_SECONDS = 5.0
WRITE_SECONDS = 20.0  # for each piece of an upload
FREE_SECONDS = 30.0  # for a connection to become free
KEPT_SECONDS = 5.0  # a connection unused for longer may be closed at the other end
CONNECTIONS = 64
PIECE = 1 << 16  # bytes
LONGEST_ANSWER = 32 << 20  # bytes; of 100 updates and of calls, far more than there is
URLENCODED = {"Content-Type": "application/x-www-form-urlencoded"}

# Raised before a request has left this machine.
NO_URL = (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)
UNSENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, *NO_URL)

DEFAULT = BaseRequest.DEFAULT_NONE


class TooLong(NetworkError):
    """An answer has more bytes than allowed."""


class Connection(BaseRequest):
    """python-telegram-bot's BaseRequest over aiohttp.

    `root` is the server's URL; an answer may take `read_seconds` and have `longest` bytes (TooLong).
    """

    def __init__(self, root: str, read_seconds: float, longest: int = LONGEST_ANSWER) -> None:
        self._root = root
        self._read_seconds = read_seconds
        self._longest = longest
        self._session: aiohttp.ClientSession | None = None
        self._opened = asyncio.Event()

    @property
    def read_timeout(self) -> float | None:
        return self._read_seconds

    async def initialize(self) -> None:
        if self._session is None or self._session.closed:
            parts, proxies = urlsplit(self._root), getproxies()  # as the environment names them
            bypassed = proxy_bypass(parts.hostname or "")
            trust = certificates() if self._root.startswith("https:") else True
            connector = aiohttp.TCPConnector(
                limit=CONNECTIONS, keepalive_timeout=KEPT_SECONDS, ssl=trust
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self.USER_AGENT},
                proxy=None if bypassed else proxies.get(parts.scheme) or proxies.get("all"),
            )
        self._opened.set()

    async def shutdown(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: ODVInput[float] = DEFAULT,
        write_timeout: ODVInput[float] = DEFAULT,
        connect_timeout: ODVInput[float] = DEFAULT,
        pool_timeout: ODVInput[float] = DEFAULT,
    ) -> tuple[int, bytes]:
        # A turn that is resumed may ask for its files before we are connected.
        await self._opened.wait()
        assert self._session
        timeout = aiohttp.ClientTimeout(
            total=None,
            connect=given(pool_timeout, FREE_SECONDS),
            sock_connect=given(connect_timeout, CONNECT_SECONDS),
            sock_read=given(read_timeout, self._read_seconds),
        )
        body, headers = request_body(request_data, given(write_timeout, WRITE_SECONDS))
        try:
            async with self._session.request(
                method, url, data=body, headers=headers, timeout=timeout, allow_redirects=False
            ) as answer:
                return answer.status, await bounded(answer, self._longest)
        except TimeoutError as error:
            raise TimedOut from error
        except (aiohttp.ClientError, OSError) as error:
            raise NetworkError(reason(error)) from error


async def bounded(answer: aiohttp.ClientResponse, longest: int) -> bytes:
    """Read and decompress a body of at most `longest` bytes. Raises TooLong."""
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > longest:
            raise TooLong(f"its answer has more than {longest >> 20} MiB")
    return bytes(body)


class Upload(aiohttp.payload.Payload):
    """A file's content, read anew for each request; the file stays its owner's.

    No piece may take longer than `seconds` to be taken.
    """

    _value: BinaryIO

    def __init__(self, file: BinaryIO, content_type: str, seconds: float | None) -> None:
        super().__init__(file, content_type=content_type)
        self._seconds = seconds
        self._size = file.seek(0, 2)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        self._value.seek(0)
        return self._value.read().decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        self._value.seek(0)
        while piece := await asyncio.to_thread(self._value.read, PIECE):
            async with asyncio.timeout(self._seconds):
                await writer.write(piece)


def request_body(
    request: RequestData | None, piece_seconds: float | None
) -> tuple[aiohttp.FormData | bytes | None, Mapping[str, str]]:
    """The body of a request, and the headers that go with it."""
    if request is None:
        return None, {}
    files: Mapping[str, tuple[str, Any, str]] = request.multipart_data or {}
    if not files:  # as FormData would write it, at a third of its cost
        return urlencode(request.json_parameters).encode(), URLENCODED
    form = aiohttp.FormData(request.json_parameters, quote_fields=False)
    for field, (name, content, kind) in files.items():
        file = BytesIO(content) if isinstance(content, bytes) else content
        one_line = re.sub(r"[\r\n\0]", "_", name)
        form.add_field(field, Upload(file, kind, piece_seconds), filename=one_line)
    return form, {}


def given(seconds: ODVInput[float], usual: float) -> float | None:
    return usual if isinstance(seconds, DefaultValue) else seconds


@cache
def certificates() -> ssl.SSLContext:
    """The machine's certificate authorities and, where it has none, Mozilla's."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def reason(error: Exception) -> str:
    """Describe an error for a person, without the URL, which holds the token."""
    if isinstance(error, NO_URL):
        return "its URL is not valid"
    return no_answer(error)
