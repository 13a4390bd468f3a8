"""A proxy before a homeserver: answers with errors, late, in part or not at all, on demand."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp
from aiohttp import web

Act = Literal["refuse", "lose", "halve", "swallow", "hold", "late", "change"]


@dataclass
class ProxyRule:
    """For the next `times` requests whose method and path match: `refuse` them with `status` and `body`,
    have them carried out and `lose` the answer or `halve` it, `swallow` them (answered with `body`, not
    carried out), `hold` them until released, have them carried out and answered `late`, when released, or `change` the JSON of their answers."""

    pattern: re.Pattern[str]
    act: Act
    times: int
    status: int = 502
    body: Any = field(default_factory=dict)
    change: Callable[[Any], Any] = lambda answer: answer
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    used: int = 0


@dataclass
class HomeserverProxy:
    """`requests` are method and path of all that came; `chance` says what befalls one without a rule."""

    target: str
    url: str = ""
    requests: list[str] = field(default_factory=list)
    rules: list[ProxyRule] = field(default_factory=list)
    chance: Callable[[], dict[str, Any] | None] = lambda: None  # a rule's fields, for any request
    _http: aiohttp.ClientSession | None = None

    def rule(self, pattern: str, act: Act, times: int = 1, **more: Any) -> ProxyRule:
        made = ProxyRule(re.compile(pattern), act, times, **more)
        self.rules.append(made)
        return made

    def count(self, pattern: str) -> int:
        return sum(bool(re.search(pattern, request)) for request in self.requests)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        asked = f"{request.method} {request.raw_path}"
        self.requests.append(asked)
        body = await request.read()
        found = [r for r in self.rules if r.used < r.times and r.pattern.search(asked)]
        rule = found[0] if found else None
        if rule is None and (befalls := self.chance()):
            rule = ProxyRule(re.compile(""), times=1, **befalls)
        if rule is not None:
            rule.used += 1
            rule.reached.set()
            if rule.act == "hold":
                await rule.released.wait()
            if rule.act in ("refuse", "swallow"):
                status = 200 if rule.act == "swallow" else rule.status
                return web.json_response(rule.body, status=status)
        assert self._http
        kept = {k: v for k, v in request.headers.items() if k in ("Authorization", "Content-Type")}
        async with self._http.request(
            request.method, self.target + request.raw_path, data=body, headers=kept
        ) as answer:
            content = await answer.read()
            mime = answer.headers.get("Content-Type", "")
        if rule is not None and rule.act == "late":
            rule.arrived.set()
            await rule.released.wait()
        if rule is not None and rule.act == "change" and answer.status == 200:
            content = json.dumps(rule.change(json.loads(content))).encode()
        if rule is not None and rule.act == "lose":
            assert request.transport
            request.transport.abort()
        if rule is not None and rule.act == "halve":
            content = content[: len(content) // 2]
        return web.Response(status=answer.status, body=content, headers={"Content-Type": mime})


@asynccontextmanager
async def homeserver_proxy(target: str) -> AsyncIterator[HomeserverProxy]:
    proxy = HomeserverProxy(target)
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", proxy._serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    # Its server ends first: a request that is still on its way has somebody to ask.
    async with aiohttp.ClientSession(
        auto_decompress=True,
        timeout=aiohttp.ClientTimeout(total=None),
        connector=aiohttp.TCPConnector(limit=0),
    ) as proxy._http:
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield proxy
        finally:
            await runner.cleanup()
