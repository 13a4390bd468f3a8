"""How commands reach the process that holds the state, or hold it themselves where none does.

holding_state   the lock that says which process it is
change          makes one change
with_holder     runs a command's work with a holder, which may be another one after a while
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import aiohttp
from aiohttp import WSMsgType

from backend.aio import first_of
from backend.client import ANSWER_SECONDS, BackendClient, default_socket, unix_session
from backend.files import exclusive_lock, private_folder
from bot.cli.command import Failed, Misused, NoBackend
from bot.cli.progress import reading_program
from bot.settings import Settings

T = TypeVar("T")
JsonFields = dict[str, Any]

SOCKET = "bot.sock"
LOCK = Path("run") / "bot.lock"  # in the state folder; the holder's process id is in it
AGAIN_SECONDS = 0.05  # between two attempts to reach a holder or to become it
YIELD_SECONDS = 5.0  # that a command leaves to the bot which asked it for the state
PATIENCE_SECONDS = 20.0  # for a holder that starts or ends


class HolderGone(Exception):
    """No holder answers, or it ended; nothing is lost: the next one continues."""


def holder_socket(state: Path) -> Path:
    return default_socket(state, SOCKET)


@contextmanager
def holding_state(state: Path) -> Iterator[None]:
    """Hold the state for the block. Raises BlockingIOError where another process does."""
    lock = state / LOCK
    for folder in (state, lock.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = holder_socket(state).parent
    if folder != lock.parent:  # the state's own path is too long for one
        private_folder(folder)
    with exclusive_lock(lock):
        lock.write_text(str(os.getpid()), "ascii")
        if os.geteuid() == 0:  # a command that stays root
            owner = state.stat()
            for path in (lock.parent, lock):
                os.chown(path, owner.st_uid, owner.st_gid)
        yield


def holder_pid(state: Path) -> str:
    with suppress(OSError):
        return (state / LOCK).read_text("ascii")
    return "?"


class HolderEnded(Failed):
    """The holder ended while it made a change: whether it was made is unknown."""


class Terminal:
    """A connection on which messages go both ways (bot.connected_terminals)."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def send(self, **message: Any) -> None:
        try:
            await self._socket.send_json(message)
        except (OSError, aiohttp.ClientError):
            raise HolderGone from None

    async def receive(self) -> JsonFields:
        """The next message. Raises HolderGone, and Failed with the holder's sentence."""
        message = await self._socket.receive()
        if message.type is not WSMsgType.TEXT:
            raise HolderGone
        found: JsonFields = json.loads(message.data)
        if found["type"] == "failed":
            raise failure(found)
        return found


class HolderClient:
    """A client of the process that holds the state. Every method may raise HolderGone, and Failed with the
    holder's sentence."""

    def __init__(self, state: Path) -> None:
        self._socket = holder_socket(state)

    async def __aenter__(self) -> Self:
        self._session = unix_session(self._socket)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def call(self, act: str, /, **fields: Any) -> Any:
        """Call a function of bot.acts in the holder, and return its result."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS), self._session.get("/v1/holder"):
                pass
        except (OSError, aiohttp.ClientError):
            raise HolderGone from None
        try:
            async with self._session.post(f"/v1/act/{act}", json=fields) as answer:
                found = await answer.json()
        except (OSError, aiohttp.ClientError):
            raise HolderEnded("The bot ended meanwhile; this may be done in part.") from None
        if answer.status >= 400:
            raise failure(found)
        return found["result"]

    @asynccontextmanager
    async def terminal(
        self, chat: str, *, interactive: bool, client: str = ""
    ) -> AsyncIterator[Terminal]:
        query = {"chat": chat, "interactive": str(int(interactive)), "client": client}
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                socket = await self._session.ws_connect(
                    "/v1/terminal", params=query, max_msg_size=0
                )
        except (OSError, aiohttp.ClientError):
            raise HolderGone from None
        async with socket:
            yield Terminal(socket)

    async def release(self) -> bool:
        """Ask the holder to give up the state; False where it is a bot, which does not."""
        try:
            async with (
                asyncio.timeout(ANSWER_SECONDS),
                self._session.post("/v1/release") as answer,
            ):
                return answer.status < 400
        except (OSError, aiohttp.ClientError):
            raise HolderGone from None


def failure(answer: JsonFields) -> Failed:
    known = {kind.exit_code: kind for kind in (Misused, NoBackend)}
    return known.get(answer["exit_code"], Failed)(answer["sentence"])


class Patience:
    """Limits the wait for a holder that starts or ends."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self.renew()

    def renew(self) -> None:
        self._until = asyncio.get_running_loop().time() + PATIENCE_SECONDS

    async def wait(self) -> None:
        pid = holder_pid(self._state)
        # A bot that starts in this very process (setup, demo) needs longer on a busy machine; its failure is seen.
        if pid != str(os.getpid()) and asyncio.get_running_loop().time() > self._until:
            raise Failed(f"Process {pid} holds the state in {self._state} and does not answer.")
        await asyncio.sleep(AGAIN_SECONDS)


