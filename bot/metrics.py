"""Figures of the bot, the model server and the GPUs over HTTP, where `[metrics] listen` asks for them.

In Prometheus's text format and base units: seconds, bytes, hertz, ratios. The state is read at each request, by a
connection that cannot write. Counters begin at zero with the process, as Prometheus expects: sums over the tables
would fall when old rows are deleted.
"""

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.process_collector import ProcessCollector

from agent.errors import AgentError
from agent.store import Store
from agent.store.outbox import OutboxState
from agent.store.overview import Overview, TurnLine
from backend.client import BackendClient, BackendRefused, BackendUnavailable
from backend.connections import Connections
from bot.settings import Settings
from bot.state import DATABASE, open_state_read_only, read_presence

SETTLED_SECONDS = 30.0  # after a turn's end, in which its answer may still be on its way
MOST_TOOLS = 60  # names as labels: a model may make up any number of them
TOOL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
DURATIONS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800)  # seconds of a turn
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
OUTBOX: tuple[OutboxState, ...] = ("waiting", "sending", "uncertain", "failed")
CLOSING_SECONDS = 0.5


class MetricsRefused(AgentError):
    """The figures cannot be served as configured; `str` says why."""


class BotMetrics:
    """Collects the figures at each request. `render` is the body of an answer. It must not be called concurrently."""

    def __init__(self, settings: Settings, store: Store, backend: BackendClient) -> None:
        self._settings = settings
        self._store = store
        self._backend = backend
        self._overview = Overview(store.database)
        self._seen: tuple[int, int] | None = None  # the newest step and model call that are counted
        self._pending: set[str] = set()  # turns that have begun and not settled yet
        self._tools: set[str] = set()
        self._lasting, self._current = CollectorRegistry(), CollectorRegistry()
        ProcessCollector(registry=self._lasting)
        self._gauges: dict[str, Gauge] = {}
        counter = self._counter
        self._turns = counter("turns", "Turns that ended, by reason", "reason")
        self._parts = counter("turn_part_seconds", "Seconds of turns by part", "part")
        self._tokens = counter("tokens", "Tokens by kind and by what they were for", "kind", "purpose")  # fmt: skip
        self._calls = counter("model_calls", "Model calls by what they were for", "purpose")
        self._tool_calls = counter("tool_calls", "Tool calls by tool", "tool")
        self._durations = Histogram(
            "voltaire_turn_duration_seconds",
            "Turns by their seconds from taking up to end",
            buckets=DURATIONS,
            registry=self._lasting,
        )

    async def begin(self) -> None:
        """Take the present totals as the counters' zero."""
        self._seen = await self._overview.newest()
        self._pending = {line.id for line in await self._overview.open_turns()}

    async def render(self) -> bytes:
        self._gauges, self._current = {}, CollectorRegistry()
        await self._count()
        await self._read_state()
        try:
            backend = await self._backend.metrics()
        except (BackendUnavailable, BackendRefused):
            backend = ""
            self._gauge("up", "1 while the model server serves", 0)
        own = generate_latest(self._lasting) + generate_latest(self._current)
        return own + backend.encode()

    # -- what has happened -----------------------------------------------------

    async def _count(self) -> None:
        assert self._seen is not None, "begin"
        step, call, turns, calls = await self._overview.since(*self._seen)
        self._seen = step, call
        for purpose, prompt, cached, reread, written in calls:
            self._calls.labels(purpose).inc()
            kinds = {
                "cached": cached,
                "read": max(0, prompt - cached - reread),
                "reread": reread,
                "written": written,
            }
            for kind, count in kinds.items():
                self._tokens.labels(kind, purpose).inc(count)
        self._pending |= turns
        settled = self._store.clock() - SETTLED_SECONDS
        lines = {line.id: line for line in await self._overview.turns_of(self._pending)}
        self._pending &= lines.keys()  # a turn may have been deleted with its chat
        for id, line in lines.items():
            if line.ended_at is not None and line.ended_at <= settled:
                self._count_turn(line, line.ended_at)
                self._pending.discard(id)

    def _count_turn(self, line: TurnLine, ended_at: float) -> None:
        self._turns.labels(line.reason or "done").inc()
        self._durations.observe(max(0.0, ended_at - line.started_at))
        for part, seconds in line.seconds.items():
            self._parts.labels(part).inc(seconds)
        for tool, count in line.tools.items():
            self._tool_calls.labels(self._tool_name(tool)).inc(count)

    def _tool_name(self, tool: str) -> str:
        if TOOL.fullmatch(tool) and (tool in self._tools or len(self._tools) < MOST_TOOLS):
            self._tools.add(tool)
            return tool
        return "other"

    # -- what is ---------------------------------------------------------------

    async def _read_state(self) -> None:
        store, folder, gauge = self._store, self._settings.state_dir, self._gauge
        waiting = await store.inbox.count_waiting()
        gauge("inbox_messages", "Messages that are not answered yet", waiting)
        counts = await store.outbox.counts()
        for state in OUTBOX:
            gauge("outbox_messages", "Messages to be sent, or in doubt, by state", counts.get(state, 0), state=state)  # fmt: skip
        gauge("turns_open", "Turns that run", len(await self._overview.open_turns()))
        questions = await self._overview.questions(0)
        gauge("questions", "Approvals that wait for an answer", len(questions))
        active, due = await store.jobs.active_and_next()
        gauge("jobs", "Active jobs", active)
        gauge("next_job_timestamp_seconds", "When the next job is due", due)
        gauge("chats", "Chats", await store.chats.count())
        gauge("frozen", "1 while everything is frozen", await store.freeze.since() is not None)
        presence = read_presence(self._settings.state_dir)
        gauge("listening", "1 while updates come in", presence.polling_ok if presence else None)
        used = sum(path.stat().st_size for path in folder.glob(f"{DATABASE}*") if path.is_file())
        disk = shutil.disk_usage(folder)
        gauge("database_bytes", "The database with its log", used)
        gauge("disk_free_bytes", "Free on the disk of the state folder", disk.free)
        gauge("disk_size_bytes", "The disk of the state folder", disk.total)

    # -- making them -----------------------------------------------------------

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f"voltaire_{name}", what, labels, registry=self._lasting)

    def _gauge(self, name: str, what: str, value: float | None, **labels: str) -> None:
        """Set a gauge of this request; an unknown value has no gauge."""
        if value is None:
            return
        if (gauge := self._gauges.get(name)) is None:
            gauge = Gauge(f"voltaire_{name}", what, tuple(labels), registry=self._current)
            self._gauges[name] = gauge
        (gauge.labels(**labels) if labels else gauge).set(value)


