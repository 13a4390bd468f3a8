"""Averages per minute, kept for a month in an SQLite file, and the last sample before a power cut.

All methods block and are called in a thread.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from backend import proc
from backend.files import replace_text
from backend.gpu.nvml import throttled
from backend.protocol import Gpu, GpuMinute, Phrase

DAYS = 31
COOL_C = 75
SENSORS = (
    "temperature_c",
    "memory_temperature_c",
    "power_w",
    "utilization",
    "memory_used_mib",
    "sm_clock_mhz",
)
COLUMNS = (*SENSORS, "throttled", "decode_tok_s")
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS minutes (
    at INTEGER NOT NULL,    -- seconds since 1970, start of the minute
    gpu INTEGER NOT NULL,   -- -1: the server's own speed
    {", ".join(f"{column} REAL" for column in COLUMNS)},
    PRIMARY KEY (at, gpu)
) STRICT, WITHOUT ROWID;
"""


@dataclass(slots=True)
class MinuteSamples:
    """The samples of each GPU and the decode speeds (tokens/s) within one minute."""

    began: int  # seconds since 1970, a whole minute
    gpus: dict[int, list[Gpu]] = field(default_factory=dict)
    speeds: list[float] = field(default_factory=list)

    def add(self, gpus: Iterable[Gpu]) -> None:
        for gpu in gpus:
            self.gpus.setdefault(gpu.index, []).append(gpu)

    def minutes(self) -> list[GpuMinute]:
        at = datetime.fromtimestamp(self.began, UTC)
        rows = [average(at, index, samples) for index, samples in self.gpus.items()]
        if self.speeds:
            rows.append(GpuMinute(at=at, decode_tok_s=fmean(self.speeds)))
        return rows


def average(at: datetime, index: int, samples: Sequence[Gpu]) -> GpuMinute:
    hot = (float(throttled([gpu])) for gpu in samples)
    means = {name: mean(getattr(gpu, name) for gpu in samples) for name in SENSORS}
    return GpuMinute.model_validate({"at": at, "gpu": index, **means, "throttled": mean(hot)})


def mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 2) if known else None


@dataclass(frozen=True, slots=True)
class History:
    path: Path

    def write(self, minutes: Sequence[GpuMinute]) -> None:
        """Add minutes, and delete those older than a month."""
        rows = [_row(minute) for minute in minutes]
        marks = ", ".join("?" * (2 + len(COLUMNS)))
        with closing(self._opened()) as db, db:
            db.executemany(f"INSERT OR REPLACE INTO minutes VALUES ({marks})", rows)  # noqa: S608  # only marks
            newest = max(int(minute.at.timestamp()) for minute in minutes)
            db.execute("DELETE FROM minutes WHERE at < ?", (newest - DAYS * 86400,))

    def read(self, since: int, step: int = 1) -> list[GpuMinute]:
        """Minutes since `since` (seconds since 1970), oldest first, averaged over `step` minutes each."""
        if not self.path.exists():
            return []
        means = ", ".join(f"avg({column})" for column in COLUMNS)
        sql = (
            f"SELECT min(at), gpu, {means} FROM minutes WHERE at >= ?"  # noqa: S608  # only columns
            " GROUP BY at / ?, gpu ORDER BY 1, 2"
        )
        with closing(self._opened()) as db:
            return [_read(row) for row in db.execute(sql, (since, 60 * step))]

    def _opened(self) -> sqlite3.Connection:
        """Open the file, or replace a damaged one: it only holds averages of a month."""
        try:
            return self._open()
        except sqlite3.OperationalError:
            raise  # locked, or the disk is full: the file itself is intact
        except sqlite3.DatabaseError:
            self.path.replace(self.path.with_suffix(".damaged"))
            return self._open()

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=5)
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(SCHEMA)
        return db


def _row(minute: GpuMinute) -> tuple[float | int | None, ...]:
    gpu = -1 if minute.gpu is None else minute.gpu
    return int(minute.at.timestamp()), gpu, *(getattr(minute, column) for column in COLUMNS)


def _read(row: tuple[float, ...]) -> GpuMinute:
    at, gpu, *values = row
    known = dict(zip(COLUMNS, values, strict=True))
    stamp = datetime.fromtimestamp(at, UTC)
    return GpuMinute.model_validate({"at": stamp, "gpu": None if gpu < 0 else int(gpu), **known})


@dataclass(frozen=True, slots=True)
class LastSampleFile:
    """The last sample, flushed to disk, so that it can be reported after a power cut."""

    path: Path

    def write(
        self, busy: bool, watts: float | None, hottest: float | None, clean: bool = False
    ) -> None:
        sample = {
            "boot": proc.boot(),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "busy": busy,
            "watts": watts,
            "hottest": hottest,
            "clean": clean,
        }
        replace_text(self.path, json.dumps(sample), sync=True)

    def unclean_reboot(self) -> Phrase | None:
        """A text about a reboot without a shutdown since the last write; None if there was none."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            last = json.loads(self.path.read_text("utf-8"))
            if last["boot"] != proc.boot() and not last["clean"]:
                return describe(last)
        return None


def describe(last: Mapping[str, Any]) -> Phrase:
    watts, hottest = last["watts"], last["hottest"]
    text = Phrase(
        "The machine went down without a shutdown, last seen {at} under load{measured}."
        if last["busy"]
        else "The machine went down without a shutdown, last seen {at} idle{measured}.",
        at=last["at"],
        measured=(f", {watts:.0f} W" if watts is not None else "")
        + (f", {hottest:.0f} °C" if hottest is not None else ""),
    )
    if not last["busy"] or hottest is None:
        return text
    if hottest < COOL_C:
        return Phrase("{text} Busy and cool points to the power supply.", text=text)
    return Phrase("{text} Busy and hot points to the cooling.", text=text)
