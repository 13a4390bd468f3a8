"""When to start again. Pure: counts go in, waits come out."""

import random
from dataclasses import dataclass, replace

FIRST_S, LAST_S = 1.0, 60.0  # back-off
GIVE_UP_AFTER = 5  # starts in a row that served nothing
RETRY_S = 600.0  # while failed


@dataclass(frozen=True, slots=True)
class Record:
    """`barren`: starts in a row that ended before they served a token."""

    barren: int = 0

    def ended(self, served: bool) -> "Record":
        return replace(self, barren=0 if served else self.barren + 1)

    @property
    def failed(self) -> bool:
        return self.barren >= GIVE_UP_AFTER


def pause(record: Record, chance: random.Random, first: float = FIRST_S) -> float:
    """Seconds until the next start: 1 to 60 with jitter, ten minutes once it has failed."""
    if record.failed:
        return RETRY_S
    longest = min(LAST_S, first * 2.0**record.barren)
    return max(first, chance.uniform(longest / 2, longest))
