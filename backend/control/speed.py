"""Speed, cache use and energy of the last completions, by profile. Pure."""

import json
import statistics
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from backend.files import replace_text
from backend.gpu.nvml import Sample
from backend.protocol import CompletionReport, IdleWork, Speed

KEPT = 50
LOADING = 503  # the server is not ready yet, which does not count as an error
MEDIAN_OF = 500
LEAST_TOKENS = 16  # the speed of shorter answers is too noisy
LEAST_FOR_MEDIAN = 20
CURRENT_OF = 5  # completions whose median is the current speed


@dataclass(slots=True)
class SpeedSamples:
    """The last completions of one profile."""

    reports: deque[CompletionReport] = field(default_factory=lambda: deque(maxlen=KEPT))
    decoded: deque[float] = field(default_factory=lambda: deque(maxlen=MEDIAN_OF))
    tokens_per_joule: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))


@dataclass(slots=True)
class Speedometer:
    """Collects reports; `errors` counts 5xx in a row, `served` completions that wrote tokens."""

    errors: int = 0
    served: int = 0
    _samples: dict[str, SpeedSamples] = field(default_factory=lambda: defaultdict(SpeedSamples))
    _profile: str = ""

    def begin(self, profile: str) -> None:
        """Count the following reports for this profile."""
        self.errors, self._profile = 0, profile

    @property
    def current(self) -> SpeedSamples:
        return self._samples[self._profile]

    def add(self, report: CompletionReport, watts: float | None = None) -> None:
        if report.status >= 500 and report.status != LOADING:
            self.errors += 1
        if report.status != 200:
            return
        self.errors = 0
        if report.completion_tokens:
            self.served += 1
        samples = self.current
        samples.reports.append(report)
        if report.decode_tok_s and (report.completion_tokens or 0) >= LEAST_TOKENS:
            samples.decoded.append(report.decode_tok_s)
            if watts:
                samples.tokens_per_joule.append(report.decode_tok_s / watts)

    def speed(self) -> Speed:
        reports = self.current.reports
        return Speed(
            decode_tok_s=_mean(r.decode_tok_s for r in reports),
            prefill_tok_s=_mean(r.prefill_tok_s for r in reports),
            ttft_ms=_mean(r.ttft_ms for r in reports),
            cache_hit=_share((r.cached_tokens, r.prompt_tokens) for r in reports),
            draft_acceptance=_share((r.draft_accepted, r.draft_tokens) for r in reports),
            median_decode_tok_s=self.median,
        )

    @property
    def tokens_per_joule(self) -> float | None:
        measured = self.current.tokens_per_joule
        return round(statistics.fmean(measured), 3) if measured else None

    @property
    def median(self) -> float | None:
        decoded = self.current.decoded
        return statistics.median(decoded) if len(decoded) >= LEAST_FOR_MEDIAN else None

    @property
    def share(self) -> float | None:
        """The current speed as a fraction of this profile's median; None while there is no median."""
        if self.median is None:
            return None
        return statistics.median(list(self.current.decoded)[-CURRENT_OF:]) / self.median


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known[-10:]) if known else None


def _share(pairs: Iterable[tuple[int | None, int | None]]) -> float | None:
    known = [(part, whole) for part, whole in pairs if part is not None and whole]
    return sum(p for p, _ in known) / sum(w for _, w in known) if known else None


# -- what idle work costs -----------------------------------------------------


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
