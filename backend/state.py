"""What the parts of a running backend share."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from backend.config import BackendConfig
from backend.control.alerts import Alerts
from backend.control.gpu_queue import GpuQueue
from backend.control.speed import Speedometer
from backend.control.status_board import StatusBoard
from backend.gpu.nvml import Sampler
from backend.server import restart_backoff
from backend.server.warmup import Register

PROGRAM = "program"  # holds the lane for other local programs
News = Callable[[str, str, str], None]  # name, level, text


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds. Tests make them short."""

    first_pause: float = restart_backoff.FIRST_S
    retry: float = restart_backoff.RETRY_S
    stall: float = 30.0
    stopped: float = 3.0
    load_stall: float = 120.0
    longest_load: float = 1800.0
    look_busy: float = 1.0
    look_idle: float = 5.0
    climb: float = 86_400.0
    look_schedule: float = 30.0
    clock: Callable[[], float] = time.time  # since the epoch: by it the schedule goes


@dataclass(slots=True)
class Signs:
    """What clients tell while they work: counted by the API, read by the watch."""

    tokens: int = 0
    programs: int = 0  # requests of other local programs that are open


@dataclass(frozen=True, slots=True)
class Cards:
    """What is asked of the GPUs: their load (0 to 1), and whether a process is on one. None: unknown."""

    load: Callable[[], float | None] = lambda: None
    holds: Callable[[int], bool | None] = lambda pid: None


@dataclass(frozen=True, slots=True)
class BackendState:
    config: BackendConfig
    status: StatusBoard
    gpu_queue: GpuQueue
    register: Register
    speed: Speedometer
    alerts: Alerts
    sampler: Sampler
    timing: Timing = field(default_factory=Timing)
    signs: Signs = field(default_factory=Signs)
    cards: Cards = field(default_factory=Cards)
    chance: random.Random = field(default_factory=random.Random)

    def news(self, name: str, level: str, text: str) -> None:
        """Something the owner should know."""
        self.alerts.tell(name, level, text)

    @property
    def record(self) -> Path:
        """Where the running server is noted for a later life."""
        return self.config.state_dir / "run" / "server.json"
