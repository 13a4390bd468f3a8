"""Speed, cache use and energy of the last completions, by profile. Pure."""

import statistics
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from backend.protocol import CompletionReport, Speed

KEPT = 50
LOADING = 503  # the server is not ready yet, which is no error
MEDIAN_OF = 500
LEAST_TOKENS = 16  # shorter answers are too noisy to measure speed by
LEAST_FOR_MEDIAN = 20
NOW_OF = 5  # completions whose median is the present speed


@dataclass(slots=True)
class SpeedSamples:
    """The last completions of one profile: each model has its own usual speed."""

    reports: deque[CompletionReport] = field(default_factory=lambda: deque(maxlen=KEPT))
    decoded: deque[float] = field(default_factory=lambda: deque(maxlen=MEDIAN_OF))
    joules: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))


@dataclass(slots=True)
class Speedometer:
    """Takes reports; `errors` counts 5xx in a row, `served` completions that gave tokens."""

    errors: int = 0
    served: int = 0
    _samples: dict[str, SpeedSamples] = field(default_factory=lambda: defaultdict(SpeedSamples))
    _profile: str = ""

    def begin(self, profile: str) -> None:
        """Reports are of this profile from now on."""
        self.errors, self._profile = 0, profile

    @property
    def now(self) -> SpeedSamples:
        return self._samples[self._profile]

    def add(self, report: CompletionReport, watts: float | None = None) -> None:
        if report.status >= 500 and report.status != LOADING:
            self.errors += 1
        if report.status != 200:
            return
        self.errors = 0
        if report.completion_tokens:
            self.served += 1
        now = self.now
        now.reports.append(report)
        if report.decode_tok_s and (report.completion_tokens or 0) >= LEAST_TOKENS:
            now.decoded.append(report.decode_tok_s)
            if watts:
                now.joules.append(report.decode_tok_s / watts)

    def speed(self) -> Speed:
        reports = self.now.reports
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
        joules = self.now.joules
        return round(statistics.fmean(joules), 3) if joules else None

    @property
    def median(self) -> float | None:
        decoded = self.now.decoded
        return statistics.median(decoded) if len(decoded) >= LEAST_FOR_MEDIAN else None

    @property
    def share(self) -> float | None:
        """The present speed as a share of this profile's median; None while there is no median."""
        if self.median is None:
            return None
        return statistics.median(list(self.now.decoded)[-NOW_OF:]) / self.median


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known[-10:]) if known else None


def _share(pairs: Iterable[tuple[int | None, int | None]]) -> float | None:
    known = [(part, whole) for part, whole in pairs if part is not None and whole]
    return sum(p for p, _ in known) / sum(w for _, w in known) if known else None
