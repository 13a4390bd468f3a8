"""Which of two llama-servers to use: each is measured twice, alternately, so that heat affects both alike.

choice = await choose(used, new, measure)
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from backend.measure.bench import BenchRow
from backend.measure.probe import CannotMeasure
from backend.measure.sweep import GAIN, turn_seconds

ROUNDS = 2
MeasureServer = Callable[[Path], Awaitable[BenchRow]]  # raises CannotMeasure


@dataclass(frozen=True, slots=True)
class Choice:
    """The server to use; `sentence` says why."""

    server: Path
    sentence: str


async def choose(used: Path, new: Path, measure: MeasureServer) -> Choice:
    """Choose the new server if its slowest typical turn beats the old one's fastest by at least GAIN.

    A server that does not run loses; if neither runs, the new one is chosen.
    """
    seconds: dict[Path, list[float]] = {used: [], new: []}
    problems: dict[Path, str] = {}
    for server in (used, new) * ROUNDS:
        if server in problems:
            continue
        try:
            found = turn_seconds(await measure(server))
        except CannotMeasure as error:
            problems[server] = str(error)
        else:
            if found is not None:  # throttled
                seconds[server].append(found)
    if len(problems) == 2:
        return Choice(new, f"Neither could be measured, so the new one stays: {problems[new]}")
    for broken, other in ((new, used), (used, new)):
        if broken in problems:
            return Choice(other, f"{broken} did not serve ({problems[broken].rstrip('.')}).")
    before, after = seconds[used], seconds[new]
    if not before or not after:
        return Choice(used, "The card was slowed while they were measured, so nothing changes.")
    times = (
        f"a typical turn takes {fmean(after):.1f} s with the new one, {fmean(before):.1f} s before"
    )
    if max(after) < (1 - GAIN) * min(before):
        return Choice(new, f"The new one is faster: {times}.")
    return Choice(used, f"The one from before stays: {times}.")
