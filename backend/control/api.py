"""The control API: HTTP over the UNIX socket, for this process's user."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import WSCloseCode, WSMsgType, web
from pydantic import BaseModel, RootModel, ValidationError

from backend.aio import first_of
from backend.control.listening import CLOSING_SECONDS, listen_on, mcp_socket, relay_mcp
from backend.gpu.health import Health
from backend.gpu.history import History
from backend.models.profile import ProfileError
from backend.pictures import DrawFailed, gpu_drawings, gpu_svg, rasterize
from backend.protocol import (
    ForgottenChat,
    GpuMinute,
    LentTime,
    Phrase,
    Prefix,
    ProfileChoice,
    QueueAnswer,
    QueueMessage,
    QueueState,
    ServerState,
    ServerStatus,
    Value,
)
from backend.server.embedding import EmbeddingServer
from backend.server.external import ExternalServers
from backend.server.llama import ServerAway, ServerRefused
from backend.server.managed import ManagedServer
from backend.server.supervisor import SwitchFailed
from backend.server.urgent import UrgentModel
from backend.state import BackendState, NotReady

Body = TypeVar("Body", bound=BaseModel)
LARGEST_BODY = 64 << 20
PING_SECONDS = 20.0  # a client that no longer answers pings loses its places in the queue
LEASES = web.AppKey("LEASES", set[web.WebSocketResponse])  # the open connections to the queue


class JsonBody(RootModel[dict[str, Any]]):
    """A JSON object that is passed on unchanged; pydantic's parser rejects one nested too deeply."""


@dataclass(slots=True)
class ClientPlace:
    """A client's place in the queue; it ends after the `work` on its chat's slot file."""

    chat: str
    stack: ExitStack = dataclasses.field(default_factory=ExitStack)
    work: asyncio.Task[None] | None = None

    def close(self) -> None:
        if self.work and not self.work.done():
            self.work.add_done_callback(lambda _: self.stack.close())
        else:
            self.stack.close()


