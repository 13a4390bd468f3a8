"""The control API: HTTP over the UNIX socket, for this process's user."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TypeVar

from aiohttp import WSMsgType, web
from pydantic import BaseModel, ValidationError

from backend.control import metrics
from backend.control.alerts import Alerts
from backend.control.gpu_queue import GpuQueue
from backend.gpu.history import History
from backend.gpu.plot import DrawFailed, draw
from backend.models.profile import ProfileError
from backend.protocol import (
    CompletionReport,
    Endpoint,
    GpuMinute,
    Heartbeat,
    Prefix,
    ProfileChoice,
    ProfileSummary,
    QueueState,
    ServerState,
    ServerStatus,
    Status,
)
from backend.server.supervisor import SwitchFailed

Body = TypeVar("Body", bound=BaseModel)
LARGEST_BODY = 64 << 20
HEARTBEAT = 20.0  # a holder of the lane that no longer answers loses it
CLOSING_SECONDS = 0.5


class NotReady(Exception):
    """There is no endpoint now; `str` says why."""


class Engine(Protocol):
    """What the API speaks for: the supervised server, or external ones."""

    async def endpoint(self) -> Endpoint: ...
    def changes(self) -> AsyncIterator[ServerStatus]: ...
    def restart(self) -> None: ...
    async def switch(self, name: str) -> None: ...
    def warm(self, prefix: Prefix) -> None: ...
    def logs(self, lines: int) -> list[str]: ...
    def sign(self, tokens: int) -> None: ...
    def profiles(self) -> list[ProfileSummary]: ...


@dataclass(frozen=True, slots=True)
class Api:
    engine: Engine
    status: Callable[[], Status]
    report: Callable[[CompletionReport], None]
    gpu_queue: GpuQueue
    alerts: Alerts
    history: History

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/status", self.get_status),
            web.get("/v1/endpoint", self.get_endpoint),
            web.post("/v1/ready", self.post_ready),
            web.get("/v1/gpu/history", self.get_history),
            web.get("/v1/gpu/picture", self.get_picture),
            web.get("/v1/logs", self.get_logs),
            web.get("/v1/events", self.get_events),
            web.get("/v1/queue", self.get_queue),
            web.get("/v1/turn", self.get_turn),
            web.get("/v1/profiles", self.get_profiles),
            web.post("/v1/warm", self.post_warm),
            web.post("/v1/report", self.post_report),
            web.post("/v1/restart", self.post_restart),
            web.post("/v1/profile", self.post_profile),
            web.get("/metrics", self.get_metrics),
        ]

    async def get_status(self, request: web.Request) -> web.Response:
        return _json(self.status())

    async def get_metrics(self, request: web.Request) -> web.Response:
        text = metrics.text(self.status())
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4"})

    async def get_endpoint(self, request: web.Request) -> web.Response:
        try:
            return _json(await self.engine.endpoint())
        except NotReady as error:
            return web.Response(status=503, text=str(error))

    async def get_logs(self, request: web.Request) -> web.Response:
        return web.Response(text="\n".join(self.engine.logs(_number(request, "lines", 100))))

    async def get_history(self, request: web.Request) -> web.Response:
        minutes = await self._minutes(_number(request, "minutes", 180))
        return web.Response(text="\n".join(minute.model_dump_json() for minute in minutes))

    async def get_picture(self, request: web.Request) -> web.Response:
        hours = max(1, _number(request, "hours", 3))
        theme = "dark" if request.query.get("theme") == "dark" else "light"
        try:
            minutes = await self._minutes(60 * hours)
            picture = await draw(
                minutes, hours=hours, theme=theme, zone=request.query.get("zone", "UTC")
            )
        except DrawFailed as error:
            return web.Response(status=404, text=str(error))
        return web.Response(body=picture, content_type="image/png")

    async def _minutes(self, count: int) -> list[GpuMinute]:
        since = int(datetime.now(UTC).timestamp()) - 60 * count
        return await asyncio.to_thread(self.history.read, since)

    async def post_warm(self, request: web.Request) -> web.Response:
        self.engine.warm(await _body(request, Prefix))
        return web.Response(status=202)

    async def post_report(self, request: web.Request) -> web.Response:
        self.report(await _body(request, CompletionReport))
        return web.Response(status=202)

    async def post_restart(self, request: web.Request) -> web.Response:
        self.engine.restart()
        return web.Response(status=202)

    async def post_ready(self, request: web.Request) -> web.StreamResponse:
        answer = await _stream(request)
        with suppress(ConnectionError):  # whoever asked has hung up
            async for status in self.engine.changes():
                await _line(answer, _stand(status))
                if status.serving or status.state == "failed":
                    break
        return answer

    async def post_profile(self, request: web.Request) -> web.StreamResponse:
        choice = await _body(request, ProfileChoice)
        answer = await _stream(request)
        switching = asyncio.create_task(self.engine.switch(choice.name))
        telling = asyncio.create_task(self._tell(answer))
        try:
            await asyncio.wait({switching, telling}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            telling.cancel()
            switching.cancel()
            await asyncio.wait({switching, telling})
        with suppress(ConnectionError):
            await _line(answer, _outcome(switching))
        return answer

    async def _tell(self, answer: web.StreamResponse) -> None:
        with suppress(ConnectionError):
            async for status in self.engine.changes():
                if status.state != "failed":
                    await _line(answer, _stand(status))
        await asyncio.Event().wait()  # nobody listens; the switch goes on

    async def get_events(self, request: web.Request) -> web.StreamResponse:
        answer = await _stream(request)
        with suppress(ConnectionError):
            async for alert in self.alerts.stream(_number(request, "after", 0)):
                await _line(answer, alert)
        return answer

    async def get_queue(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT)
        await socket.prepare(request)
        chat, priority = (
            request.query.get("chat", ""),
            min(2, max(0, _number(request, "priority", 0))),
        )
        states: asyncio.Queue[QueueState] = asyncio.Queue()
        with self.gpu_queue.joined(chat, priority, states.put_nowait):
            await self._hold(socket, states)
        return socket

    async def get_turn(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT)
        await socket.prepare(request)
        states: asyncio.Queue[QueueState] = asyncio.Queue()
        with self.gpu_queue.turn(request.query.get("chat", ""), states.put_nowait):
            await self._hold(socket, states)
        return socket

    async def _hold(
        self, socket: web.WebSocketResponse, states: "asyncio.Queue[QueueState]"
    ) -> None:
        telling = asyncio.create_task(_tell_states(socket, states))
        try:
            await self._hear(socket)
        finally:
            telling.cancel()
            await asyncio.wait({telling})

    async def get_profiles(self, request: web.Request) -> web.Response:
        cards = await asyncio.to_thread(self.engine.profiles)
        return web.Response(text="\n".join(card.model_dump_json() for card in cards))

    async def _hear(self, socket: web.WebSocketResponse) -> None:
        """Until the holder hangs up: the open connection is the hold."""
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self.engine.sign(Heartbeat.model_validate_json(message.data).tokens)


@asynccontextmanager
async def listening(api: Api, path: Path) -> AsyncIterator[None]:
    """Serve on the socket at `path`, 0600 in a folder of 0700."""
    app = web.Application(client_max_size=LARGEST_BODY, middlewares=[_plain_errors])
    app.add_routes(api.routes())
    runner = web.AppRunner(
        app, access_log=None, handler_cancellation=True, shutdown_timeout=CLOSING_SECONDS
    )
    await runner.setup()
    try:
        before = os.umask(0o177)
        try:
            await web.UnixSite(runner, str(path)).start()
        finally:
            os.umask(before)
        yield
    finally:
        await runner.cleanup()
        _remove(path)


@web.middleware
async def _plain_errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except ValidationError as error:
        first = error.errors()[0]
        return web.Response(status=400, text=f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _json(value: BaseModel) -> web.Response:
    return web.Response(text=value.model_dump_json(), content_type="application/json")


async def _body(request: web.Request, kind: type[Body]) -> Body:
    return kind.model_validate_json(await request.read())


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isdigit() else default


async def _stream(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "application/jsonl"})
    await answer.prepare(request)
    return answer


async def _line(answer: web.StreamResponse, value: BaseModel) -> None:
    await answer.write(value.model_dump_json().encode() + b"\n")


def _stand(status: ServerStatus) -> ServerState:
    return ServerState(
        state=status.state, reason=status.reason, done=status.done, total=status.total
    )


def _outcome(switching: "asyncio.Task[None]") -> ServerState:
    error = switching.exception()
    if isinstance(error, SwitchFailed | ProfileError):
        return ServerState(state="failed", reason=str(error))
    if error:
        raise error
    return ServerState(state="ready")


async def _tell_states(socket: web.WebSocketResponse, states: "asyncio.Queue[QueueState]") -> None:
    with suppress(ConnectionError):
        while True:
            await socket.send_str((await states.get()).model_dump_json())
