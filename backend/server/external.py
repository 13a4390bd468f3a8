"""Servers that others run: any OpenAI-compatible one, the first of several that answers.

A server that does not answer is asked last for half a minute, so that one box
that hangs costs its silence once and not with each request; so is one whose
completions break or fail while it still names its models.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from backend.config import BackendConfig
from backend.control.api import NotReady
from backend.control.status_board import StatusBoard
from backend.models.profile import ProfileError
from backend.protocol import CompletionReport, Endpoint, Prefix, ProfileSummary, ServerStatus

LISTEN_SECONDS = 5.0
CHECK_SECONDS = 30.0
FRESH_SECONDS = 5.0  # for which what was found is taken to hold
DEFAULT_CONTEXT = 8192
FOUND, NO_KEY, NO_LIST, SERVER_ERROR = 200, (401, 403), (404, 405, 501), 500
_FOREVER = aiohttp.ClientTimeout(total=None)  # deadlines are asyncio's


@dataclass(frozen=True, slots=True)
class Found:
    """One server that answers."""

    url: str
    model: str
    n_ctx: int
    extras: bool
    vision: bool


@dataclass(frozen=True, slots=True)
class _Answer:
    """HTTP status (0: none came) and JSON body."""

    status: int
    body: dict[str, Any] = field(default_factory=dict)


class External:
    """`changes` looks first, `endpoint` unless it was just done; nothing is supervised.

    A turn asks for the endpoint several times, and each look is two requests: together
    a quarter of what a turn costs.
    """

    def __init__(self, config: BackendConfig, status: StatusBoard) -> None:
        self.config, self.status = config, status
        self._looking = asyncio.Lock()
        self._asked = asyncio.Event()
        self._silent: dict[str, float] = {}  # since when, steady clock
        self._found: Found | None = None
        self._found_at = 0.0
        self._failing = False
        self._keyless: str | None = None  # a server that refused our key

    async def run(self) -> None:
        """Look every half minute, and when asked."""
        while True:
            await self._look()
            self._asked.clear()
            try:
                async with asyncio.timeout(CHECK_SECONDS):
                    await self._asked.wait()
            except TimeoutError:
                continue

    async def endpoint(self) -> Endpoint:
        found = await self._known() or await self._look()
        if found is None:
            raise NotReady(self.status.current.reason or "No model server can be reached.")
        return Endpoint(
            url=found.url,
            api_key=self.config.api_key,
            model=found.model,
            n_ctx=found.n_ctx,
            kind="external",
            extras=found.extras,
            vision=found.vision,
        )

    async def _known(self) -> Found | None:
        """What was found just now, if it still listens."""
        if self._found is None or monotonic() - self._found_at > FRESH_SECONDS:
            return None
        return self._found if await _listens(self._found.url) else None

    def heard(self, report: CompletionReport) -> None:
        """How a completion went; 0 is a connection that broke."""
        self._failing = report.status == 0 or report.status >= SERVER_ERROR

    async def changes(self) -> AsyncIterator[ServerStatus]:
        if self._failing and self._found:  # whoever asked for it now asks whether it is ready
            self._silent[self._found.url] = monotonic()
            self._failing = False
        await self._look()
        async for status in self.status.changes():
            yield status

    def restart(self) -> None:
        self._asked.set()

    async def switch(self, name: str) -> None:
        raise ProfileError(f"The model server is not ours; {name} cannot be started on it.")

    def warm(self, prefix: Prefix) -> None:
        """The server's own business."""

    def logs(self, lines: int) -> list[str]:
        return []

    def sign(self, tokens: int) -> None:
        """Nobody watches."""

    def profiles(self) -> list[ProfileSummary]:
        """None of them is ours to start."""
        return []

    async def _look(self) -> Found | None:
        """The first of the servers that answers within `connect_seconds`, told on the board."""
        async with self._looking:
            found = self._found = await self._first()
            self._found_at = monotonic()
            if found:
                self.status.set(
                    state="ready",
                    reason=self._instead(found),
                    model=found.model,
                    n_ctx=found.n_ctx,
                )
            else:
                self.status.set(state="failed", reason=self._lacking())
            return found

    async def _first(self) -> Found | None:
        headers = {"Authorization": f"Bearer {self.config.api_key}"} if self.config.api_key else {}
        async with aiohttp.ClientSession(headers=headers, timeout=_FOREVER) as session:
            for url in self._order():
                if found := await self._try(session, url):
                    self._silent.pop(url, None)
                    return found
                self._silent[url] = monotonic()
        return None

    def _order(self) -> list[str]:
        """As configured, but those that lately gave no answer last, the last of them at the end."""
        since = monotonic() - CHECK_SECONDS
        urls = [_root(url) for url in self.config.urls]
        return sorted(urls, key=lambda url: max(since, self._silent.get(url, since)))

    def _lacking(self) -> str:
        """Why there is none."""
        if self._keyless:
            return f"The model server at {self._keyless} refuses the key: check backend.api_key."
        urls = ", ".join(self.config.urls) or "any address (none is configured)"
        return f"No model server can be reached at {urls}."

    def _instead(self, found: Found) -> str | None:
        """Which servers it stands in for."""
        urls = [_root(url) for url in self.config.urls]
        before = urls[: urls.index(found.url)]
        if not before:
            return None
        verb = "does" if len(before) == 1 else "do"
        return f"{' and '.join(before)} {verb} not answer; {found.url} is used."

    async def _try(self, session: aiohttp.ClientSession, url: str) -> Found | None:
        # Both at once: a proxy that has just started takes seconds for each.
        seconds = self.config.connect_seconds / len(self.config.urls)
        models, props = await asyncio.gather(
            _get(session, f"{url}/v1/models", seconds), _get(session, f"{url}/props", seconds)
        )
        self._keyless = url if models.status in NO_KEY else None
        # Who names the model needs no list of them.
        if models.status != FOUND and not (self.config.model and models.status in NO_LIST):
            return None
        rows = [row for row in models.body.get("data") or [] if isinstance(row, dict)]
        wanted = self.config.model or next((str(row.get("id")) for row in rows), "")
        row = next((row for row in rows if row.get("id") == wanted), {})
        window = (props.body.get("default_generation_settings") or {}).get("n_ctx")
        n_ctx = self.config.context or window or row.get("max_model_len") or DEFAULT_CONTEXT
        vision = bool((props.body.get("modalities") or {}).get("vision", False))
        return Found(url, wanted, int(n_ctx), extras=window is not None, vision=vision)


async def _listens(url: str) -> bool:
    where = urlsplit(url)
    port = where.port or (443 if where.scheme == "https" else 80)
    try:
        async with asyncio.timeout(LISTEN_SECONDS):
            _, writer = await asyncio.open_connection(where.hostname, port)
    except (OSError, ValueError):
        return False
    writer.close()
    return True


async def _get(session: aiohttp.ClientSession, url: str, seconds: float) -> _Answer:
    try:
        async with asyncio.timeout(seconds), session.get(url) as answer:
            body = await answer.json(content_type=None) if answer.status == FOUND else None
    except (OSError, aiohttp.ClientError, ValueError):
        return _Answer(0)
    return _Answer(answer.status, body if isinstance(body, dict) else {})


def _root(url: str) -> str:
    return url.rstrip("/").removesuffix("/v1")
