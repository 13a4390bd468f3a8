"""POST /hooks/NAME: other programs run a job, with data.

A hook has a secret of its own, which a request names (`Authorization: Bearer`, `X-Gitlab-Token`) or has
signed its body with (`X-Hub-Signature-256`, `X-Gitea-Signature`: HMAC-SHA256 in hexadecimal).
"""

import hashlib
import hmac
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from agent.errors import AgentError
from bot.connections import Connections
from bot.page.access import load_key
from bot.settings import Settings

MOST_A_MINUTE = 10
Trigger = Callable[[int, str, str], Awaitable[str]]
"""Runs a job (its number) with data; the third is who asked."""


@dataclass
class Hook:
    name: str
    job: int
    secret: str = field(repr=False)
    _calls: deque[float] = field(default_factory=deque)

    def knows(self, request: web.Request, body: bytes) -> bool:
        """Whether the sender knows the secret."""
        headers, secret = request.headers, self.secret.encode()
        signed = hmac.digest(secret, body, hashlib.sha256).hex()
        pairs = (
            (headers.get("Authorization", "").removeprefix("Bearer "), self.secret),
            (headers.get("X-Gitlab-Token", ""), self.secret),
            (headers.get("X-Hub-Signature-256", "").removeprefix("sha256="), signed),
            (headers.get("X-Gitea-Signature", ""), signed),
        )
        matches = [hmac.compare_digest(a.encode("utf-8", "replace"), b.encode()) for a, b in pairs]
        return any(matches)

    def seconds_to_wait(self) -> float:
        """0 where one more call is allowed now, which is then counted."""
        now = time.monotonic()
        while self._calls and self._calls[0] <= now - 60:
            self._calls.popleft()
        if len(self._calls) >= MOST_A_MINUTE:
            return self._calls[0] + 60 - now
        self._calls.append(now)
        return 0.0


def hook_route(settings: Settings, trigger: Trigger, connections: Connections) -> web.RouteDef:
    """Raises PageRefused where a secret cannot be read, is too short, or readable to others."""
    known = {
        name: Hook(
            name,
            section.job,
            load_key(section.secret_file, create=False, what=f"The secret of page.hooks.{name}"),
        )
        for name, section in settings.page.hooks.items()
    }

    async def call(request: web.Request) -> web.Response:
        hook, body = known.get(request.match_info["name"]), await request.read()
        if hook is None or not hook.knows(request, body):
            raise web.HTTPForbidden(text="There is no such hook, or that is not its secret.")
        connections.keep(request.transport)
        if seconds := hook.seconds_to_wait():
            headers = {"Retry-After": str(int(seconds) + 1)}
            raise web.HTTPTooManyRequests(text="Ten times a minute at most.", headers=headers)
        try:
            text = body.decode("utf-8", "replace")
            told = await trigger(hook.job, text, f"hook {hook.name}")
        except AgentError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from None
        return web.Response(status=202, text=told)

    return web.post("/hooks/{name}", call)