@dataclass(frozen=True, slots=True)
class Api:
    state: BackendState
    server: ManagedServer | ExternalServers
    health: Health
    history: History
    embedding: EmbeddingServer
    urgent: UrgentModel

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/status", self.get_status),
            web.get("/v1/endpoint", self.get_endpoint),
            web.post("/v1/ready", self.post_ready),
            web.get("/v1/gpu/history", self.get_history),
            web.get("/v1/gpu/drawings", self.get_drawings),
            web.get("/v1/gpu/picture", self.get_picture),
            web.get("/v1/logs", self.get_logs),
            web.get("/v1/events", self.get_events),
            web.get("/v1/leases", self.get_leases),
            web.get("/v1/profiles", self.get_profiles),
            web.post("/v1/warm", self.post_warm),
            web.post("/v1/forget", self.post_forget),
            web.post("/v1/restart", self.post_restart),
            web.post("/v1/profile", self.post_profile),
            web.post("/v1/lend", self.post_lend),
            web.post("/v1/urgent", self.post_urgent),
            web.post("/v1/embeddings", self.post_embeddings),
            web.route("*", "/v1/mcp", self.mcp),
            web.get("/metrics", self.get_metrics),
        ]

    async def get_status(self, request: web.Request) -> web.Response:
        embedding = {"embedding": self.embedding.status}
        return json_response(self.state.snapshot().model_copy(update=embedding))

    async def post_embeddings(self, request: web.Request) -> web.Response:
        try:
            parsed = await body(request, JsonBody)
            return web.json_response(await self.embedding.vectors(parsed.root))
        except ServerAway as error:
            raise NotReady(
                Phrase("There are no vectors now: {why}", why=Phrase.of(error))
            ) from None
        except ServerRefused as error:
            return web.Response(status=error.status, text=str(error))

    async def mcp(self, request: web.Request) -> web.StreamResponse:
        return await relay_mcp(request, mcp_socket(self.state.config))

    async def get_metrics(self, request: web.Request) -> web.Response:
        from backend.control.metrics import metrics_text  # 3 MiB, where somebody asks

        text = metrics_text(self.state.snapshot())
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4"})

    async def get_endpoint(self, request: web.Request) -> web.Response:
        found = await self.server.endpoint()
        if found.vision is None and request.query.get("vision"):
            found = await self.server.with_vision_tested(found)
        return json_response(found)

    async def get_logs(self, request: web.Request) -> web.Response:
        return web.Response(text="\n".join(self.server.logs(number(request, "lines", 100))))

    async def get_history(self, request: web.Request) -> web.Response:
        step = max(1, number(request, "step", 1))
        return json_lines(await self.minutes(number(request, "minutes", 180), step))

    async def get_picture(self, request: web.Request) -> web.Response:
        hours = max(1, number(request, "hours", 3))
        theme = "dark" if request.query.get("theme") == "dark" else "light"
        zone = request.query.get("zone", "UTC")
        words = json.loads(request.query.get("words", "{}"))
        kept = await self.minutes(60 * hours)
        svg = gpu_svg(kept, hours=hours, theme=theme, zone=zone, words=words)
        return web.Response(body=await rasterize(svg), content_type="image/png")

    async def get_drawings(self, request: web.Request) -> web.Response:
        count, step = number(request, "minutes", 180), max(1, number(request, "step", 1))
        zone = request.query.get("zone", "UTC")
        kept = await self.minutes(count, step)
        drawn = await asyncio.to_thread(gpu_drawings, kept, hours=count / 60, zone=zone)
        return web.json_response(drawn)

    async def minutes(self, count: int, step: int = 1) -> list[GpuMinute]:
        since = int(datetime.now(UTC).timestamp()) - 60 * count
        return await asyncio.to_thread(self.history.read, since, step)

    async def get_profiles(self, request: web.Request) -> web.Response:
        return json_lines(await asyncio.to_thread(self.server.profiles))

    async def post_warm(self, request: web.Request) -> web.Response:
        self.server.warm(await body(request, Prefix))
        return web.Response(status=202)

    async def post_forget(self, request: web.Request) -> web.Response:
        await self.server.forget((await body(request, ForgottenChat)).chat)
        return web.Response(status=204)

    async def post_restart(self, request: web.Request) -> web.Response:
        self.server.restart()
        return web.Response(status=202)

    async def post_lend(self, request: web.Request) -> web.Response:
        done = await self.server.lend((await body(request, LentTime)).seconds)
        return web.json_response(done.data())

    async def post_urgent(self, request: web.Request) -> web.Response:
        return web.json_response((await self.urgent.answer(await request.text())).data())

    async def post_ready(self, request: web.Request) -> web.StreamResponse:
        answer = await start_stream(request)
        with suppress(ConnectionError):  # the client has disconnected
            async for status in self.server.changes():
                await write_line(answer, state_of(status))
                if status.serving or status.state == "failed":
                    break
        return answer

    async def post_profile(self, request: web.Request) -> web.StreamResponse:
        choice = await body(request, ProfileChoice)
        answer = await start_stream(request)
        switching, _ = await first_of(self.server.switch(choice.name), self.stream_states(answer))
        error = switching.exception()
        if error and not isinstance(error, SwitchFailed | ProfileError):
            raise error
        result = (
            ServerState(state="failed", reason=Phrase.of(error))
            if error
            else ServerState(state="ready")
        )
        with suppress(ConnectionError):
            await write_line(answer, result)
        return answer

    async def stream_states(self, answer: web.StreamResponse) -> None:
        with suppress(ConnectionError):
            async for status in self.server.changes():
                if status.state != "failed":  # the old profile may yet be restored
                    await write_line(answer, state_of(status))
        await asyncio.Event().wait()  # the client has disconnected; the switch continues

    async def get_events(self, request: web.Request) -> web.StreamResponse:
        answer = await start_stream(request)
        with suppress(ConnectionError):
            async for alert in self.state.alerts.stream(number(request, "after", 0)):
                await write_line(answer, alert)
        return answer

    async def get_leases(self, request: web.Request) -> web.WebSocketResponse:
        """One client's connection to the queue; its places end with the connection."""
        states: asyncio.Queue[QueueAnswer] = asyncio.Queue()
        socket = web.WebSocketResponse(heartbeat=PING_SECONDS, timeout=CLOSING_SECONDS)
        await socket.prepare(request)
        request.app[LEASES].add(socket)

        async def send() -> None:
            with suppress(ConnectionError):
                while True:
                    await socket.send_str((await states.get()).to_data())

        places: dict[int, ClientPlace] = {}
        sending = asyncio.create_task(send())
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self.receive(
                        QueueMessage.model_validate_json(message.data), places, states.put_nowait
                    )
        except ValidationError as error:
            await socket.close(
                code=WSCloseCode.INVALID_TEXT, message=describe_invalid(error).encode()[:100]
            )
        finally:
            request.app[LEASES].discard(socket)
            for place in places.values():
                place.close()
            sending.cancel()
            await asyncio.wait({sending})
        return socket

    def receive(
        self,
        message: QueueMessage,
        places: dict[int, ClientPlace],
        answer: Callable[[QueueAnswer], None],
    ) -> None:
        if (message.left or message.enter) and (ended := places.pop(message.id, None)):
            ended.close()
        if wanted := message.enter:
            place = places[message.id] = ClientPlace(wanted.chat)

            def tell(state: QueueState) -> None:
                """Tell the client; that it holds the GPU, once its chat's prompt is restored."""
                told = partial(answer, QueueAnswer(id=message.id, state=state))
                restored = state.state == "held" and not wanted.turn
                if restored and (restoring := self.server.restoring(wanted.chat)):
                    place.work = asyncio.create_task(restoring)
                    place.work.add_done_callback(lambda _: told())
                else:
                    told()

            queue = self.state.gpu_queue
            enter = queue.turn if wanted.turn else partial(queue.enqueue, priority=wanted.priority)
            place.stack.enter_context(enter(wanted.chat, on_change=tell))
        elif message.report:
            self.health.report(message.report)
            self.server.completed(message.report)
        elif message.save and (held := places.get(message.id)):
            held.work = asyncio.create_task(self.server.save(held.chat))
        elif message.tokens is not None:
            self.state.activity.heartbeats += 1


