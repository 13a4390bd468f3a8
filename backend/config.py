"""What a backend is started with: plain values, filled in by the command line."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from backend.protocol import BackendKind


@dataclass(frozen=True, slots=True)
class ThermalLimits:
    """Limits in °C for the hottest core or memory of any GPU. V100s throttle at 82-85."""

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

    `server` is "auto" (an installed llama-server, else the embedded one), "embedded", or a path.
    `profile` is a profile's name or the path of a GGUF; `start_with` is one too, and precedes what was
    chosen before or is scheduled. `model` is a GGUF that replaces the profile's model; with `kind`
    "external" it is the model name to request.
    `embedding` names the model of a second server, for embeddings; empty for none.
    `context` 0 takes the profile's window (managed) or asks the server for it (external).
    `profiles` is the user's folder of profiles, which take precedence over the built-in ones.
    `reschedule` returns the current schedule; None if it cannot change.
    `vision` says whether an external server accepts pictures; None asks or tests the server.
    `proxy_port` and `proxy_key` open the server to other local programs.
    `saved_prompts_mib` is how much disk the saved prompts of chats may take; 0 saves none.
    `lend_to_others`: the model is unloaded while another program computes on the card. `urgent_model` is the
    profile or GGUF that answers urgent words while the card is lent; empty for none.
    `nvml` is the path of a libnvidia-ml.so.1 that replaces the system's.
    """

    state_dir: Path
    socket: Path | None = None
    kind: BackendKind = "managed"
    profile: str = "pocket"
    server: str = "auto"
    model: str = ""
    start_with: str = ""
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
    saved_prompts_mib: int = 4096
    lend_to_others: bool = False
    urgent_model: str = ""
    nvml: str | None = None

    @property
    def models_folder(self) -> Path:
        return self.models_dir or self.state_dir / "models"

    @property
    def slots_folder(self) -> Path:
        """Where llama-server saves slots."""
        return self.state_dir / "slots"

    @property
    def cuda_cache(self) -> Path:
        """Where the driver keeps what it compiles for the card: the service's user cannot write to a home."""
        return self.state_dir / "cuda"
