"""The control API's client, for the bot, the agent and the command line.

async with BackendClient(socket) as backend:
    async for stand in backend.ready():
        ...
    async with backend.acquire_gpu("cli", PERSON) as lease:
        ...
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from backend.protocol import (
    Alert,
    CompletionReport,
    Endpoint,
    GpuMinute,
    Heartbeat,
    Prefix,
    Priority,
    ProfileChoice,
    ProfileSummary,
    QueueState,
    ServerState,
    Status,
)

ANSWER_SECONDS = 10.0  # every answer of the control API is at hand; longer means that it hangs
LOOK_SECONDS = 30.0  # but for where completions go: servers of others are asked first
PICTURE_SECONDS = 70.0  # drawn in a process of its own
LONGEST_SOCKET = 100  # bytes
Wire = Mapping[str, Any]


class BackendUnavailable(Exception):
    """No backend answers, or its server cannot serve; `str` is one plain sentence."""


class BackendRefused(Exception):
    """The backend answered no; `str` is its sentence."""


class GpuLease:
    """The right to one request on the GPU, for as long as the connection lasts.

    `wanted` is set when somebody more urgent waits, so that idle work can stop.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.wanted = asyncio.Event()
        self._socket = socket

    async def heartbeat(self, tokens: int) -> None:
        """Send a sign of life of the open request: tokens read and written so far."""
        with suppress(ConnectionError, aiohttp.ClientError):
            await self._socket.send_str(Heartbeat(tokens=tokens).model_dump_json())

    async def follow(self) -> None:
        """Take the queue's messages until the connection ends."""
        async for message in self._socket:
            if QueueState.model_validate_json(message.data).state == "wanted":
                self.wanted.set()


def default_socket(state_dir: Path) -> Path:
    """Where the control API listens unless the configuration says otherwise.

    AF_UNIX paths end at 107 bytes; a longer one gives way to a folder of the
    user's own under /tmp.
    """
    path = state_dir / "run" / "backend.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET:
        return path
    mark = hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"voltaire-{os.getuid()}-{mark}" / "backend.sock"


