"""Minutes kept seven days, in the backend's own SQLite file; and the last moments before a power cut.

All methods block and are called in a thread.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from backend import proc
from backend.gpu.nvml import HOT
from backend.protocol import Gpu, GpuMinute

DAYS = 7
_COLUMNS = (
    "temperature_c",
    "memory_temperature_c",
    "power_w",
    "utilization",
    "memory_used_mib",
    "sm_clock_mhz",
    "throttled",
    "decode_tok_s",
)
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS minutes (
    at INTEGER NOT NULL,    -- seconds since 1970, start of the minute
    gpu INTEGER NOT NULL,   -- -1: the server's own speed
    {", ".join(f"{column} REAL" for column in _COLUMNS)},
    PRIMARY KEY (at, gpu)
) STRICT, WITHOUT ROWID;
"""


@dataclass(slots=True)
class Tally:
    """The running minute: samples of each card, and speeds."""

    began: int  # seconds since 1970, a whole minute
    cards: dict[int, list[Gpu]] = field(default_factory=dict)
    speeds: list[float] = field(default_factory=list)

    def add(self, gpus: Iterable[Gpu]) -> None:
        for gpu in gpus:
            self.cards.setdefault(gpu.index, []).append(gpu)

    def minutes(self) -> list[GpuMinute]:
        at = datetime.fromtimestamp(self.began, UTC)
        rows = [_minute(at, index, samples) for index, samples in self.cards.items()]
        if self.speeds:
            rows.append(GpuMinute(at=at, decode_tok_s=fmean(self.speeds)))
        return rows


def _minute(at: datetime, index: int, samples: Sequence[Gpu]) -> GpuMinute:
    return GpuMinute(
        at=at,
        gpu=index,
        temperature_c=_mean(gpu.temperature_c for gpu in samples),
        memory_temperature_c=_mean(gpu.memory_temperature_c for gpu in samples),
        power_w=_mean(gpu.power_w for gpu in samples),
        utilization=_mean(gpu.utilization for gpu in samples),
        memory_used_mib=_mean(gpu.memory_used_mib for gpu in samples),
        sm_clock_mhz=_mean(gpu.sm_clock_mhz for gpu in samples),
        throttled=_mean(float(bool(HOT & set(gpu.throttle))) for gpu in samples),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 2) if known else None


@dataclass(frozen=True, slots=True)
class History:
    path: Path

    def write(self, minutes: Sequence[GpuMinute]) -> None:
        """Add minutes and drop those older than seven days."""
        rows = [_row(minute) for minute in minutes]
        marks = ", ".join("?" * (2 + len(_COLUMNS)))
        with closing(self._opened()) as db, db:
            db.executemany(f"INSERT OR REPLACE INTO minutes VALUES ({marks})", rows)  # noqa: S608  # only marks
            newest = max(int(minute.at.timestamp()) for minute in minutes)
            db.execute("DELETE FROM minutes WHERE at < ?", (newest - DAYS * 86400,))

    def read(self, since: int) -> list[GpuMinute]:
        """Minutes from `since` (seconds since 1970) on, oldest first."""
        if not self.path.exists():
            return []
        with closing(self._opened()) as db:
            rows = db.execute("SELECT * FROM minutes WHERE at >= ? ORDER BY at, gpu", (since,))
            return [_read(row) for row in rows]

    def _opened(self) -> sqlite3.Connection:
        """The file, or a new one in place of a damaged one: seven days of averages are no treasure."""
        try:
            return self._open()
        except sqlite3.OperationalError:
            raise  # locked, or the disk is full: the file itself is sound
        except sqlite3.DatabaseError:
            self.path.replace(self.path.with_suffix(".damaged"))
            return self._open()

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=5)
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(_SCHEMA)
        return db


def _row(minute: GpuMinute) -> tuple[float | int | None, ...]:
    gpu = -1 if minute.gpu is None else minute.gpu
    return int(minute.at.timestamp()), gpu, *(getattr(minute, column) for column in _COLUMNS)


def _read(row: tuple[float, ...]) -> GpuMinute:
    at, gpu, *values = row
    known = dict(zip(_COLUMNS, values, strict=True))
    stamp = datetime.fromtimestamp(at, UTC)
    return GpuMinute.model_validate({"at": stamp, "gpu": None if gpu < 0 else int(gpu), **known})


@dataclass(frozen=True, slots=True)
class BlackBox:
    """The last sample, flushed to disk, so that a power cut can be told with what came before it."""

    path: Path

    def write(
        self, busy: bool, watts: float | None, hottest: float | None, clean: bool = False
    ) -> None:
        seen = {
            "boot": proc.boot(),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "busy": busy,
            "watts": watts,
            "hottest": hottest,
            "clean": clean,
        }
        fresh = self.path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as file:
            json.dump(seen, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)

    def story(self) -> str | None:
        """What to tell of an unclean reboot since the last write; None when there was none."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            seen = json.loads(self.path.read_text("utf-8"))
            if seen["boot"] != proc.boot() and not seen["clean"]:
                return _tell(seen)
        return None


def _tell(seen: dict[str, object]) -> str:
    load = "under load" if seen["busy"] else "idle"
    watts = f", {seen['watts']:.0f} W" if isinstance(seen["watts"], float | int) else ""
    hottest = seen["hottest"]
    heat = f", {hottest:.0f} °C" if isinstance(hottest, float | int) else ""
    text = f"The machine went down without a shutdown, last seen {seen['at']} {load}{watts}{heat}."
    if seen["busy"] and isinstance(hottest, float | int):
        cool = hottest < 75
        text += (
            " Busy and cool points to the power supply."
            if cool
            else " Busy and hot points to the cooling."
        )
    return text
