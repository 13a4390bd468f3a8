"""A server that speaks the model hub's protocol, and can cut, refuse or damage a download."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer

COMMIT = "c" * 40


class Hub:
    """One repository with one file; `cuts` counts how often a download is still to be broken off."""

    def __init__(self, content: bytes) -> None:
        self.content, self.size = content, len(content)
        self.etag = hashlib.sha256(content).hexdigest()
        self.cuts, self.status, self.url = 0, 200, ""
        self.ranges: list[int] = []
        self.held: asyncio.Event | None = None  # a download stops half-way until it is set

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Hub"]:
        app = web.Application()
        app.router.add_route("*", "/{owner}/{repo}/resolve/{revision}/{file}", self._answer)
        async with TestServer(app) as server:
            self.url = f"http://127.0.0.1:{server.port}"
            yield self

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if self.status != 200:
            code = {401: "RepoNotFound", 403: "GatedRepo", 404: "EntryNotFound"}[self.status]
            return web.Response(status=self.status, headers={"X-Error-Code": code})
        first, end = request.http_range.start or 0, request.http_range.stop
        if end is not None:  # a piece, as headers are read
            return self._piece(first, end)
        headers = {
            "ETag": f'"{self.etag}"',
            "X-Repo-Commit": COMMIT,
            "X-Linked-Size": str(self.size),
            "Content-Length": str(self.size - first),
            "Accept-Ranges": "bytes",
        }
        if first:
            headers["Content-Range"] = f"bytes {first}-{self.size - 1}/{self.size}"
        response = web.StreamResponse(status=206 if first else 200, headers=headers)
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        self.ranges.append(first)
        if self.cuts:
            self.cuts -= 1
            await response.write(self.content[first : first + 15_000_000])
            assert request.transport
            request.transport.abort()
            return response
        if self.held:
            await response.write(self.content[first : (first + self.size) // 2])
            await self.held.wait()
            first = (first + self.size) // 2
        await response.write(self.content[first:])
        return response

    def _piece(self, first: int, end: int) -> web.Response:
        self.ranges.append(first)
        body = self.content[first:end]
        where = f"bytes {first}-{first + len(body) - 1}/{self.size}"
        return web.Response(status=206, body=body, headers={"Content-Range": where})
