"""Which profile when: by the schedule, and by a manual choice until the schedule's next switch."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path

from backend.config import BackendConfig, ScheduledProfile
from backend.files import replace_text

AHEAD = timedelta(minutes=2)  # the next model's file is read into the page cache so long before
PIECE = 64 << 20


@dataclass(frozen=True, slots=True)
class ScheduledSwitch:
    at: datetime
    profile: str


def next_switch(schedule: Sequence[ScheduledProfile], now: datetime) -> ScheduledSwitch | None:
    """The next switch after `now` (aware, in the schedule's zone)."""
    later = [each for each in switches_around(schedule, now) if each.at > now]
    return min(later, key=lambda each: each.at, default=None)


def last_switch(schedule: Sequence[ScheduledProfile], now: datetime) -> ScheduledSwitch | None:
    """The last switch at or before `now`."""
    earlier = [each for each in switches_around(schedule, now) if each.at <= now]
    return max(earlier, key=lambda each: each.at, default=None)


def switches_around(
    schedule: Sequence[ScheduledProfile], now: datetime
) -> Iterator[ScheduledSwitch]:
    """The switches of yesterday, today and tomorrow."""
    for entry in schedule:
        clock = time.fromisoformat(entry.at)
        for days in (-1, 0, 1):
            day = now.date() + timedelta(days=days)
            yield ScheduledSwitch(datetime.combine(day, clock, now.tzinfo), entry.profile)


@dataclass(frozen=True, slots=True)
class ManualChoice:
    """The profile that a person chose, kept in a file over restarts of the backend."""

    path: Path

    def save(self, profile: str, configured: str, now: datetime) -> None:
        kept = {"profile": profile, "configured": configured, "at": now.isoformat()}
        replace_text(self.path, json.dumps(kept))

    def profile(self, config: BackendConfig, now: datetime) -> str:
        """What to start with: the manual choice or the schedule's last switch, whichever is newer.

        Without either the configured profile; changing that one ends a manual choice.
        """
        last = last_switch(config.schedule, now)
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(self.path.read_text("utf-8"))
            newer = last is None or datetime.fromisoformat(kept["at"]) > last.at
            if newer and kept["configured"] == config.profile:
                return str(kept["profile"])
        return last.profile if last else config.profile


def read_ahead(paths: Sequence[Path]) -> None:
    """Read files into the page cache, so that loading them takes seconds. Blocks."""
    for path in paths:
        with suppress(OSError), path.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
            while file.read(PIECE):
                pass
