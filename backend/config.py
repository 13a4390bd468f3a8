"""What a backend is started with: plain values, made by whoever composes it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from backend.protocol import BackendKind


@dataclass(frozen=True, slots=True)
class ThermalLimits:
    """°C, of the hottest of core and memory of any card. V100s throttle at 82-85."""

    warn_c: float = 80
    hold_c: float = 84
    resume_c: float = 75


@dataclass(frozen=True, slots=True)
class ScheduledProfile:
    """Switch to `profile` each day at `at`, "HH:MM" in the configured zone."""

    at: str
    profile: str


@dataclass(frozen=True, slots=True)
class BackendConfig:
    """`socket` None means `state_dir/run/backend.sock`, or a short path where that is too long.

    `server` is "auto" (llama-server on PATH, else the embedded one), "embedded", or a path.
    `model` (a GGUF) is used in place of the profile's own, or (`bare`) by flags that suit any; with `kind` external it is the
    name to ask for. `embedding`: what a second server, for
    vectors, runs; empty: none. `context` 0 takes the profile's (managed) or asks the server
    (external). `profiles` is the user's folder, over the built-in ones.
    `reschedule` gives the schedule as it is by now; None: it stays as it was at the start.
    `vision`: whether an external server takes pictures; None: it is asked, or tried.
    `proxy_port` and `proxy_key` open the server to other local programs.
    `nvml` is the path of a libnvidia-ml.so.1 in place of the system's.
    """

    state_dir: Path
    socket: Path | None = None
    kind: BackendKind = "managed"
    profile: str = "pocket"
    server: str = "auto"
    model: str = ""
    bare: bool = False
    models_dir: Path | None = None
    profiles: Path | None = None
    urls: tuple[str, ...] = ()
    embedding: str = ""
    context: int = 0
    api_key: str = ""
    vision: bool | None = None
    connect_seconds: float = 10
    schedule: tuple[ScheduledProfile, ...] = ()
    reschedule: Callable[[], tuple[ScheduledProfile, ...]] | None = None
    timezone: str = "UTC"
    thermal: ThermalLimits = field(default_factory=ThermalLimits)
    proxy_port: int = 0
    proxy_key: str = ""
    nvml: str | None = None

    @property
    def models_folder(self) -> Path:
        return self.models_dir or self.state_dir / "models"

    @property
    def slots_folder(self) -> Path:
        """Of llama-server's saved slots."""
        return self.state_dir / "slots"