async def change(settings: Settings, act: str, /, **fields: Any) -> Any:
    """Make a change in the process that holds the state, or in this one where none does."""
    patience = Patience(settings.state_dir)
    async with HolderClient(settings.state_dir) as client:
        while True:
            with suppress(HolderGone):
                return await client.call(act, **fields)
            try:
                with holding_state(settings.state_dir):
                    from bot.acts import ACTS
                    from bot.cli.connect import backend_client
                    from bot.holder import Holder
                    from bot.state import open_state

                    async with open_state(settings) as store, backend_client(settings) as backend:
                        holder = Holder(
                            settings, backend, store, profiles=partial(profile_names, settings)
                        )
                        return await ACTS[act](holder, fields)
            except BlockingIOError:
                await patience.wait()


def profile_names(settings: Settings) -> list[str]:
    """The profiles that a backend could serve; none with an external server."""
    from backend.models.profile import names
    from bot.cli.backend_config import profiles_folder

    return names(profiles_folder()) if settings.backend.kind == "managed" else []


async def record_act(settings: Settings, **facts: str | float) -> None:
    """Record in the ledger, where there is a state, what somebody did in the terminal."""
    from bot.state import DATABASE

    if (settings.state_dir / DATABASE).exists():
        await change(settings, "record", **facts)


async def with_holder(
    settings: Settings,
    backend: BackendClient,
    work: Callable[[HolderClient], Coroutine[Any, Any, T]],
    *,
    jobs: bool = False,
) -> T:
    """Return the result of `work`, which starts again with the next holder if one ends meanwhile.

    Where there is none, this process holds the state until the work is done or a bot wants it. With
    `jobs` scheduled jobs run meanwhile.
    """
    patience, now, yielded = Patience(settings.state_dir), asyncio.get_running_loop().time, 0.0
    while True:
        began = now()
        async with HolderClient(settings.state_dir) as client:
            with suppress(HolderGone):
                return await work(client)
        if now() - began > 1.0:  # there was a holder
            patience.renew()
        with ExitStack() as stack:
            try:
                if now() < yielded:
                    raise BlockingIOError
                stack.enter_context(holding_state(settings.state_dir))
            except BlockingIOError:
                await patience.wait()
                continue
            with reading_program():
                from bot.cli.holder_api import serve_command

            with suppress(HolderGone):
                async with (
                    serve_command(settings, backend, jobs=jobs) as released,
                    HolderClient(settings.state_dir) as client,
                ):
                    working, _ = await first_of(work(client), released.wait())
                    if not working.cancelled():
                        return cast(T, working.result())
        patience.renew()
        yielded = now() + YIELD_SECONDS


@asynccontextmanager
async def holding_as_bot(settings: Settings) -> AsyncIterator[None]:
    """Hold the state for the block, taking it over from a command. Raises Failed where another bot holds it."""
    patience = Patience(settings.state_dir)
    async with HolderClient(settings.state_dir) as client:
        with ExitStack() as stack:
            while True:
                try:
                    stack.enter_context(holding_state(settings.state_dir))
                    break
                except BlockingIOError:
                    with suppress(HolderGone):
                        if not await client.release():
                            pid = holder_pid(settings.state_dir)
                            raise Failed(
                                f"Another bot runs on this state (process {pid})."
                            ) from None
                        patience.renew()  # it may wait for a tool
                    await patience.wait()
            yield
