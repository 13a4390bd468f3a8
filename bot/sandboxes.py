"""The sandboxes as the settings want them."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from agent.sandbox import sandboxes
from agent.sandbox.host_report import HostReport
from agent.sandbox.hosts import Hosts
from agent.sandbox.limits import HostRepo, SandboxLimits
from agent.sandbox.sandboxes import Sandboxes
from backend.client import BackendClient, BackendUnavailable
from bot.backend_connection import socket_of
from bot.settings import Settings
from bot.state import private


def open_sandboxes(settings: Settings, host: HostReport) -> AbstractAsyncContextManager[Sandboxes]:
    """The sandboxes of all chats, as the settings bound them."""
    box = settings.agent.sandbox
    bounds = SandboxLimits(
        box.memory_mib, box.pids, box.disk_mib, box.files, box.command_seconds, box.output_kib
    )
    repos = [HostRepo(name, repo.path, repo.write) for name, repo in settings.agent.repos.items()]
    return sandboxes.open_sandboxes(
        settings.state_dir,
        limits=bounds,
        repos=repos,
        zone=settings.agent.timezone,
        report=host.text,
        hosts=hosts_of(settings),
    )


def hosts_of(settings: Settings) -> Hosts | None:
    """What may be reached; None: no network."""
    box = settings.agent.sandbox
    return Hosts(tuple(box.allow_hosts)) if box.network else None


@asynccontextmanager
async def open_sandboxes_of(settings: Settings) -> AsyncIterator[Sandboxes]:
    """The sandboxes alone: no database, no model."""
    private(settings.state_dir)
    host = HostReport(settings.state_dir, settings.agent.timezone)
    async with BackendClient(socket_of(settings)) as backend:
        with suppress(BackendUnavailable):
            host.status = await backend.status()
    async with open_sandboxes(settings, host) as opened:
        yield opened
