"""Speed, cache use and energy of the last completions, by profile. Pure."""

import statistics
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from backend.protocol import CompletionReport, Speed

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
