"""When heat warns, holds new work, and lets it go on. Pure."""

from dataclasses import dataclass
from typing import Literal

from backend.config import ThermalLimits

Change = Literal["warn", "cooled", "hold", "resume"]


@dataclass(slots=True)
class ThermalGuard:
    """Takes the hottest temperature in °C; gives what changes. Each threshold has its own way back."""

    limits: ThermalLimits
    warned: bool = False
    holding: bool = False

    def take(self, hottest: float) -> Change | None:
        """At most one change a sample; holding warns as well."""
        if not self.holding and hottest >= self.limits.hold_c:
            self.holding = self.warned = True
            return "hold"
        if self.holding and hottest <= self.limits.resume_c:
            self.holding = self.warned = False
            return "resume"
        if not self.warned and hottest >= self.limits.warn_c:
            self.warned = True
            return "warn"
        if self.warned and not self.holding and hottest <= self.limits.resume_c:
            self.warned = False
            return "cooled"
        return None
