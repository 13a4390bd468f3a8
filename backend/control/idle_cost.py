"""What work between turns costs: GPU seconds, and joules computed from samples. Pure except for its file."""

import json
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from backend.files import replace_text
from backend.gpu.nvml import Sample
from backend.protocol import IdleWork

HOUR, HOURS = 3600, 24
KEPT_SAMPLES = 600  # ten minutes


@dataclass(slots=True)
class IdleCost:
    """Hourly sums, stored in `path`. Times of holds and samples are on the monotonic clock.

    A hold is often shorter than the second between two samples. It is charged with the energy
    drawn from the last sample before it to the first one after it, minus the lowest power seen
    times the part of that interval in which it did not run. Work that was interrupted by a
    request may therefore be charged with up to a second of that request.
    """

    path: Path
    clock: Callable[[], float] = time.time
    hours: dict[int, tuple[float, float | None]] = field(default_factory=dict)  # seconds, joules
    # Time and the joules drawn until then, by sample.
    _energy: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=KEPT_SAMPLES))
    _holds: list[tuple[float, float]] = field(default_factory=list)  # not yet charged

    def read(self) -> None:
        with suppress(OSError, ValueError, TypeError):
            rows = json.loads(self.path.read_text("utf-8"))
            self.hours = {int(hour): (float(s), j) for hour, s, j in rows}

    def held(self, began: float, ended: float) -> None:
        """Record that idle work held the GPU from `began` to `ended`."""
        if self._energy:
            self._holds.append((began, ended))
        self._add(ended - began, None)

    def sample(self, sample: Sample) -> None:
        """Take the energy from the GPU's own counter (Volta and later), else integrate its power."""
        at, joules = self._energy[-1] if self._energy else (sample.at, 0.0)
        counted = sample.joules
        if counted is None:
            if sample.watts is None:
                return
            counted = joules + sample.watts * (sample.at - at)
        self._energy.append((sample.at, counted))
        due = [hold for hold in self._holds if hold[1] <= sample.at]
        if due:
            self._holds = [hold for hold in self._holds if hold[1] > sample.at]
            self._add(0.0, sum(self._joules(began, ended) for began, ended in due))

    def work(self) -> IdleWork:
        since = int(self.clock()) // HOUR - HOURS
        recent = [sums for hour, sums in self.hours.items() if hour > since]
        joules = [j for _, j in recent if j is not None]
        return IdleWork(
            seconds=round(sum(seconds for seconds, _ in recent), 3),
            wh=round(sum(joules) / 3600, 4) if joules else None,
        )

    def _joules(self, began: float, ended: float) -> float:
        """The energy charged to one hold."""
        spans = list(pairwise(self._energy))
        watts = [(j - i) / (b - a) for (a, i), (b, j) in spans if b > a]
        touched = [span for span in spans if span[1][0] > began and span[0][0] < ended]
        if not touched or not watts:
            return 0.0
        (first, before), (last, after) = touched[0][0], touched[-1][1]
        held = min(ended - began, last - first)
        idle = min(watts) * (last - first - held)
        return max(after - before - idle, min(watts) * held)

    def _add(self, seconds: float, joules: float | None) -> None:
        now = int(self.clock()) // HOUR
        before, known = self.hours.get(now, (0.0, None))
        both = None if joules is None and known is None else (known or 0.0) + (joules or 0.0)
        self.hours[now] = before + seconds, both
        self.hours = {hour: sums for hour, sums in self.hours.items() if hour > now - HOURS}
        with suppress(OSError):  # a full disk must not stop a turn
            rows = [(hour, *sums) for hour, sums in self.hours.items()]
            replace_text(self.path, json.dumps(rows))