@asynccontextmanager
async def listening(api: Api, path: Path, *, group_status: bool = False) -> AsyncIterator[None]:
    """Serve on the socket at `path` with mode 0600; with `group_status` only the status, with mode 0660."""
    app = web.Application(client_max_size=LARGEST_BODY, middlewares=[plain_errors])
    app.add_routes(api.routes()[:1] if group_status else api.routes())
    app[LEASES] = set()
    app.on_shutdown.append(close_leases)
    async with listen_on(app, path, group=group_status):
        yield


async def close_leases(app: web.Application) -> None:
    """Close the clients' connections to the queue, which would delay the shutdown."""
    await asyncio.gather(*(socket.close() for socket in app[LEASES]))


@web.middleware
async def plain_errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except ValidationError as error:
        return web.Response(status=400, text=describe_invalid(error))
    except DrawFailed as error:
        return web.Response(status=404, text=str(error))
    except NotReady as error:
        return web.json_response(Phrase.of(error).data(), status=503)


def describe_invalid(error: ValidationError) -> str:
    first = error.errors()[0]
    return ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))


def state_of(status: ServerStatus) -> ServerState:
    return ServerState.model_validate(status.model_dump())


def json_response(value: Value) -> web.Response:
    return web.Response(text=value.to_data(), content_type="application/json")


def json_lines(values: Iterable[Value]) -> web.Response:
    return web.Response(text="\n".join(value.to_data() for value in values))


async def body(request: web.Request, kind: type[Body]) -> Body:
    return kind.model_validate_json(await request.read())


def number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 10 else default


async def start_stream(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"Content-Type": "application/jsonl"})
    await answer.prepare(request)
    return answer


async def write_line(answer: web.StreamResponse, value: Value) -> None:
    await answer.write(value.to_data().encode() + b"\n")
