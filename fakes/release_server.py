"""A server that answers like GitHub's API for releases and like the store of their files.

async with ReleaseServer(archive(SERVER)).running() as releases:
    ... LLAMA_CPP_RELEASES=releases.url
"""

import asyncio
import gzip
import hashlib
import io
import random
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

TAG = "b11560"
NAME = f"llama-{TAG}-bin-ubuntu-vulkan-x64.tar.gz"
DEVICES = "Available devices:\n  Vulkan0: Tesla V100 (16384 MiB, 16000 MiB free)"
LIBRARY = random.Random(1).randbytes(200_000)
SERVER = f"""#!/bin/sh
case "$1" in
--version) echo "version: 11560 (abc)" ;;
--list-devices) echo "{DEVICES}" ;;
--help) echo "-m, --model FNAME   the model"; echo "--list-devices   print them" ;;
esac
"""


def archive(
    server: str = SERVER,
    more: Mapping[str, bytes] | None = None,
    links: Mapping[str, str] | None = None,
) -> bytes:
    """A released archive: a folder with the server and a library, and what else is to be in it."""
    files = {
        f"llama-{TAG}/llama-server": server.encode(),
        f"llama-{TAG}/libggml.so.0.9": LIBRARY,
        **(more or {}),
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, io.BytesIO(content))
        for name, target in {
            f"llama-{TAG}/libggml.so.0": "libggml.so.0.9",
            **(links or {}),
        }.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
    return gzip.compress(packed.getvalue(), 1)


@dataclass
class ReleaseServer:
    """`cuts` downloads break off half-way; `status` and `headers` are the list's own answer.

    `asset` are fields that replace those of the file (None: without it). `more` are further files, and
    `damaged` is one that is not what its digest says.
    """

    content: bytes = field(default_factory=archive)
    cuts: int = 0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    list_text: str | None = None
    asset: Mapping[str, Any] | None = field(default_factory=dict)
    more: Mapping[str, bytes] = field(default_factory=dict)
    damaged: str = ""
    older: bool = False  # the newest release lacks the file, the one before has it
    redirects: bool = True
    held: asyncio.Event | None = None  # a download waits until it is set
    downloads: int = 0
    url: str = ""

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ReleaseServer"]:
        app = web.Application()
        app.router.add_get("/releases", self._list)
        app.router.add_get("/download/{name}", self._redirect)
        app.router.add_get("/store/{name}", self._store)
        async with TestServer(app) as server:
            self.url = f"http://127.0.0.1:{server.port}/releases"
            yield self

    async def _list(self, request: web.Request) -> web.Response:
        if self.status != 200 or self.list_text is not None:
            return web.Response(status=self.status, text=self.list_text, headers=self.headers)
        ours = {**self._row(NAME, self.content), **(self.asset or {})}
        other = {**ours, "name": f"llama-{TAG}-bin-win-cpu-x64.zip"}
        assets = [other] if self.asset is None else [other, ours]
        assets += [self._row(name, content) for name, content in self.more.items()]
        found = [{"tag_name": TAG, "draft": False, "id": 1, "assets": assets}]
        if self.older:
            found.insert(0, {"tag_name": "b11561", "draft": False, "assets": []})
        return web.json_response(found)

    def _row(self, name: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(b"" if name == self.damaged else content).hexdigest()
        return {
            "name": name,
            "size": len(content),
            "digest": f"sha256:{digest}",
            "browser_download_url": f"{self.url.removesuffix('/releases')}/download/{name}",
        }

    async def _redirect(self, request: web.Request) -> web.StreamResponse:
        if self.redirects:
            raise web.HTTPFound(f"/store/{request.match_info['name']}")
        return await self._store(request)

    async def _store(self, request: web.Request) -> web.StreamResponse:
        self.downloads += 1
        first = request.http_range.start or 0
        content = self.more.get(request.match_info["name"], self.content)[first:]
        if not content:
            raise web.HTTPRequestRangeNotSatisfiable
        response = web.StreamResponse(status=206 if first else 200)
        response.content_length = len(content)
        await response.prepare(request)
        if self.cuts:
            self.cuts -= 1
            await response.write(content[: len(content) // 2])
            assert request.transport
            request.transport.close()
            return response
        if self.held:
            await self.held.wait()
        await response.write(content)
        return response
