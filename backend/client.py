"""The control API's client, for the bot, the agent and the command line.

async with BackendClient(socket) as backend:
    async for state in backend.ready():
        ...
    async with backend.acquire_gpu("cli", PERSON) as lease:
        ...
"""

import asyncio
import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlencode

import aiohttp

from backend.protocol import (
    Alert,
    CompletionReport,
    Endpoint,
    ForgottenChat,
    GpuMinute,
    JsonObject,
    LentTime,
    Phrase,
    Prefix,
    Priority,
    ProfileChoice,
    ProfileSummary,
    QueueAnswer,
    QueueMessage,
    QueuePlace,
    QueueState,
    ServerState,
    Status,
)

ANSWER_SECONDS = 10.0  # the control API answers from memory; longer means that it hangs
ENDPOINT_SECONDS = 30.0  # external servers are queried first
URGENT_SECONDS = 600.0  # others' urgent words come first
LEND_SECONDS = 90.0  # the running step ends, prompts are saved, the model is unloaded
PICTURE_SECONDS = 70.0  # drawn in a separate process
CLOSING = aiohttp.ClientWSTimeout(ws_close=1.0)  # seconds; a hanging backend never answers a close
RETRY_SECONDS = 0.1  # between two attempts to find a backend
PUBLIC_SOCKET = "status.sock"  # in the unit's RUNTIME_DIRECTORY: GET /v1/status, for the group
LONGEST_SOCKET = 100  # bytes
NO_ANSWER = Phrase("The model backend does not answer.")
OnQueueState = Callable[[QueueState], None]


class BackendUnavailable(Exception):
    """No backend answers, or its server cannot serve; raised with one sentence (Phrase)."""


class BackendGone(BackendUnavailable):
    """No backend answers, or it ended: another one may take over."""


class BackendRefused(Exception):
    """The backend rejected the request; raised with its sentence (Phrase)."""


class GpuLease:
    """A place in the queue and, once granted, the right to one request on the GPU.

    `wanted` is set when something more urgent waits, so that idle work can stop.
    """

    def __init__(self, queue: "QueueConnection", id: int) -> None:
        self.wanted = asyncio.Event()
        self.states: asyncio.Queue[QueueState | None] = asyncio.Queue()
        self._queue = queue
        self._id = id

    async def granted(self, on_wait: OnQueueState | None) -> None:
        """Wait for the grant; `on_wait` is called with each state until then."""
        while (state := await self.states.get()) and state.state == "waiting":
            if on_wait:
                on_wait(state)
        if state is None:
            raise BackendUnavailable(Phrase("The model backend ended while waiting for the GPU."))

    async def heartbeat(self, tokens: int) -> None:
        """Show that the open request makes progress: tokens read and written so far."""
        await self._queue.send(QueueMessage(id=self._id, tokens=tokens))

    async def report(self, report: CompletionReport) -> None:
        """Report how a request ended, for the speed figures and the stall detector.

        The backend processes it before the lease ends.
        """
        await self._queue.send(QueueMessage(id=self._id, report=report))

    async def save(self) -> None:
        """Have the prompt that was just read written to the chat's file; the lease lasts until it is."""
        await self._queue.send(QueueMessage(id=self._id, save=True))


