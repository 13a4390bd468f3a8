"""What the parts of a running backend share, the status made of it, and the history of restarts."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import monotonic
from typing import Any
from zoneinfo import ZoneInfo

from backend import proc
from backend.config import BackendConfig
from backend.control.alerts import Alerts
from backend.control.gpu_queue import GpuRequestQueue
from backend.control.speed import IdleCost, Speedometer
from backend.files import read_json_lines, write_json_lines
from backend.gpu.nvml import Sampler
from backend.protocol import MemoryUse, Phrase, Restart, ServerStatus, Status
from backend.server.canary import CanaryRecord
from backend.server.process import FIRST_S, RETRY_S
from backend.server.warmup import PrefixStore

KEPT = 500
LOGGED = "state", "profile", "model", "n_ctx", "pid", "restarts", "reason"  # of the server's status
RESTARTS = "restarts.jsonl"  # in the state folder


class RestartHistory:
    """A JSON Lines file at `path`, the newest restart last."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Restart]:
        return read_json_lines(self.path, Restart, KEPT)

    def add(self, cause: Phrase) -> Restart:
        """Record a restart at the present time; on a full disk only the log has it."""
        restart = Restart(at=datetime.now(UTC).replace(microsecond=0), cause=cause)
        log.info("restart cause=%s", cause)
        write_json_lines(self.path, [*self.read(), restart][-KEPT:])
        return restart


log = logging.getLogger(__name__)

PROXY = "proxy"  # the chat name under which the requests of other local programs queue


class NotReady(Exception):
    """There is no endpoint at present; raised with the reason (Phrase)."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Waits and limits in seconds, which tests make short."""

    first_pause: float = FIRST_S
    retry: float = RETRY_S
    stall: float = 30.0
    stopped: float = 3.0
    load_stall: float = 120.0
    longest_load: float = 1800.0
    wake: float = 10.0  # for one token, after a sleep of the machine
    look_busy: float = 1.0
    look_idle: float = 5.0
    restore: float = 86_400.0  # at reduced memory before the full settings are tried again
    look_schedule: float = 30.0
    canary: float = 10.0  # of service before it is checked that conversations stay separate
    least_saved: float = 2.0  # of reading, that writing a chat's prompt to the disk has to save
    clock: Callable[[], float] = time.time  # since the epoch; used by the schedule
    suspended: Callable[[], float] = proc.suspended_seconds  # how long the machine has slept


class StatusBoard:
    """The model server's status, with a stream of its changes. Only the supervisor writes it."""

    def __init__(self, status: ServerStatus) -> None:
        self.current = status
        self._changed = asyncio.Event()

    def set(self, **changes: Any) -> None:
        before, self.current = self.current, self.current.model_copy(update=changes)
        if (before.state, before.profile) != (self.current.state, self.current.profile):
            facts = (f"{name}={getattr(self.current, name)}" for name in LOGGED)
            log.info("server %s", " ".join(facts))
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def changes(self) -> AsyncGenerator[ServerStatus]:
        """The current status, then the status after each change; a slow reader sees only the newest."""
        while True:
            changed = self._changed
            yield self.current
            await changed.wait()


@dataclass(slots=True)
class ClientActivity:
    """Activity of clients' open requests."""

    heartbeats: int = 0  # any change counts as progress for the stall detector
    proxied: int = 0  # open requests of other local programs


@dataclass(frozen=True, slots=True)
class BackendState:
    config: BackendConfig
    status: StatusBoard
    alerts: Alerts
    prefixes: PrefixStore
    canary: CanaryRecord
    timing: Timing
    restarts: RestartHistory
    idle_cost: IdleCost
    gpu_queue: GpuRequestQueue = field(default_factory=GpuRequestQueue)
    speed: Speedometer = field(default_factory=Speedometer)
    sampler: Sampler = field(default_factory=Sampler)
    activity: ClientActivity = field(default_factory=ClientActivity)
    began: float = field(default_factory=monotonic)

    @classmethod
    def load(cls, config: BackendConfig, timing: Timing) -> "BackendState":
        """The state of a starting backend, with what earlier ones saved. Blocks."""
        history = RestartHistory(config.state_dir / "restarts.jsonl")
        earlier = history.read()
        last = earlier[-1] if earlier else None
        status = StatusBoard(ServerStatus(state="starting", kind=config.kind, last_restart=last))
        history.add(Phrase("The backend was started."))
        alerts = Alerts(config.state_dir / "alerts.jsonl")
        alerts.read()
        prefixes = PrefixStore(config.state_dir / "prefix.json")
        prefixes.read()
        canary = CanaryRecord(config.state_dir / "canary.json")
        canary.read()
        idle = IdleCost(config.state_dir / "idle.json", timing.clock)
        idle.read()
        queue = GpuRequestQueue(on_idle=idle.held)
        return cls(config, status, alerts, prefixes, canary, timing, history, idle, queue)

    @property
    def server_record(self) -> Path:
        """The file that identifies the running server, so that a later backend can end it."""
        return self.config.state_dir / "run" / "server.json"

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.timing.clock(), ZoneInfo(self.config.timezone))

    def snapshot(self) -> Status:
        """The whole status, as `GET /v1/status` returns it."""
        server, sample = self.status.current, self.sampler.fresh
        if server.state == "ready" and (self.gpu_queue.holders or self.activity.proxied):
            server = server.model_copy(update={"state": "busy"})
        per_joule = {"tokens_per_joule": self.speed.tokens_per_joule}
        return Status(
            version=installed_version(),
            uptime_s=round(monotonic() - self.began, 1),
            pid=os.getpid(),
            backend=server.model_copy(update={"held": self.gpu_queue.reason}),
            speed=self.speed.speed(),
            gpus=[gpu.model_copy(update=per_joule) for gpu in sample.gpus] if sample else [],
            memory_mib=MemoryUse(
                backend=proc.rss_mib(os.getpid()),
                server=proc.rss_mib(server.pid) if server.pid else None,
            ),
            waiting=len(self.gpu_queue.waiters),
            idle=self.idle_cost.work(),
        )


@cache
def installed_version() -> str:
    try:
        return version("voltaire-agent")
    except PackageNotFoundError:
        return "unknown"
