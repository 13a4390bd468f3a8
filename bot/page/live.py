"""Changes of the first view, as server-sent events. The state is polled only while somebody listens: the first
listener starts that, the last one ends it."""

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from agent.store.errors import StoreError
from backend.client import BackendClient, BackendRefused, BackendUnavailable
from backend.protocol import Alert
from bot.page.views import KNOWN_SECONDS, JsonFields, Views

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
BEAT_SECONDS = 15.0
AGAIN_SECONDS = 5.0
ALERTS = 30  # the newest that are shown
BEHIND = 4  # events that a slow browser may lag


class LiveFeed:
    def __init__(self, views: Views, backend: BackendClient) -> None:
        self._views = views
        self._backend = backend
        self._listeners: set[asyncio.Queue[str]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._alerts: deque[Alert] = deque(maxlen=ALERTS)
        self._last = ""
        self._shown: JsonFields = {}

    @property
    def looking(self) -> bool:
        """Whether the state is being polled."""
        return self._looking is not None

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        """Each change of the first view, until the browser or the server closes the stream."""
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        async with self.listening() as events:
            with suppress(ConnectionError):
                await answer.write(b"retry: 2000\n\n")
                while True:
                    try:
                        async with asyncio.timeout(BEAT_SECONDS):
                            line = await events.get()
                    except TimeoutError:
                        line = ": beat\n\n"
                    await answer.write(line.encode("utf-8", "replace"))
        return answer

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[asyncio.Queue[str]]:
        events: asyncio.Queue[str] = asyncio.Queue()
        if self._last:
            events.put_nowait(self._last)
        self._listeners.add(events)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            yield events
        finally:
            self._listeners.discard(events)
            if not self._listeners and (looking := self._looking):
                self._looking, self._last, self._shown = None, "", {}
                looking.cancel()
                await asyncio.wait([looking])

    async def _look(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_alerts())
            while True:
                try:
                    await self.publish(await self._views.now())
                except StoreError as error:
                    await self.publish({"why": str(error)})
                except Exception:
                    log.exception("the page's first view cannot be made")
                    await self.publish({"why": "It failed for a reason that is in the log."})
                await asyncio.sleep(LOOK_SECONDS)

    async def publish(self, now: JsonFields) -> None:
        """Send the view to all listeners where it differs from the last one; its time alone counts as a difference
        every KNOWN_SECONDS."""
        shown = {
            **now,
            "alerts": [alert.model_dump(mode="json") for alert in reversed(self._alerts)],
            "at": now.get("at", 0.0) // KNOWN_SECONDS * KNOWN_SECONDS,
        }
        if shown == self._shown:
            return
        self._shown = shown
        text = json.dumps({**shown, **now}, ensure_ascii=False, separators=(",", ":"))
        self._last = f"event: now\ndata: {text}\n\n"
        for events in self._listeners:
            while events.qsize() >= BEHIND:
                events.get_nowait()
            events.put_nowait(self._last)

    async def _follow_alerts(self) -> None:
        while True:
            with suppress(BackendUnavailable, BackendRefused):
                after = self._alerts[-1].id if self._alerts else 0
                async for alert in self._backend.events(after):
                    self._alerts.append(alert)
            await asyncio.sleep(AGAIN_SECONDS)
