"""A whole backend, running for the duration of a context manager.

async with serve_backend(config) as backend:
    await backend.ended()
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from backend.client import PUBLIC_SOCKET, default_socket
from backend.config import BackendConfig
from backend.control.api import Api, listening
from backend.control.proxy import proxying
from backend.control.sd_notify import report_to_systemd
from backend.files import exclusive_lock, private_folder
from backend.gpu.health import Health, keep_history
from backend.gpu.history import History, LastSampleFile
from backend.gpu.nvml import sampling
from backend.server.embedding import EmbeddingServer
from backend.server.external import ExternalServers
from backend.server.managed import ManagedServer
from backend.server.urgent import UrgentModel
from backend.state import BackendState, Timing


class AlreadyRunning(Exception):
    """A backend already uses this state folder; `str` is one plain sentence."""


@dataclass(frozen=True, slots=True)
class RunningBackend:
    """A running backend. Clients connect to `socket`."""

    socket: Path
    state: BackendState
    _running: asyncio.Task[None]

    async def ended(self) -> None:
        """Wait forever; raise the error that ended the backend, if it fails."""
        await asyncio.shield(self._running)


@asynccontextmanager
async def serve_backend(
    config: BackendConfig, *, timing: Timing | None = None
) -> AsyncIterator[RunningBackend]:
    """Start supervisor, sampler and control API; everything is stopped when the block ends.

    Enters the block as soon as the API answers; the server starts in the background. Raises
    AlreadyRunning when another backend uses this state folder, ForeignFolder when it is another user's.
    """
    socket = config.socket or default_socket(config.state_dir)
    async with AsyncExitStack() as stack:
        try:
            private_folder(config.state_dir.resolve())  # its path may be a link that the owner made
            for folder in (config.state_dir / "run", socket.parent):
                private_folder(folder)
            stack.enter_context(exclusive_lock(config.state_dir / "run" / "backend.lock"))
        except BlockingIOError:
            raise AlreadyRunning("A model backend already runs on this state folder.") from None
        if socket.parent != config.state_dir / "run" and socket == default_socket(config.state_dir):
            stack.callback(remove_empty, socket.parent)
        state = BackendState.load(config, timing or Timing())
        history = History(config.state_dir / "history.db")
        last_sample = LastSampleFile(config.state_dir / "last.json")
        if reboot := last_sample.unclean_reboot():
            state.alerts.add("reboot", "warning", reboot)
        health = Health(config.thermal, state.gpu_queue, state.speed, state.alerts.add)
        state.sampler.listeners += [health.sample, state.idle_cost.sample]
        external = config.kind == "external"
        server: ManagedServer | ExternalServers = (
            ExternalServers(config, state.status, state.alerts.add)
            if external
            else ManagedServer(state)
        )
        await stack.enter_async_context(sampling(state.sampler, config.nvml))
        embedding = EmbeddingServer(state)
        api = Api(state, server, health, history, embedding, UrgentModel(state))
        await stack.enter_async_context(listening(api, socket))
        # Set by the system-wide systemd unit, whose group may read the status.
        if shared := os.environ.get("RUNTIME_DIRECTORY"):
            public = Path(shared) / PUBLIC_SOCKET
            await stack.enter_async_context(listening(api, public, group_status=True))
        if config.proxy_port and config.proxy_key:
            await stack.enter_async_context(proxying(state, server.endpoint))

        async def run() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(server.run())
                group.create_task(embedding.run())
                group.create_task(keep_history(health, history, last_sample))
                group.create_task(report_to_systemd(state.status))

        running = asyncio.create_task(run())
        try:
            yield RunningBackend(socket, state, running)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


def remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


__all__ = ["AlreadyRunning", "BackendConfig", "RunningBackend", "serve_backend"]
