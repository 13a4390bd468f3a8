"""When to start again. Pure."""

import random
from dataclasses import dataclass

FIRST_S, LAST_S = 1.0, 60.0  # the pause doubles from the one to the other
GIVE_UP_AFTER = 5
RETRY_S = 600.0  # once it has given up


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """`barren`: starts in a row that ended before they served a token."""

    barren: int = 0

    @property
    def given_up(self) -> bool:
        return self.barren >= GIVE_UP_AFTER

    def ended(self, *, served: bool, lasting: bool = False) -> "RestartBackoff":
        """A run has ended; `lasting`: for a reason that another start does not change."""
        if served:
            return RestartBackoff()
        return RestartBackoff(max(GIVE_UP_AFTER, self.barren) if lasting else self.barren + 1)

    def pause(self, rng: random.Random, first: float = FIRST_S, retry: float = RETRY_S) -> float:
        """Seconds until the next start, with jitter."""
        if self.given_up:
            return retry
        longest = min(LAST_S, first * 2.0**self.barren)
        return max(first, rng.uniform(longest / 2, longest))
