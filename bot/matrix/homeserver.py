"""Requests to the homeserver (https://spec.matrix.org/v1.16/client-server-api/), and their errors."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp

from agent.bounded_json import parsed_json

ANSWER_SECONDS = 30.0
UPLOAD_SECONDS = 120.0
LONGEST_ANSWER = 16 << 20  # bytes of JSON
CLIENT = "/_matrix/client/v3"
MEDIA = "/_matrix/client/v1/media"
MatrixJson = dict[str, Any]


def mapping(value: object) -> MatrixJson:
    """The value, if it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


def events_of(listed: object) -> list[MatrixJson]:
    """The events of a list that have the types which all events have."""
    return [
        event
        for event in (listed if isinstance(listed, list) else [])
        if isinstance(event, dict)
        and isinstance(event.get("type"), str)
        and all(isinstance(event.get(key, {}), dict) for key in ("content", "unsigned"))
    ]


class HomeserverError(Exception):
    """A request was not answered as it should be; `str` is for a person, without a secret.

    HomeserverError
    ├── HomeserverAway     no answer, or none of a homeserver: it may have been carried out
    ├── HomeserverBusy     429: it was not carried out
    └── HomeserverRefused  it never will be
    """


class HomeserverAway(HomeserverError):
    pass


class HomeserverBusy(HomeserverError):
    """The homeserver wants fewer requests. `after`: seconds until it may be asked again."""

    def __init__(self, after: float) -> None:
        super().__init__(f"the homeserver wants to be asked again in {after:.0f} s")
        self.after = after


class HomeserverRefused(HomeserverError):
    """The homeserver refused the request for good.

    `code` is the errcode, such as M_FORBIDDEN; `soft`: the same device may log in again.
    """

    def __init__(self, status: int, answer: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(answer.get("errcode", ""))
        self.soft = bool(answer.get("soft_logout"))
        super().__init__(f"{answer.get('error') or 'refused'} ({self.code or status})")


class Homeserver:
    """Makes requests to a homeserver, with the access token `token` once it is set."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.token = ""
        self._http: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def get(
        self, path: str, query: Mapping[str, str] | None = None, *, seconds: float = ANSWER_SECONDS
    ) -> MatrixJson:
        asked = f"?{urlencode(query)}" if query else ""
        return await self._json("GET", path + asked, seconds=seconds)

    async def put(self, path: str, body: MatrixJson) -> MatrixJson:
        return await self._json("PUT", path, json.dumps(body).encode())

    async def post(self, path: str, body: MatrixJson) -> MatrixJson:
        return await self._json("POST", path, json.dumps(body).encode())

    async def upload(self, content: bytes, mime: str, name: str) -> str:
        """Upload a file; return its mxc address."""
        asked = f"?{urlencode({'filename': name})}" if name else ""
        path = f"/_matrix/media/v3/upload{asked}"
        answer = await self._json("POST", path, content, mime, seconds=UPLOAD_SECONDS)
        return str(answer["content_uri"])

    async def download(self, mxc: str, limit: int) -> bytes:
        """Download a file. Raises HomeserverRefused for more than `limit` bytes."""
        server, _, media = mxc.removeprefix("mxc://").partition("/")
        path = f"{MEDIA}/download/{quote(server, safe='')}/{quote(media, safe='')}"
        content = await self._bytes("GET", path, None, "", UPLOAD_SECONDS, limit)
        if len(content) > limit:
            raise HomeserverRefused(413, {"error": f"larger than {limit:,} bytes"})
        return content

    async def _json(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        mime: str = "application/json",
        *,
        seconds: float = ANSWER_SECONDS,
    ) -> MatrixJson:
        content = await self._bytes(method, path, body, mime, seconds, LONGEST_ANSWER)
        try:
            answer = parsed_json(content)
        except ValueError:
            raise HomeserverAway(f"{self.url} gives no whole answer") from None
        if not isinstance(answer, dict):
            raise HomeserverAway(f"{self.url} is no homeserver")
        return answer

    async def _bytes(
        self,
        method: str,
        path: str,
        body: bytes | None,
        mime: str,
        seconds: float,
        limit: int | None = None,
    ) -> bytes:
        """The answer's body, or somewhat more than `limit` bytes of it. Raises HomeserverError."""
        if self._http is None:  # aiohttp's own time limits may swallow a cancellation
            self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if body is not None:
            headers["Content-Type"] = mime
        try:
            async with (
                asyncio.timeout(seconds),
                self._http.request(method, self.url + path, data=body, headers=headers) as answer,
            ):
                content = bytearray()
                async for piece in answer.content.iter_any():
                    content += piece
                    if limit is not None and len(content) > limit:
                        break
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = str(error) or type(error).__name__
            raise HomeserverAway(f"{self.url} cannot be reached ({why})") from None
        if answer.status < 300:
            return bytes(content)
        raise refusal(self.url, answer, bytes(content))


def refusal(url: str, answer: aiohttp.ClientResponse, content: bytes) -> HomeserverError:
    """Convert an error response to a HomeserverError."""
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        told = None
    if answer.status == 429:
        milliseconds = told.get("retry_after_ms") if isinstance(told, dict) else None
        after = answer.headers.get("Retry-After", "")
        if isinstance(milliseconds, int | float):
            return HomeserverBusy(milliseconds / 1000)
        return HomeserverBusy(float(after) if after.isdecimal() else 5.0)
    if answer.status >= 500 or not isinstance(told, dict) or "errcode" not in told:
        return HomeserverAway(f"{url} answers with an error ({answer.status})")
    return HomeserverRefused(answer.status, told)


def room_path(room: str, *parts: str) -> str:
    return "/".join([f"{CLIENT}/rooms", *(quote(part, safe="") for part in (room, *parts))])
