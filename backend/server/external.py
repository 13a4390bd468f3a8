"""OpenAI-compatible servers that somebody else runs; the first of several that answers is used.

A server that does not answer is tried last for half a minute, so that a hanging one costs its
time-out once and not with each request. The same holds for a server whose completions fail
although it still lists its models.
"""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from backend.aio import set_within
from backend.config import BackendConfig
from backend.models.profile import ProfileError
from backend.protocol import (
    CompletionReport,
    Endpoint,
    Phrase,
    Prefix,
    ProfileSummary,
    ServerStatus,
)
from backend.server.llama import Props, ServerAway, ServerRefused, llama_server
from backend.state import NotReady, StatusBoard

CONNECT_SECONDS = 5.0
CHECK_SECONDS = 30.0
FRESH_SECONDS = 5.0  # an endpoint is reused for this long: querying is a quarter of a turn's cost
DEFAULT_CONTEXT = 8192
WRONG_KEY, NO_MODEL_LIST, SERVER_ERROR = (401, 403), (404, 405, 501), 500
FIRST_ERROR = 400
PICTURE_SECONDS = 20.0
NOT_ABOUT_PICTURES = (401, 403, 408, 429, 502, 503, 504)
# 64 x 64 pixels: some servers refuse a picture smaller than one token covers.
TINY_PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PMQ0AAAwDoEqv9ErYvQQckD4XAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAYHLAB8+AWnmfUycAAAAAElFTkSuQmCC"


