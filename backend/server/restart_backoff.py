"""How long to wait before the next start. Pure."""

import random
from dataclasses import dataclass

FIRST_S, LAST_S = 1.0, 60.0  # the pause doubles from the first to the last value
GIVE_UP_AFTER = 5
RETRY_S = 600.0  # the pause after giving up


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """`failures`: the number of starts in a row that ended before they served a token."""

    failures: int = 0

    @property
    def given_up(self) -> bool:
        return self.failures >= GIVE_UP_AFTER

    def ended(self, *, served: bool, lasting: bool = False) -> "RestartBackoff":
        """Count the end of a run; `lasting`: the cause is not changed by another start."""
        if served:
            return RestartBackoff()
        return RestartBackoff(max(GIVE_UP_AFTER, self.failures) if lasting else self.failures + 1)

    def pause(self, rng: random.Random, first: float = FIRST_S, retry: float = RETRY_S) -> float:
        """Seconds until the next start, with jitter."""
        if self.given_up:
            return retry
        longest = min(LAST_S, first * 2.0**self.failures)
        return max(first, rng.uniform(longest / 2, longest))
