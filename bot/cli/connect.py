"""How a command gets its backend and its agent.

backend_client    the control API, whether or not a backend runs
running_backend   the backend that runs, or else one of the command's own
running_agent     the agent over that backend
chat_sandboxes    the sandboxes alone: no database, no model
require_sandbox   ends a command on a machine where no command can be isolated
"""

import asyncio
import logging
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import click

from agent.aio import BackgroundTasks
from backend.client import BackendClient, BackendUnavailable, control_socket
from bot.cli.command import Failed
from bot.cli.progress import reading_program
from bot.settings import Settings

if TYPE_CHECKING:  # 4 MiB less in the backend's process, which needs nothing of the agent
    from agent.agent import Agent
    from agent.mcp.servers import ToolServers
    from agent.sandbox.sandbox import ProbeResult, Sandboxes
    from agent.store import Store
    from backend.service import RunningBackend

log = logging.getLogger(__name__)

SILENT_SECONDS = 1.0
TAKEOVER_SECONDS = 5.0  # more than a unit's RestartSec: a service that restarts stays the backend


def backend_client(settings: Settings) -> BackendClient:
    """The control API on the configured socket."""
    return BackendClient(control_socket(settings.backend.socket, settings.state_dir))


@asynccontextmanager
async def running_backend(settings: Settings, model: str = "") -> AsyncIterator[BackendClient]:
    """The running backend. Where there is none, or it ends, one of our own serves until the block ends.

    `model` is the profile or file that our own starts with, as `--model` names it. Raises Failed where the
    running one serves another.
    """
    async with backend_client(settings) as client:
        found = await client.answers()
        if model and settings.backend.kind == "managed":
            model = await wanted_model(settings, model, client if found else None)
        own = partial(own_backend, settings, model)
        async with AsyncExitStack() as stack:
            if found or not await stack.enter_async_context(own()):
                await stack.enter_async_context(failover(client, own))
            yield client


def tell_on_stderr(line: str) -> None:
    click.echo(line, err=True)


@asynccontextmanager
async def telling_what_keeps(
    backend: BackendClient,
    say: Callable[[str], None] = tell_on_stderr,
    seconds: float = SILENT_SECONDS,
) -> AsyncIterator[None]:
    """Within the block, say what the model server does if it is not ready after `seconds`."""

    async def tell() -> None:
        with suppress(BackendUnavailable, TimeoutError):
            async with asyncio.timeout(seconds):
                async for _ in backend.ready():
                    pass
            return
        with suppress(BackendUnavailable):
            told = ""
            async for state in backend.ready():
                if not state.serving and state.state != told:
                    told = state.state
                    say(f"· the model: {told} …")

    async with BackgroundTasks() as tasks:
        tasks.start(tell(), "telling what the model server does")
        yield


async def wanted_model(settings: Settings, model: str, running: BackendClient | None) -> str:
    """The profile or file that `model` names, downloaded first; it is what a running backend has to serve."""
    from bot.cli.backend_config import backend_config, model_named, profile_of

    name = await model_named(model, backend_config(settings), tell_on_stderr)
    if running:
        serves = (await running.status()).backend.profile
        if serves != (await asyncio.to_thread(profile_of, name)).name:
            raise Failed(
                f"The backend that runs serves {serves}. Switch it: voltaire model use {shlex.quote(model)}"
            )
    return name


@asynccontextmanager
async def running_agent(
    settings: Settings, model: str = "", store: "Store | None" = None
) -> "AsyncIterator[Agent]":
    """An agent on `running_backend`, which runs no turns. Await its `ready` before asking the model."""
    from bot.agent_config import open_agent

    async with (
        running_backend(settings, model) as backend,
        open_agent(settings, backend, store) as agent,
    ):
        yield agent


@asynccontextmanager
async def chat_sandboxes(
    settings: Settings, store: "Store | None" = None
) -> "AsyncIterator[Sandboxes]":
    """The sandboxes of all chats. What they do is recorded in the store's ledger, if one is given."""
    with reading_program():
        from agent.agent import open_sandboxes
        from agent.sandbox.host_report import HostReport
        from bot.agent_config import agent_config

    host = HostReport(settings.state_dir, settings.agent.timezone)
    async with backend_client(settings) as backend:
        with suppress(BackendUnavailable):
            host.status = await backend.status()
    async with open_sandboxes(agent_config(settings), host, store) as opened:
        yield opened


def configured_servers(
    settings: Settings, store: "Store", sandboxes: "Sandboxes"
) -> "AbstractAsyncContextManager[ToolServers]":
    """The MCP servers of the configuration."""
    from agent.mcp.servers import open_servers
    from bot.agent_config import agent_config

    return open_servers(agent_config(settings).mcp, sandboxes, settings.state_dir, store)


async def sandbox_probe(settings: Settings) -> "ProbeResult":
    """Run a command in a sandbox, to find out whether this machine can isolate commands."""
    from agent.errors import AgentError
    from agent.sandbox.sandbox import ProbeResult, probe
    from bot.state import make_private

    make_private(settings.state_dir)
    try:
        async with chat_sandboxes(settings) as sandboxes:
            return await probe(await sandboxes.of("doctor"))
    except AgentError as error:
        return ProbeResult("fail", str(error), "See docs/security.md.")


async def require_sandbox(settings: Settings) -> None:
    """Raise Failed, with the remedy, where no command can be isolated: no tool would work."""
    found = await sandbox_probe(settings)
    if found.status == "fail":
        raise Failed(f"{found.detail} {found.remedy}".strip())


# -- a backend of the command's own -------------------------------------------


@asynccontextmanager
async def own_backend(
    settings: Settings, model: str = ""
) -> "AsyncIterator[RunningBackend | None]":
    """A backend inside this process; None where another process started one at the same moment."""
    from backend.service import AlreadyRunning, serve_backend
    from bot.cli.backend_config import backend_config

    async with AsyncExitStack() as stack:
        backend = None
        with suppress(AlreadyRunning):
            config = backend_config(settings, model)
            backend = await stack.enter_async_context(serve_backend(config))
        yield backend


@asynccontextmanager
async def failover(
    client: BackendClient,
    serve: "Callable[[], AbstractAsyncContextManager[RunningBackend | None]]",
    seconds: float = TAKEOVER_SECONDS,
) -> AsyncIterator[None]:
    """Within the block, `serve` a backend once the running one has been gone for `seconds`.

    The running one may belong to another command, which ends it with itself.
    """

    async def take_over() -> None:
        while True:
            with suppress(BackendUnavailable):  # the stream of alerts ends with the backend
                async for _ in client.events():
                    pass
            if not await client.answers_within(seconds):
                async with serve() as backend:
                    if backend:
                        await backend.ended()

    async with BackgroundTasks() as tasks:
        tasks.start(take_over(), "taking over the backend")
        yield