class ExternalServers:
    """Finds the server to use. `changes` queries the servers first, `endpoint` unless one was just found."""

    def __init__(self, config: BackendConfig, status: StatusBoard) -> None:
        self.config, self.status = config, status
        self.urls = [url.rstrip("/").removesuffix("/v1") for url in config.urls]
        self._checking = asyncio.Lock()
        self._check_now = asyncio.Event()
        self._silent_since: dict[str, float] = {}  # by URL, monotonic clock
        self._endpoint: Endpoint | None = None
        self._found_at = 0.0
        self._failing = False  # the last completion failed
        self._wrong_key_at: str | None = None  # a server that rejected the API key
        self._testing_vision = asyncio.Lock()
        self._vision_tests: dict[tuple[str, str], bool] = {}  # by URL and model

    async def run(self) -> None:
        """Query the servers every half minute, and when a restart is requested."""
        while True:
            await self.check()
            self._check_now.clear()
            await set_within(self._check_now, CHECK_SECONDS)

    async def endpoint(self) -> Endpoint:
        known = self._endpoint
        fresh = monotonic() - self._found_at <= FRESH_SECONDS
        if known and fresh and await accepts_connections(known.url):
            return known
        found = await self.check()
        if found is None:
            raise NotReady(self.status.current.reason or Phrase("No model server can be reached."))
        return found

    async def with_vision_tested(self, endpoint: Endpoint) -> Endpoint:
        """Test whether the model accepts pictures by sending a tiny one, once for each server and model.

        `vision` stays None after an error that is not about pictures (a wrong key, a rate limit, a time-out).
        """
        seconds = self.config.connect_seconds
        key = endpoint.url, endpoint.model
        async with (
            self._testing_vision,
            llama_server(endpoint.url, endpoint.api_key, seconds) as server,
        ):
            if key not in self._vision_tests:
                try:
                    await server.show_picture(endpoint.model, TINY_PICTURE, PICTURE_SECONDS)
                    self._vision_tests[key] = True
                except ServerRefused as error:
                    if error.status in NOT_ABOUT_PICTURES:
                        return endpoint
                    self._vision_tests[key] = error.status < FIRST_ERROR
                except (ServerAway, TimeoutError):
                    return endpoint
        self._found_at = 0.0  # the next request queries the server again and gets the result
        return endpoint.model_copy(update={"vision": self._vision_tests[key]})

    def completed(self, report: CompletionReport) -> None:
        self._failing = report.status == 0 or report.status >= SERVER_ERROR

    async def changes(self) -> AsyncIterator[ServerStatus]:
        if self._failing and self._endpoint:
            # The client whose completion failed now waits for ready.
            self._silent_since[self._endpoint.url] = monotonic()
            self._failing = False
        await self.check()
        async for status in self.status.changes():
            yield status

    def restart(self) -> None:
        self._check_now.set()

    async def switch(self, name: str) -> None:
        form = "The model server is not ours; {name} cannot be started on it."
        raise ProfileError(Phrase(form, name=name))

    def warm(self, prefix: Prefix) -> None:
        """Nothing to do: the cache of an external server is not managed."""

    def logs(self, lines: int) -> list[str]:
        return []

    def profiles(self) -> list[ProfileSummary]:
        return []

    async def check(self) -> Endpoint | None:
        """Query the servers for the first that answers within `connect_seconds`, and set the status."""
        async with self._checking:
            found = self._endpoint = await self.first_endpoint()
            self._found_at = monotonic()
            if found is None:
                self.status.set(state="failed", reason=self.failure())
                return None
            before = self.urls[: self.urls.index(found.url)]
            form = "{first} do not answer; {other} is used."
            if len(before) == 1:
                form = "{first} does not answer; {other} is used."
            reason = Phrase(form, first=" and ".join(before), other=found.url)
            self.status.set(
                state="ready",
                reason=reason if before else None,
                model=found.model,
                n_ctx=found.n_ctx,
            )
            return found

    def failure(self) -> Phrase:
        if url := self._wrong_key_at:
            form = "The model server at {where} refuses the key: check backend.api_key."
            return Phrase(form, where=url)
        urls = ", ".join(self.config.urls) or Phrase("any address (none is configured)")
        return Phrase("No model server can be reached at {where}.", where=urls)

    async def first_endpoint(self) -> Endpoint | None:
        """Query the servers as ordered in the configuration, those that recently failed last."""
        since = monotonic() - CHECK_SECONDS
        for url in sorted(
            self.urls, key=lambda url: max(since, self._silent_since.get(url, since))
        ):
            if found := await self.ask(url):
                self._silent_since.pop(url, None)
                return found
            self._silent_since[url] = monotonic()
        return None

    async def ask(self, url: str) -> Endpoint | None:
        config = self.config
        seconds = config.connect_seconds / len(self.urls)
        async with llama_server(url, config.api_key, seconds) as server:
            # Both at once: a proxy that has just started takes seconds for each. A server other
            # than llama-server may answer anything, so every exception counts as no answer.
            models, props = await asyncio.gather(
                server.models(seconds), server.props(seconds), return_exceptions=True
            )
        status = models.status if isinstance(models, ServerRefused) else 0
        self._wrong_key_at = url if status in WRONG_KEY else None
        if isinstance(models, BaseException):
            if not (config.model and status in NO_MODEL_LIST):  # a configured model needs no list
                return None
            models = []
        model = config.model or next((str(row.get("id")) for row in models), "")
        row: dict[str, Any] = next((row for row in models if row.get("id") == model), {})
        known = props if isinstance(props, Props) else None
        window = known.n_ctx if known else 0
        return Endpoint(
            url=url,
            api_key=config.api_key,
            model=model,
            n_ctx=config.context or window or int(row.get("max_model_len") or DEFAULT_CONTEXT),
            kind="external",
            extras=window > 0,
            vision=self._vision(url, model, known),
            audio=known is not None and known.audio,
        )

    def _vision(self, url: str, model: str, known: Props | None) -> bool | None:
        """Whether it accepts pictures: as configured, else as a llama-server says, else as tested."""
        if self.config.vision is not None:
            return self.config.vision
        return known.vision if known and known.n_ctx else self._vision_tests.get((url, model))


async def accepts_connections(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, ValueError):
        return False
    writer.close()
    return True
