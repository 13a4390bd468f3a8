"""Heat: warn, hold new work, let it go on. Pure."""

from dataclasses import dataclass
from typing import Literal

from backend.config import Thermal

Change = Literal["warn", "cooled", "hold", "resume"]


@dataclass(slots=True)
class ThermalGuard:
    """Takes the hottest temperature in °C; says what changes. Each threshold has its way back."""

    limits: Thermal
    warned: bool = False
    holding: bool = False

    def take(self, hottest: float | None) -> list[Change]:
        # A card that stopped answering says nothing of heat; what was decided stands.
        if hottest is None:
            return []
        return [*self._hold(hottest), *self._warn(hottest)]

    def _hold(self, hottest: float) -> list[Change]:
        if not self.holding and hottest >= self.limits.hold_c:
            self.holding = self.warned = True
            return ["hold"]
        if self.holding and hottest <= self.limits.resume_c:
            self.holding = self.warned = False
            return ["resume"]
        return []

    def _warn(self, hottest: float) -> list[Change]:
        if not self.warned and hottest >= self.limits.warn_c:
            self.warned = True
            return ["warn"]
        if self.warned and not self.holding and hottest <= self.limits.resume_c:
            self.warned = False
            return ["cooled"]
        return []