@asynccontextmanager
async def serve_metrics(settings: Settings, backend: BackendClient) -> AsyncIterator[str]:
    """Serve at `metrics.listen` and yield the address. Raises MetricsRefused, StoreError."""
    host, _, port = settings.metrics.listen.rpartition(":")
    host = host.strip("[]")
    async with open_state_read_only(settings) as store:
        metrics = BotMetrics(settings, store, backend)
        await metrics.begin()

        async def get_metrics(request: web.Request) -> web.Response:
            """Refuse browsers: another site's page could be asking."""
            try:
                named = urlsplit(f"//{request.host}").hostname
            except ValueError:
                named = None
            if "Origin" in request.headers or (host in LOOPBACK and named not in LOOPBACK):
                raise web.HTTPForbidden(text="This is for programs that collect figures.")
            async with turn:
                body = await metrics.render()
            answer = web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})
            answer.force_close()
            return answer

        turn = asyncio.Lock()
        app = web.Application()
        app.add_routes([web.get("/metrics", get_metrics)])
        async with AsyncExitStack() as stack:
            serving = Connections().serving(app, host, int(port), shutdown_timeout=CLOSING_SECONDS)
            try:
                at = await stack.enter_async_context(serving)
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno else str(error)
                raise MetricsRefused(
                    f"The figures cannot be served at metrics.listen, {settings.metrics.listen}: {reason}."
                ) from None
            yield f"http://{settings.metrics.listen.rpartition(':')[0]}:{at}/metrics"
