"""What the steps of `make card` share: where they work, what was built and made so far, and how much is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from backend.config import BackendConfig
from backend.gpu.nvml import Sampler
from backend.measure.probe import CannotMeasure
from backend.models.profile import Profile, Source
from bench.card.table import Table


@dataclass(frozen=True)
class Scale:
    """Tokens: of the windows that are compared with the log, of prompts, of answers."""

    windows: tuple[int, ...]
    prompt: int
    reply: int


CARD = Scale((8192, 131_072), 8192, 256)
PROCESSOR = Scale((2048, 8192), 320, 8)


@dataclass
class Stage:
    """`cpu`: a processor and NVML's stand-in (`nvml`, its library) take the card's part."""

    folder: Path
    table: Table
    cpu: bool
    scale: Scale
    sources: Path | None = None
    nvml: str | None = None
    server: Path | None = None
    models: dict[str, Path] = field(default_factory=dict)
    sampler: Sampler = field(default_factory=Sampler)

    def model(self, kind: str) -> Path:
        if kind not in self.models:
            raise CannotMeasure(f"There is no {kind} model: it could not be made.")
        return self.models[kind]

    def config(self, server: Path | None = None) -> BackendConfig:
        program = server or self.server
        if program is None:
            raise CannotMeasure("There is no server: it could not be built.")
        state = self.folder / "state"
        return BackendConfig(state_dir=state, server=str(program), nvml=self.nvml)

    def profile(self, kind: str, context: int, flags: Mapping[str, str] | None = None) -> Profile:
        """All on the card, one slot, an f16 cache."""
        required = {
            "--n-gpu-layers": "99",
            "--flash-attn": "on",
            "--parallel": "1",
            "--slot-prompt-similarity": "0.95",
            "--ubatch-size": "512",
            **(flags or {}),
        }
        source = Source(path=str(self.model(kind)))
        whole = Profile("card", "The card", context, source, gpu=not self.cpu, required=required)
        return replace(whole, optional={"--cache-ram": "auto"})