class QueueConnection:
    """A program's connection to the queue, which carries all its leases; they end with it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._leases: dict[int, GpuLease] = {}
        self._numbers = itertools.count(1)
        self._reader = asyncio.create_task(self._read())

    @property
    def open(self) -> bool:
        return not self._reader.done()

    @asynccontextmanager
    async def lease(
        self, place: QueuePlace, on_wait: OnQueueState | None
    ) -> AsyncIterator[GpuLease]:
        """Join the queue, wait for the grant, and hold it for the block."""
        number = next(self._numbers)
        lease = self._leases[number] = GpuLease(self, number)
        try:
            await self.send(QueueMessage(id=number, enter=place))
            await lease.granted(on_wait)
            yield lease
        finally:
            del self._leases[number]
            await self.send(QueueMessage(id=number, left=True))

    async def send(self, message: QueueMessage) -> None:
        with suppress(ConnectionError, aiohttp.ClientError):  # must not fail the request itself
            await self._socket.send_str(message.model_dump_json(exclude_defaults=True))

    async def close(self) -> None:
        self._reader.cancel()
        await asyncio.wait([self._reader])
        await self._socket.close()

    async def _read(self) -> None:
        try:
            async for message in self._socket:
                answer = QueueAnswer.model_validate_json(message.data)
                if lease := self._leases.get(answer.id):
                    lease.states.put_nowait(answer.state)
                    if answer.state.state == "wanted":
                        lease.wanted.set()
        finally:
            for lease in self._leases.values():
                lease.states.put_nowait(None)


def default_socket(state_dir: Path, name: str = "backend.sock") -> Path:
    """Where a control API listens by default.

    AF_UNIX paths are limited to 107 bytes; a longer one is replaced by a path in a private
    folder under /tmp.
    """
    path = state_dir / "run" / name
    if len(os.fsencode(path)) <= LONGEST_SOCKET:
        return path
    digest = hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"voltaire-{os.getuid()}-{digest}" / name


def control_socket(named: str, state_dir: Path) -> Path:
    """The socket that the configuration names, else the default one."""
    return Path(named) if named else default_socket(state_dir)


class BackendClient:
    """Talks to the backend on `socket`. Every method may raise BackendUnavailable."""

    def __init__(self, socket: Path, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.socket = socket
        self._answer_seconds = answer_seconds
        self._session: aiohttp.ClientSession | None = None
        self._queue: QueueConnection | None = None
        self._connecting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._session = unix_session(self.socket)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._queue:
            await self._queue.close()
        await self.session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        assert self._session, "use `async with BackendClient(...)`"
        return self._session

    async def answers(self) -> bool:
        """Whether a backend answers now."""
        try:
            await self.status()
        except BackendUnavailable:
            return False
        return True

    async def answers_within(self, seconds: float) -> bool:
        """Whether a backend answers now, or does so within that time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not await self.answers():
                    await asyncio.sleep(RETRY_SECONDS)
                return True
        return False

    async def status(self) -> Status:
        return Status.model_validate_json(await self._request("GET", "/v1/status"))

    async def endpoint(self, *, vision: bool = False) -> Endpoint:
        """Return the URL and key for completions, which may change with every restart of llama-server.

        With `vision`, a server that does not say whether it accepts pictures is tested with a tiny one, once.
        """
        path = "/v1/endpoint?vision=1" if vision else "/v1/endpoint"
        text = await self._request("GET", path, seconds=ENDPOINT_SECONDS)
        return Endpoint.model_validate_json(text)

    async def ready(self, deadline: float | None = None) -> AsyncGenerator[ServerState]:
        """Yield the server's state at each change, until it serves.

        Raises BackendUnavailable with the reason when the server has failed, when the backend ends, or when it does
        not serve within `deadline` seconds; time in which the card is lent does not count.
        """
        now, lent = asyncio.get_running_loop().time, False
        until = None if deadline is None else now() + deadline
        async with self._open("POST", "/v1/ready") as answer:
            while True:
                # Only around the read: a deadline around the whole generator would cancel its consumer.
                try:
                    async with asyncio.timeout_at(None if lent else until):
                        line = await answer.content.readline()
                except TimeoutError:
                    late = Phrase("The model server was not ready in time.")
                    raise BackendUnavailable(late) from None
                if not line:
                    break
                state = ServerState.model_validate_json(line)
                if state.state == "failed":
                    raise BackendUnavailable(state.reason or Phrase("The model server has failed."))
                yield state
                if state.serving:
                    return
                if lent and deadline is not None:
                    until = now() + deadline
                lent = state.lent_until is not None
        raise BackendGone(Phrase("The model backend ended while waiting for it."))

    async def warm(
        self, messages: Sequence[JsonObject], tools: Sequence[JsonObject] = (), before: str = ""
    ) -> None:
        """Register the fixed prefix that is kept warm. Returns at once."""
        prefix = Prefix(messages=[*map(dict, messages)], tools=[*map(dict, tools)], before=before)
        await self._request("POST", "/v1/warm", prefix.model_dump_json())

    async def forget_chat(self, chat: str) -> None:
        """Delete what is saved of the chat's prompts."""
        body = ForgottenChat(chat=chat).model_dump_json()
        await self._request("POST", "/v1/forget", body)

    async def restart(self) -> None:
        """Restart llama-server at once with its full settings; open turns continue when it is ready."""
        await self._request("POST", "/v1/restart", "{}")

    async def lend(self, seconds: float) -> Phrase:
        """Unload the model for that time, or load it again (0); return a sentence on what was done."""
        body = LentTime(seconds=seconds).model_dump_json()
        return Phrase.from_body(await self._request("POST", "/v1/lend", body, LEND_SECONDS))

    async def answer_urgent(self, words: str) -> Phrase:
        """Have a small model answer these words alone, while the card is lent."""
        return Phrase.from_body(await self._request("POST", "/v1/urgent", words, URGENT_SECONDS))

    async def use_profile(self, name: str) -> AsyncGenerator[ServerState]:
        """Switch the profile between turns; yields states until the new one serves.

        Raises BackendRefused when there is no such profile, or when it did not start and
        the old one was restored.
        """
        body = ProfileChoice(name=name).model_dump_json()
        async with self._open("POST", "/v1/profile", body) as answer:
            async for line in answer.content:
                state = ServerState.model_validate_json(line)
                if state.state == "failed":
                    raise BackendRefused(
                        state.reason or Phrase("{name} could not be started.", name=name)
                    )
                yield state

    async def profiles(self) -> list[ProfileSummary]:
        """Every profile, those whose model is here first; none with an external server."""
        lines = (await self._request("GET", "/v1/profiles")).splitlines()
        return [ProfileSummary.model_validate_json(line) for line in lines]

    async def gpu_history(self, minutes: int) -> list[GpuMinute]:
        """The last minutes, oldest first."""
        lines = (await self._request("GET", f"/v1/gpu/history?minutes={minutes}")).splitlines()
        return [GpuMinute.model_validate_json(line) for line in lines]

    async def gpu_picture(
        self,
        hours: int = 3,
        *,
        theme: str = "light",
        zone: str = "UTC",
        words: Mapping[str, str] | None = None,
    ) -> bytes:
        """A PNG of temperature, power and speed over the last hours, in portrait format for a phone.

        `theme` is light or dark, `zone` an IANA name, `words` maps the English labels to their
        translations. BackendRefused when there is nothing to draw yet.
        """
        asked = {"hours": hours, "theme": theme, "zone": zone, "words": json.dumps(words or {})}
        path = f"/v1/gpu/picture?{urlencode(asked)}"
        async with within(PICTURE_SECONDS), self._open("GET", path) as answer:
            return await answer.read()

    async def gpu_drawings(self, minutes: int, step: int = 1, *, zone: str = "UTC") -> list[str]:
        """An SVG for each of temperature, power, speed, clock and memory over the last minutes.

        They have no colours but the classes ink, faint, marked (throttled) and line0 to line3, for the
        page's style sheet. Values are averages of `step` minutes. BackendRefused when there is nothing
        to draw yet.
        """
        asked = {"minutes": minutes, "step": step, "zone": zone}
        found = json.loads(await self._request("GET", f"/v1/gpu/drawings?{urlencode(asked)}"))
        return [str(drawing) for drawing in found]

    async def logs(self, lines: int = 100) -> list[str]:
        return (await self._request("GET", f"/v1/logs?lines={lines}")).splitlines()

    async def metrics(self) -> str:
        """The backend's figures in Prometheus's text format."""
        return await self._request("GET", "/metrics")

    async def events(self, after: int = 0) -> AsyncGenerator[Alert]:
        """Alerts with an id above `after`: the stored ones first, then each new one."""
        async with self._open("GET", f"/v1/events?after={after}") as answer:
            async for line in answer.content:
                if line.strip():
                    yield Alert.model_validate_json(line)

    @asynccontextmanager
    async def acquire_gpu(
        self, chat: str, priority: Priority = 0, on_wait: OnQueueState | None = None
    ) -> AsyncIterator[GpuLease]:
        """Wait for the GPU and hold it for the block, one model call.

        `on_wait` is called with each change while waiting.
        """
        queue = await self._connected()
        async with queue.lease(QueuePlace(chat=chat, priority=priority), on_wait) as lease:
            yield lease

    @asynccontextmanager
    async def turn(self, chat: str, on_wait: OnQueueState | None = None) -> AsyncIterator[None]:
        """Prevent a switch of the profile for the block; `on_wait` is told why a turn cannot begin yet."""
        queue = await self._connected()
        async with queue.lease(QueuePlace(chat=chat, turn=True), on_wait):
            yield

    async def _connected(self) -> QueueConnection:
        """The open connection to the queue, or a new one."""
        async with self._connecting:
            if not self._queue or not self._queue.open:
                try:
                    socket = await self.session.ws_connect(
                        "/v1/leases", max_msg_size=65536, timeout=CLOSING
                    )
                except (OSError, aiohttp.ClientError) as error:
                    raise unavailable(error) from None
                self._queue = QueueConnection(socket)
            return self._queue

    async def _request(
        self, method: str, path: str, body: str | None = None, seconds: float | None = None
    ) -> str:
        """The text of the answer; BackendUnavailable unless it is complete within `seconds`."""
        async with (
            within(seconds or self._answer_seconds),
            self._open(method, path, body) as answer,
        ):
            return await answer.text()

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, body: str | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self.session.request(method, path, data=body) as answer:
                if answer.status >= 400:
                    why = Phrase.from_body((await answer.text()).strip() or f"HTTP {answer.status}")
                    raise BackendUnavailable(why) if answer.status == 503 else BackendRefused(why)
                yield answer
        except (OSError, aiohttp.ClientError) as error:
            raise unavailable(error) from None


def unix_session(socket: Path) -> aiohttp.ClientSession:
    """A session whose requests go to a UNIX socket."""
    connector = aiohttp.UnixConnector(path=str(socket), limit=0)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=ANSWER_SECONDS)
    return aiohttp.ClientSession("http://socket", connector=connector, timeout=timeout)


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise BackendUnavailable(NO_ANSWER) from None


def unavailable(error: Exception) -> BackendGone:
    hangs = isinstance(error, TimeoutError)
    return BackendGone(NO_ANSWER if hangs else Phrase("No model backend is running."))
