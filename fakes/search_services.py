"""A stand-in for the search services that want a key, in the forms of their documentation:

https://api-dashboard.search.brave.com/api-reference/web/search/get, https://kagi.redocly.app/openapi,
https://docs.tavily.com/documentation/api-reference/endpoint/search, https://help.tavily.com (errors).
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web

from agent.web.search_services import SERVICES

KEY = "k3y-0f-4-s3arch-s3rv1ce_Zz"
PATHS = {"brave": "/res/v1/web/search", "kagi": "/api/v1/search", "tavily": "/search"}
Headers = dict[str, str]


def brave_error(code: str, detail: str, status: int) -> dict[str, Any]:
    """As its documentation shows it; a real answer has it alone, in `error`."""
    error = {"id": "5d832250", "code": code, "detail": detail, "status": status, "meta": {"component": "x"}}  # fmt: skip
    return {"type": "ErrorResponse", "errors": [error], "time": 1663072993}


def kagi_error(code: str, message: str) -> dict[str, Any]:
    url = f"https://help.kagi.com/api/errors#{code}"
    error = {"code": code, "url": url, "message": message, "location": None}
    return {"meta": {"id": "69c3f5c4", "node": "us-central1", "ms": 213}, "data": None, "error": [error]}  # fmt: skip


def tavily_error(sentence: str) -> dict[str, Any]:
    return {"detail": {"error": sentence}}


def limits(left: str, reset: str) -> Headers:
    """Brave's, for a second and a month."""
    return {"X-RateLimit-Limit": "1, 15000", "X-RateLimit-Policy": "1;w=1, 15000;w=2592000",
            "X-RateLimit-Remaining": left, "X-RateLimit-Reset": reset}  # fmt: skip


@dataclass
class SearchService:
    """`asked` are the forms or JSON that came with the right key. `refusal` is what it answers in place of results:
    status, JSON or text, headers. `cut`: the body ends in the middle; `held`: it waits for that."""

    name: str
    port: int = 0
    results: list[Any] = field(default_factory=list)
    refusal: tuple[int, Any, Headers] | None = None
    cut: bool = False
    held: asyncio.Event | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)
    runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATHS[self.name]}"

    async def stopped(self) -> None:
        assert self.runner
        await self.runner.cleanup()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.held:
            await self.held.wait()
        if self.cut and request.transport:
            response = web.StreamResponse(headers={"Content-Length": "500"})
            await response.prepare(request)
            await response.write(b'{"web": {"resu')
            request.transport.close()
            return response
        if self.refusal:
            status, body, headers = self.refusal
            if isinstance(body, str):
                return web.Response(status=status, text=body, content_type="text/html", headers=headers)  # fmt: skip
            return web.json_response(body, status=status, headers=headers)
        answer: web.StreamResponse = getattr(self, self.name)(request, await request.text())
        return answer

    def brave(self, request: web.Request, _: str) -> web.StreamResponse:
        if request.headers.get("X-Subscription-Token") != KEY:
            error = brave_error("SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid.", 422)  # fmt: skip
            return web.json_response(error, status=422)
        form = dict(request.query)
        if not 0 <= int(form["offset"]) <= 9 or len(form["q"].split()) > 50:
            error = brave_error("VALIDATION", "Unable to validate request parameter(s)", 422)
            return web.json_response(error, status=422)
        self.asked.append(form)
        found = {"type": "search", "query": {"original": form["q"], "more_results_available": True},
                 "web": {"type": "search", "results": self.results, "family_friendly": True}}  # fmt: skip
        if not self.results:
            del found["web"]
        return web.json_response(found, headers=limits("0, 14999", "1, 1419704"))

    def kagi(self, request: web.Request, body: str) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return web.json_response(kagi_error("2", "Unauthorized"), status=401)
        self.take(body)
        data = {"search": self.results, "related_search": [{"url": "https://no.example/", "title": "no"}]}  # fmt: skip
        meta = {"trace": "69c3f5c4168f66b860e951c585550f1c", "node": "us-central1", "ms": 213}
        return web.json_response({"meta": meta, "data": data if self.results else {}})

    def tavily(self, request: web.Request, body: str) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            refused = tavily_error("Unauthorized: missing or invalid API key.")
            return web.json_response(refused, status=401)
        form = self.take(body)
        return web.json_response({"query": form["query"], "answer": None, "images": [], "results": self.results,
                                  "response_time": "1.67", "request_id": "123e4567"})  # fmt: skip

    def take(self, body: str) -> dict[str, Any]:
        form: dict[str, Any] = json.loads(body)
        self.asked.append(form)
        return form


@asynccontextmanager
async def search_service(name: str) -> AsyncIterator[SearchService]:
    """Runs one, to which its engine speaks meanwhile."""
    served, before = SearchService(name), SERVICES[name]
    app = web.Application()
    app.router.add_route("*", PATHS[name], served.answer)
    served.runner = runner = web.AppRunner(app)
    await runner.setup()
    try:
        listener = web.TCPSite(runner, "127.0.0.1", 0)
        await listener.start()
        served.port = runner.addresses[0][1]
        SERVICES[name] = partial(before, host=f"127.0.0.1:{served.port}", endpoint=served.url)
        yield served
    finally:
        SERVICES[name] = before
        await runner.cleanup()
