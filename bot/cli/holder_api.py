"""The API of the process that holds the state, on a UNIX socket of its user, for the other commands.

POST /v1/act/NAME   one of bot.acts, with its fields
GET  /v1/terminal   a terminal's connection (bot.connected_terminals)
GET  /v1/holder     shows that it is alive
POST /v1/release    gives up the state, where no bot holds it
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import click
from aiohttp import web
from pydantic import BaseModel

from agent.agent import Agent
from agent.aio import complete
from agent.chats.chats import Chats
from agent.errors import BackendAway
from agent.schedule.planner import NOTHING_RUNS
from backend.client import BackendClient, BackendUnavailable
from backend.control.listening import CLOSING_SECONDS, listen_on
from backend.files import ForeignFolder, private_folder
from bot.acts import ACTS
from bot.agent_config import open_agent
from bot.cli.command import Failed, for_person
from bot.cli.holder_client import holder_socket
from bot.cli.tool import TOOL_ACTS
from bot.connected_terminals import BotChannels, ConnectedTerminal, ConnectedTerminals, JsonFields
from bot.holder import Holder
from bot.settings import Settings
from bot.state import open_state

log = logging.getLogger(__name__)

LARGEST_BODY = 64 << 20
WHILE_OPEN = "It comes while this chat is open or the bot runs."


class FromTerminal(BaseModel):
    """A message of a terminal: one of its four parts is set."""

    say: str | None = None  # with `update`, its own name for that message, and `stranger`
    update: str = ""
    stranger: str = ""
    reply: str | None = None  # the id of a request, with the `value` asked for
    value: Any = None
    stop: bool = False
    retry: bool = False


class HolderApi:
    """The handlers of the routes. `released` is set once a bot wants the state; None where a bot holds it."""

    def __init__(self, holder: Holder, released: asyncio.Event | None) -> None:
        self.holder = holder
        self._released = released
        self._calls: set[asyncio.Task[Any]] = set()
        self._sockets: set[web.WebSocketResponse] = set()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST_BODY)
        app.add_routes(
            [
                web.post("/v1/act/{act}", self.act),
                web.get("/v1/holder", self.alive),
                web.get("/v1/terminal", self.terminal),
                web.post("/v1/release", self.release),
            ]
        )
        app.on_shutdown.append(self.close)
        return app

    async def act(self, request: web.Request) -> web.Response:
        task = asyncio.current_task()
        assert task
        self._calls.add(task)
        try:
            act = {**ACTS, **TOOL_ACTS}[request.match_info["act"]]
            return web.json_response({"result": await act(self.holder, await request.json())})
        except Exception as error:  # noqa: BLE001 - where a request ends
            return web.json_response(as_failure(error), status=409)
        finally:
            self._calls.discard(task)

    async def alive(self, request: web.Request) -> web.Response:
        return web.Response()

    async def release(self, request: web.Request) -> web.Response:
        if self._released is None:
            return web.Response(status=409)
        self._released.set()
        return web.Response(status=202)

    async def calls_ended(self) -> None:
        """Wait until no act is under way."""
        while self._calls:
            await asyncio.wait(self._calls)

    async def close(self, app: web.Application) -> None:
        """End the terminals' connections: the next holder continues their turns."""
        assert self.holder.terminals
        self.holder.terminals.closing = True
        for socket in list(self._sockets):
            await socket.close()

    async def terminal(self, request: web.Request) -> web.WebSocketResponse:
        terminals, chats, agent = self.holder.terminals, self.holder.chats, self.holder.agent
        assert terminals and chats and agent
        sent: asyncio.Queue[JsonFields] = asyncio.Queue()
        query = request.query
        interactive, client = query["interactive"] == "1", query["client"]
        terminal = ConnectedTerminal(query["chat"], interactive, sent.put_nowait, client)
        socket = web.WebSocketResponse(timeout=CLOSING_SECONDS, max_msg_size=0)
        await socket.prepare(request)
        self._sockets.add(socket)
        terminals.enter(terminal)

        async def forward() -> None:
            with suppress(ConnectionError):
                while True:
                    await socket.send_json(await sent.get())

        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(forward())]
            try:
                await serving_model(agent)
                if terminal.interactive:
                    work.append(tasks.create_task(terminals.deliver(terminal)))
                async for message in socket:
                    await self.receive(terminal, FromTerminal.model_validate_json(message.data))
            except Exception as error:  # noqa: BLE001 - where a connection ends
                with suppress(ConnectionError):
                    await socket.send_json({"type": "failed", **as_failure(error)})
            finally:
                self._sockets.discard(socket)
                for task in work:
                    task.cancel()
                await complete(terminals.leave(terminal, chats))
        return socket

    async def receive(self, terminal: ConnectedTerminal, message: FromTerminal) -> None:
        terminals, chats = self.holder.terminals, self.holder.chats
        assert terminals and chats
        if message.say is not None:
            await terminals.say(terminal, chats, message.say, message.update, message.stranger)
        elif message.reply is not None:
            terminal.replied(message.reply, message.value)
        elif message.stop:
            await chats.stop(terminal.chat)
        elif message.retry:
            terminal.send({"type": "retried", "done": await terminals.retry(terminal, chats)})


async def serving_model(agent: Agent) -> None:
    """Return once the model serves and its window is large enough.

    The backend may be that of a command which has just ended: another one takes over.
    """
    await agent.ready()
    try:
        await agent.window.check()
    except (BackendAway, BackendUnavailable):
        await agent.ready()
        await agent.window.check()


def as_failure(error: Exception) -> JsonFields:
    """Convert an error to its sentence and exit code."""
    shown = for_person(error)
    if isinstance(shown, click.ClickException):
        return {"sentence": shown.message, "exit_code": shown.exit_code}
    log.error("a command's request failed", exc_info=error)
    return {"sentence": "It failed for a reason that is in the log.", "exit_code": 1}


@asynccontextmanager
async def serve_as_bot(holder: Holder) -> AsyncIterator[None]:
    """Serve the commands while the bot holds the state (bot.holder.ServeHolder)."""
    async with serving(HolderApi(holder, None)):
        yield


@asynccontextmanager
async def serving(api: HolderApi) -> AsyncIterator[None]:
    path = holder_socket(api.holder.settings.state_dir)
    try:
        if os.geteuid():  # root uses the folder of the state's owner
            private_folder(path.parent)
    except ForeignFolder as error:
        raise Failed(str(error)) from None
    async with listen_on(api.application(), path):
        yield


@asynccontextmanager
async def serve_command(
    settings: Settings, backend: BackendClient, *, jobs: bool
) -> AsyncIterator[asyncio.Event]:
    """Serve the state from a command where no bot runs; the event is set once a bot wants it."""
    released = asyncio.Event()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_state(settings))
        terminals = ConnectedTerminals(store, None)
        channels, note = BotChannels(terminals), WHILE_OPEN if jobs else NOTHING_RUNS
        opened = open_agent(settings, backend, store, channels, jobs_note=note)
        agent = await stack.enter_async_context(opened)
        zone = settings.agent.timezone
        chats = await stack.enter_async_context(
            Chats(store, agent.run, agent.window, channels, channels, zone)
        )
        if jobs:
            from bot.service import open_scheduler

            await stack.enter_async_context(open_scheduler(settings, agent, chats))
        holder = Holder(settings, backend, store, agent, chats, terminals, runs_jobs=jobs)
        api = HolderApi(holder, released)
        await stack.enter_async_context(serving(api))
        yield released
        await api.calls_ended()