class BackendClient:
    """Speaks to the backend on `socket`. Every method may raise BackendUnavailable."""

    def __init__(self, socket: Path, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.socket = socket
        self._answer_seconds = answer_seconds
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.UnixConnector(path=str(self.socket), limit=0)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=ANSWER_SECONDS)
        self._session = aiohttp.ClientSession(
            "http://backend", connector=connector, timeout=timeout
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._session
        await self._session.close()

    async def status(self) -> Status:
        return Status.model_validate_json(await self._get("/v1/status"))

    async def endpoint(self) -> Endpoint:
        """Where completions go now; may change with every restart of llama-server."""
        text = await self._get("/v1/endpoint", LOOK_SECONDS)
        return Endpoint.model_validate_json(text)

    async def ready(self, deadline: float | None = None) -> AsyncGenerator[ServerState]:
        """Each change of the server's state until it serves (the last one yielded).

        Raises BackendUnavailable with the reason when it has failed, or after
        `deadline` seconds; without one it waits as long as the backend lives.
        """
        loop = asyncio.get_running_loop()
        until = None if deadline is None else loop.time() + deadline
        async with self._open("POST", "/v1/ready") as answer:
            while line := await _line(answer, until):
                stand = ServerState.model_validate_json(line)
                if stand.state == "failed":
                    raise BackendUnavailable(stand.reason or "The model server has failed.")
                yield stand
                if stand.serving:
                    return
        raise BackendUnavailable("The model backend ended while it was waited for.")

    async def warm(self, messages: Sequence[Wire], tools: Sequence[Wire] = ()) -> None:
        """Register the fixed prefix, to be kept warm. Returns at once."""
        prefix = Prefix(messages=[*map(dict, messages)], tools=[*map(dict, tools)])
        await self._post("/v1/warm", prefix.model_dump_json())

    async def report(self, report: CompletionReport) -> None:
        """Tell how a completion went; feeds the speed figures and the watchdog."""
        await self._post("/v1/report", report.model_dump_json())

    async def restart(self) -> None:
        """Restart llama-server at once, with its full settings; open turns go on when it is ready."""
        await self._post("/v1/restart", "{}")

    async def use_profile(self, name: str) -> AsyncGenerator[ServerState]:
        """Switch the profile, never mid-turn; yields states until the new one serves.

        Raises BackendRefused when there is no such profile, or it did not start and
        the old one is back.
        """
        body = ProfileChoice(name=name).model_dump_json()
        async with self._open("POST", "/v1/profile", body) as answer:
            async for line in answer.content:
                stand = ServerState.model_validate_json(line)
                if stand.state == "failed":
                    raise BackendRefused(stand.reason or f"{name} could not be started.")
                yield stand

    async def profiles(self) -> list[ProfileSummary]:
        """Every profile, those that can start now first; none with an external server."""
        text = await self._get("/v1/profiles")
        return [ProfileSummary.model_validate_json(line) for line in text.splitlines()]

    async def gpu_history(self, minutes: int) -> list[GpuMinute]:
        text = await self._get(f"/v1/gpu/history?minutes={minutes}")
        return [GpuMinute.model_validate_json(line) for line in text.splitlines()]

    async def gpu_picture(
        self, hours: int = 3, *, theme: str = "light", zone: str = "UTC"
    ) -> bytes:
        """A PNG of temperature, power and speed over the last hours, upright for a phone.

        `theme` is light or dark, `zone` an IANA name. BackendRefused says that
        there is nothing to draw yet.
        """
        asked = f"/v1/gpu/picture?hours={hours}&theme={theme}&zone={zone}"
        async with _within(PICTURE_SECONDS), self._open("GET", asked) as answer:
            return await answer.read()

    async def logs(self, lines: int = 100) -> list[str]:
        return (await self._get(f"/v1/logs?lines={lines}")).splitlines()

    async def metrics(self) -> str:
        """Prometheus text."""
        return await self._get("/metrics")

    async def events(self, after: int = 0) -> AsyncGenerator[Alert]:
        """Alerts with an id above `after`: those kept first, then each as it comes."""
        async with self._open("GET", f"/v1/events?after={after}") as answer:
            async for line in answer.content:
                if line.strip():
                    yield Alert.model_validate_json(line)

    @asynccontextmanager
    async def acquire_gpu(
        self,
        chat: str,
        priority: Priority = 0,
        on_wait: Callable[[QueueState], None] | None = None,
    ) -> AsyncIterator[GpuLease]:
        """Hold the GPU for one turn's model calls. `on_wait` hears each change while waiting."""
        asked = {"chat": chat, "priority": str(priority)}
        async with self._waiting_place("/v1/queue", asked) as socket:
            await _held(socket, on_wait)
            lease = GpuLease(socket)
            follower = asyncio.create_task(lease.follow())
            try:
                yield lease
            finally:
                follower.cancel()
                await asyncio.wait([follower])

    @asynccontextmanager
    async def turn(
        self, chat: str, on_wait: Callable[[QueueState], None] | None = None
    ) -> AsyncIterator[None]:
        """Keep the profile as it is for the block; `on_wait` hears why a turn cannot begin yet."""
        async with self._waiting_place("/v1/turn", {"chat": chat}) as socket:
            await _held(socket, on_wait)
            yield

    @asynccontextmanager
    async def _waiting_place(
        self, path: str, asked: Mapping[str, str]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        try:
            socket = await self._live().ws_connect(path, params=asked, max_msg_size=65536)
        except (OSError, aiohttp.ClientError) as error:
            raise self._away(error) from None
        async with socket:
            yield socket

    async def _get(self, path: str, seconds: float | None = None) -> str:
        async with _within(seconds or self._answer_seconds), self._open("GET", path) as answer:
            return await answer.text()

    async def _post(self, path: str, body: str) -> str:
        async with _within(self._answer_seconds), self._open("POST", path, body) as answer:
            return await answer.text()

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, body: str | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._live().request(method, path, data=body) as answer:
                if answer.status >= 400:
                    raise await _refusal(answer)
                yield answer
        except (OSError, aiohttp.ClientError) as error:
            raise self._away(error) from None

    def _live(self) -> aiohttp.ClientSession:
        assert self._session, "use `async with BackendClient(...)`"
        return self._session

    def _away(self, error: BaseException) -> BackendUnavailable:
        if isinstance(error, TimeoutError):
            return BackendUnavailable("The model backend does not answer.")
        return BackendUnavailable("No model backend is running.")


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise BackendUnavailable("The model backend does not answer.") from None


async def _held(
    socket: aiohttp.ClientWebSocketResponse, on_wait: Callable[[QueueState], None] | None
) -> None:
    async for message in socket:
        state = QueueState.model_validate_json(message.data)
        if state.state != "waiting":
            return
        if on_wait:
            on_wait(state)
    raise BackendUnavailable("The model backend ended while the GPU was waited for.")


async def _line(answer: aiohttp.ClientResponse, until: float | None) -> bytes:
    # Only the wait is bounded: a deadline around the generator would cut off its user instead.
    try:
        async with asyncio.timeout_at(until):
            return await answer.content.readline()
    except TimeoutError:
        raise BackendUnavailable("The model server was not ready in time.") from None


async def _refusal(answer: aiohttp.ClientResponse) -> Exception:
    text = (await answer.text()).strip() or f"HTTP {answer.status}"
    return BackendUnavailable(text) if answer.status == 503 else BackendRefused(text)
