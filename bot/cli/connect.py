"""How a command gets its backend and its agent.

backend_client    the control API, whether or not a backend answers
running_backend   the backend that runs; where none does, one of the command's own
running_agent     the agent over that backend
chat_sandboxes    the sandboxes alone: no database, no model
require_sandbox   ends a command where they isolate nothing
"""

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent.aio import BackgroundTasks
from backend.client import BackendClient, BackendUnavailable, default_socket
from backend.config import BackendConfig, ScheduledProfile, ThermalLimits
from backend.models.profile import Profile, of_file
from backend.models.profile import load as load_profile
from bot.cli.command import Failed
from bot.settings import BackendSection, ConfigurationError, Settings, config_folder, load

if TYPE_CHECKING:  # the backend's process loads nothing of the agent: 4 MiB
    from agent.approvals import AskOwners
    from agent.sandbox.isolation_probe import ProbeResult
    from agent.sandbox.sandbox import Sandboxes
    from agent.tools.context import FileSender
    from backend.service import RunningBackend
    from bot.composition import Agent

log = logging.getLogger(__name__)

TAKEOVER_SECONDS = 5.0  # more than a unit's RestartSec: a service that restarts stays the backend


def backend_client(settings: Settings) -> BackendClient:
    """The control API on the configured socket."""
    named = settings.backend.socket
    return BackendClient(Path(named) if named else default_socket(settings.state_dir))


@asynccontextmanager
async def running_backend(settings: Settings, model: str = "") -> AsyncIterator[BackendClient]:
    """The backend that runs; where none does, or it ends, one of our own until the block ends.

    `model` is a GGUF that a backend of our own runs in place of its profile's.
    """
    own = partial(own_backend, settings, model)
    async with backend_client(settings) as client:
        found = await client.answers()
        async with failover(client, own) if found else own():
            yield client


@asynccontextmanager
async def running_agent(
    settings: Settings,
    model: str = "",
    *,
    ask: "AskOwners | None" = None,
    file_sender: "Callable[[str], FileSender | None] | None" = None,
) -> "AsyncIterator[Agent]":
    """The agent over `running_backend`; await its `ready` before the model is asked."""
    from bot.composition import open_agent

    async with (
        running_backend(settings, model) as backend,
        open_agent(settings, backend, ask=ask, file_sender=file_sender) as agent,
    ):
        yield agent


@asynccontextmanager
async def chat_sandboxes(settings: Settings) -> "AsyncIterator[Sandboxes]":
    """The sandboxes of all chats."""
    from agent.sandbox.host_report import HostReport
    from bot.composition import open_sandboxes

    host = HostReport(settings.state_dir, settings.agent.timezone)
    async with backend_client(settings) as backend:
        with suppress(BackendUnavailable):
            host.status = await backend.status()
    async with open_sandboxes(settings, host) as opened:
        yield opened


async def sandbox_probe(settings: Settings) -> "ProbeResult":
    """Whether commands are isolated here, by a command."""
    from agent.errors import AgentError
    from agent.sandbox.isolation_probe import ProbeResult, probe

    try:
        async with chat_sandboxes(settings) as sandboxes:
            return await probe(await sandboxes.of("doctor"))
    except AgentError as error:
        return ProbeResult("fail", str(error), "See docs/security.md.")


async def require_sandbox(settings: Settings) -> None:
    """Raise Failed, with the remedy, where no command can be isolated: every tool would fail."""
    found = await sandbox_probe(settings)
    if found.status == "fail":
        raise Failed(f"{found.detail} {found.remedy}".strip())


# -- a backend of the command's own -------------------------------------------


@asynccontextmanager
async def own_backend(
    settings: Settings, model: str = ""
) -> "AsyncIterator[RunningBackend | None]":
    """A whole backend inside this process; None where another one came up in the same moment."""
    from backend.service import AlreadyRunning, serve_backend

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
    """For the block: `serve` a backend once the running one has been gone for `seconds`.

    Two commands may run beside each other, the second with the backend that the
    first started for its own duration.
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


def backend_config(settings: Settings, model: str = "") -> BackendConfig:
    """What a backend is started with; `model` as in `running_backend`."""
    chosen = settings.backend
    external = chosen.kind == "external"
    return BackendConfig(
        state_dir=settings.state_dir,
        socket=backend_client(settings).socket,
        kind=chosen.kind,
        profile=chosen.profile,
        server=chosen.server,
        model=model or (chosen.model if external else ""),
        bare=bool(model) and not external and chosen.profile == BackendSection().profile,
        profiles=profiles_folder(),
        urls=tuple(chosen.url) if external else (),
        context=chosen.context,
        api_key=chosen.api_key.get_secret_value(),
        connect_seconds=chosen.connect_seconds,
        schedule=schedule(settings),
        reschedule=current_schedule(settings),
        timezone=settings.agent.timezone,
        thermal=ThermalLimits(chosen.warn_celsius, chosen.hold_celsius, chosen.resume_celsius),
        proxy_port=chosen.local_port,
        proxy_key=chosen.local_key.get_secret_value(),
    )


def profiles_folder() -> Path:
    """The user's own profiles."""
    return config_folder() / "profiles"


def profile_of(name: str) -> Profile:
    """A profile by name, or a bare GGUF file as one; ProfileError where there is none."""
    if name.endswith(".gguf") or (os.sep in name and Path(name).is_file()):
        return of_file(Path(name))
    return load_profile(name, profiles_folder())


def schedule(settings: Settings) -> tuple[ScheduledProfile, ...]:
    return tuple(ScheduledProfile(each.at, each.profile) for each in settings.backend.schedule)


def current_schedule(settings: Settings) -> Callable[[], tuple[ScheduledProfile, ...]]:
    """Gives the schedule as the configuration file has it by then; while that is not valid, the
    last valid one."""
    path, last, read_at = settings.path, schedule(settings), 0  # the file's mtime, in ns

    def read() -> tuple[ScheduledProfile, ...]:
        nonlocal last, read_at
        try:
            changed = path.stat().st_mtime_ns if path else 0
            if changed != read_at:
                read_at = changed
                last = schedule(load(path))
        except (OSError, ConfigurationError) as error:
            log.warning("the schedule of the model stays as it was: %s", error)
        return last

    return read
