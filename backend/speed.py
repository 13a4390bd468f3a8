"""Figures of the last requests: how fast, how cached, how much a token costs. Pure but for the clock."""

import statistics
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from backend.protocol import Report, Speed

KEPT = 50
LOADING = 503  # the server says that it is not ready, which is no error
MEDIAN_OF = 500
LEAST_TOKENS = 16  # a shorter answer says little about speed
SLOW_SHARE = 0.75  # of the profile's own median
LEAST_FOR_MEDIAN = 20


@dataclass(slots=True)
class Speedometer:
    """Takes reports; `errors` are 5xx in a row, `served` completions that gave tokens."""

    reports: deque[Report] = field(default_factory=lambda: deque(maxlen=KEPT))
    decoded: deque[float] = field(default_factory=lambda: deque(maxlen=MEDIAN_OF))
    joules: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))
    errors: int = 0
    served: int = 0

    def add(self, report: Report, watts: float | None = None) -> None:
        if report.status >= 500 and report.status != LOADING:
            self.errors += 1
        if report.status != 200:
            return
        self.errors = 0
        if report.completion_tokens:
            self.served += 1
        self.reports.append(report)
        if report.decode_tok_s and (report.completion_tokens or 0) >= LEAST_TOKENS:
            self.decoded.append(report.decode_tok_s)
            if watts:
                self.joules.append(report.decode_tok_s / watts)

    def speed(self) -> Speed:
        return Speed(
            decode_tok_s=_mean(r.decode_tok_s for r in self.reports),
            prefill_tok_s=_mean(r.prefill_tok_s for r in self.reports),
            ttft_ms=_mean(r.ttft_ms for r in self.reports),
            cache_hit=_share((r.cached_tokens, r.prompt_tokens) for r in self.reports),
            draft_acceptance=_share((r.draft_accepted, r.draft_tokens) for r in self.reports),
            median_decode_tok_s=self.median,
        )

    @property
    def tokens_per_joule(self) -> float | None:
        return round(statistics.fmean(self.joules), 3) if self.joules else None

    @property
    def median(self) -> float | None:
        return statistics.median(self.decoded) if len(self.decoded) >= LEAST_FOR_MEDIAN else None

    @property
    def fallen(self) -> float | None:
        """How far the last five answers fell below the median, as a share; None if they did not."""
        if self.median is None:
            return None
        now = statistics.median(list(self.decoded)[-5:])
        return 1 - now / self.median if now < SLOW_SHARE * self.median else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known[-10:]) if known else None


def _share(pairs: Iterable[tuple[int | None, int | None]]) -> float | None:
    known = [(part, whole) for part, whole in pairs if part is not None and whole]
    return sum(p for p, _ in known) / sum(w for _, w in known) if known else None
