"""A stand-in for SearXNG: its search API as https://docs.searxng.org/dev/search_api.html has it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

TIMES = ("", "None", "day", "week", "month", "year")


def result(url: Any, title: str, content: Any = "", **more: Any) -> dict[str, Any]:
    """As an engine gives one."""
    fields = {"engine": "wikipedia", "parsed_url": ["https", "", "", "", "", ""], "template": "default.html",
              "engines": ["wikipedia"], "positions": [1], "publishedDate": None, "score": 1.0,
              "category": "general"}  # fmt: skip
    return {"url": url, "title": title, "content": content, **fields, **more}


@dataclass
class Searx:
    """`asked` are the forms that came; `formats` are those of its settings; with `limited` its limiter refuses,
    with `crashed` its own error is shown, with `elsewhere` it is some other web server."""

    port: int = 0
    results: list[Any] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    silent: list[list[str]] = field(default_factory=list)
    formats: tuple[str, ...] = ("html", "json")
    limited: bool = False
    crashed: bool = False
    elsewhere: bool = False
    held: asyncio.Event | None = None
    asked: list[dict[str, str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        form = dict(request.query)
        self.asked.append(form)
        if self.held:
            await self.held.wait()
        if self.elsewhere:
            return web.Response(text="<h1>It works!</h1>", content_type="text/html")
        if self.limited:
            return web.Response(status=429, text="Too Many Requests")
        kind = form.get("format", "html")
        if kind not in self.formats:
            return web.Response(status=403, text="Forbidden")
        if kind != "json":
            return web.Response(text="<html></html>", content_type="text/html")
        if not form.get("q"):
            return web.json_response({"error": "No query"}, status=400)
        if form.get("time_range", "") not in TIMES or not form.get("pageno", "1").isdigit():
            return web.json_response({"error": "Invalid settings"}, status=400)
        if self.crashed:
            return web.json_response({"error": "search error"}, status=500)
        return web.json_response(
            {
                "query": form["q"],
                "number_of_results": 0,
                "results": self.results,
                "answers": self.answers,
                "corrections": [],
                "infoboxes": [],
                "suggestions": [],
                "unresponsive_engines": self.silent,
            }
        )


@asynccontextmanager
async def searxng() -> AsyncIterator[Searx]:
    served = Searx()
    app = web.Application()
    app.router.add_get("/search", served.answer)
    async with TestServer(app) as server:
        served.port = server.port or 0
        yield served
