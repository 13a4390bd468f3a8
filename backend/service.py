"""A whole backend, composed, for as long as a block lasts.

async with serve_backend(config) as backend:
    await backend.ended()
"""

import asyncio
import fcntl
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import monotonic

from backend import proc
from backend.client import default_socket
from backend.config import BackendConfig
from backend.control.alerts import Alerts
from backend.control.api import Api, listening
from backend.control.gpu_queue import GpuQueue
from backend.control.proxy import proxying
from backend.control.sd_notify import notify, watchdog_seconds
from backend.control.speed import Speedometer
from backend.control.status_board import StatusBoard
from backend.gpu.health import Health, keep_history
from backend.gpu.history import BlackBox, History
from backend.gpu.nvml import Sampler, sampling
from backend.protocol import CompletionReport, Gpu, MemoryUse, ServerStatus, Status
from backend.server.external import External
from backend.server.managed import Managed
from backend.server.warmup import Register
from backend.state import BackendState, Cards, Timing


class BackendRunning(Exception):
    """A backend already works on this state; `str` is one plain sentence."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A running backend. `socket` is where clients find it."""

    socket: Path
    state: BackendState
    _running: asyncio.Task[None]

    async def ended(self) -> None:
        """Return never; raise what ended it, were it ever to end by itself."""
        await asyncio.shield(self._running)


@asynccontextmanager
async def serve_backend(
    config: BackendConfig, *, timing: Timing | None = None
) -> AsyncIterator[Backend]:
    """Start supervisor, sampler and control API; all of it is gone when the block ends.

    Returns as soon as the API answers; the server starts behind it. Raises
    BackendRunning when another backend works on this state.
    """
    socket = config.socket or default_socket(config.state_dir)
    _folder(config.state_dir)
    _folder(config.state_dir / "run")
    _folder(socket.parent)
    with _alone(config.state_dir / "run" / "backend.lock"):
        state = _room(config, timing or Timing())
        listens = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(_run(state, socket, listens))
        try:
            await asyncio.wait({running, listens}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            yield Backend(socket, state, running)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


def _room(config: BackendConfig, timing: Timing) -> BackendState:
    sampler = Sampler()
    alerts = Alerts(config.state_dir / "alerts.jsonl")
    alerts.read()
    register = Register(config.state_dir / "prefix.json")
    register.read()
    status = ServerStatus(state="starting", kind=config.kind)
    return BackendState(
        config=config,
        status=StatusBoard(status),
        gpu_queue=GpuQueue(),
        register=register,
        speed=Speedometer(),
        timing=timing,
        cards=Cards(load=lambda: _load(sampler), holds=lambda pid: _holds(sampler, pid)),
        sampler=sampler,
        alerts=alerts,
    )


def _load(sampler: Sampler) -> float | None:
    return sampler.fresh.load if sampler.fresh else None


def _holds(sampler: Sampler, pid: int) -> bool | None:
    sample = sampler.fresh
    return sample.holds(pid) if sample else None


async def _run(state: BackendState, socket: Path, listens: "asyncio.Future[None]") -> None:
    config, began = state.config, monotonic()
    health = Health(config.thermal, state.gpu_queue, state.speed, state.news)
    history = History(config.state_dir / "history.db")
    box = BlackBox(config.state_dir / "last.json")
    if story := box.story():
        state.news("reboot", "warning", story)
    state.sampler.listeners.append(health.sample)
    engine = External(config, state.status) if config.kind == "external" else Managed(state)

    def hear(report: CompletionReport) -> None:
        health.report(report)
        engine.heard(report)

    api = Api(engine, lambda: _status(state, began), hear, state.gpu_queue, state.alerts, history)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(sampling(state.sampler, config.nvml))
        await stack.enter_async_context(listening(api, socket))
        if config.proxy_port and config.proxy_key:
            other = proxying(
                config.proxy_port, config.proxy_key, engine.endpoint, state.gpu_queue, state.signs
            )
            await stack.enter_async_context(other)
        async with asyncio.TaskGroup() as group:
            group.create_task(engine.run())
            group.create_task(keep_history(health, history, box))
            group.create_task(_tell_systemd(state.status))
            listens.set_result(None)


def _status(state: BackendState, began: float) -> Status:
    server, gpu_queue = state.status.current, state.gpu_queue
    if server.state == "ready" and (gpu_queue.holders or state.signs.programs):
        server = server.model_copy(update={"state": "busy"})
    server = server.model_copy(update={"held": gpu_queue.reason})
    memory = MemoryUse(
        backend=proc.rss_mib(os.getpid()), server=proc.rss_mib(server.pid) if server.pid else None
    )
    return Status(
        version=_version(),
        uptime_s=round(monotonic() - began, 1),
        backend=server,
        speed=state.speed.speed(),
        gpus=_gpus(state),
        memory_mib=memory,
        waiting=len(gpu_queue.waiters),
    )


def _gpus(state: BackendState) -> list[Gpu]:
    sample = state.sampler.fresh
    joule = state.speed.tokens_per_joule
    return (
        [gpu.model_copy(update={"tokens_per_joule": joule}) for gpu in sample.gpus]
        if sample
        else []
    )


def _version() -> str:
    try:
        return version("voltaire")
    except PackageNotFoundError:
        return "unknown"


async def _tell_systemd(status_board: StatusBoard) -> None:
    """READY once the API answers, STATUS with each change, WATCHDOG while the loop turns."""
    notify("READY=1")
    every = watchdog_seconds()
    async with asyncio.TaskGroup() as group:
        if every:
            group.create_task(_pet(every))
        async for status in status_board.changes():
            notify(f"STATUS={_words(status)}")


async def _pet(every: float) -> None:
    while True:
        notify("WATCHDOG=1")
        await asyncio.sleep(every)


def _words(status: ServerStatus) -> str:
    count = (
        f" {status.done:,} of {status.total:,}" if status.total and status.done is not None else ""
    )
    return f"{status.state}{count}{': ' + status.reason if status.reason else ''}"


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock at `path`; the kernel lets go of it when this process ends, however it ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise BackendRunning("A model backend already runs on this state folder.") from None
    try:
        yield
    finally:
        os.close(handle)


def _folder(path: Path) -> None:
    """A folder of ours alone: others must not put a socket or a link in its place."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.getuid(), 0):
        raise BackendRunning(f"{path} belongs to somebody else.")


__all__ = ["Backend", "BackendConfig", "BackendRunning", "serve_backend"]
