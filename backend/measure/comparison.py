"""`voltaire bench --server A --server B`: which server is faster, and whether that is more than chance. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from backend.measure.bench import BenchRow

FIGURES = (("prefill", "prefill_tok_s"), ("decode", "decode_tok_s"))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of one row for each server: mean tokens/s, the fastest first.

    `apart`: each run of the fastest was faster than each of the next; else its lead may be chance.
    """

    name: str
    figure: str
    speeds: tuple[tuple[str, float], ...]
    apart: bool

    @property
    def lead(self) -> float:
        """Of the fastest over the next: 0.1 is 10 %."""
        return self.speeds[0][1] / self.speeds[1][1] - 1

    @property
    def winner(self) -> str | None:
        return self.speeds[0][0] if self.apart else None


def compare(rows: Sequence[BenchRow]) -> Iterator[Comparison]:
    """Each figure that at least two servers have; throttled rows do not count."""
    for name in dict.fromkeys(row.name for row in rows):
        for figure, field in FIGURES:
            runs = defaultdict[str, list[float]](list)
            for row in rows:
                if row.name == name and not row.throttled and (speed := getattr(row, field)):
                    runs[row.setting.server].append(speed)
            if len(runs) > 1:
                fastest, second, *_ = ranked = sorted(runs, key=lambda server: -fmean(runs[server]))
                speeds = tuple((server, fmean(runs[server])) for server in ranked)
                yield Comparison(name, figure, speeds, min(runs[fastest]) > max(runs[second]))
