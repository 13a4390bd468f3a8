"""Evaluates the GPUs' samples: heat holds work, problems become alerts, averages go into the history."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from backend.config import ThermalLimits
from backend.control.alerts import AddAlert
from backend.control.gpu_queue import HEAT, GpuRequestQueue
from backend.control.speed import Speedometer
from backend.gpu.history import History, LastSampleFile, MinuteSamples
from backend.gpu.nvml import Sample, throttled
from backend.protocol import CompletionReport, GpuMinute, Phrase

log = logging.getLogger(__name__)

THROTTLED_AFTER, CLEAR_AFTER = 5, 60  # samples in a row
UNKNOWN_SECONDS = 60.0
SLOW, USUAL = 0.75, 0.85  # of the profile's own median speed: an alert, and its end
FLUSH_BUSY, FLUSH_IDLE = 5.0, 60.0  # seconds between two writes of the last sample
Change = Literal["warn", "cooled", "hold", "resume"]


@dataclass(slots=True)
class ThermalGuard:
    """Turns the hottest temperature in °C into changes of state, with hysteresis."""

    limits: ThermalLimits
    warned: bool = False
    holding: bool = False

    def take(self, hottest: float) -> Change | None:
        """The change caused by this sample, if any; "hold" implies a warning."""
        if not self.holding and hottest >= self.limits.hold_c:
            self.holding = self.warned = True
            return "hold"
        if self.holding and hottest <= self.limits.resume_c:
            self.holding = self.warned = False
            return "resume"
        if not self.warned and hottest >= self.limits.warn_c:
            self.warned = True
            return "warn"
        if self.warned and not self.holding and hottest <= self.limits.resume_c:
            self.warned = False
            return "cooled"
        return None


@dataclass(slots=True)
class Debounce:
    """A condition that becomes active after `on` samples in a row, and inactive after `off` without it."""

    on: int
    off: int
    active: bool = False
    streak: int = 0

    def take(self, now: bool) -> bool:
        """Take a sample; return whether `active` changed."""
        self.streak = self.streak + 1 if now != self.active else 0
        if self.streak < (self.off if self.active else self.on):
            return False
        self.active, self.streak = now, 0
        return True


@dataclass(slots=True)
class Health:
    """Takes samples and completion reports; `collect` returns averages per minute for the history."""

    thermal: ThermalLimits
    gpu_queue: GpuRequestQueue
    speed: Speedometer
    alert: AddAlert
    clock: Callable[[], float] = time.time
    guard: ThermalGuard = field(init=False)
    latest: Sample | None = None
    temperature_known_at: float = 0.0  # monotonic clock; 0 before, and once it is told as missing
    throttling: Debounce = field(default_factory=lambda: Debounce(THROTTLED_AFTER, CLEAR_AFTER))
    slow: bool = False
    lost: frozenset[int] = frozenset()
    silent: frozenset[int] = frozenset()
    ecc: dict[int, int] = field(default_factory=dict)
    running_minute: MinuteSamples = field(init=False)
    finished_minutes: list[GpuMinute] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.guard = ThermalGuard(self.thermal)
        self.running_minute = MinuteSamples(self._minute())

    def sample(self, sample: Sample) -> None:
        self.latest = sample
        self._turn_minute()
        self.running_minute.add(sample.gpus)
        self._heat(sample)
        if self.throttling.take(throttled(sample.gpus)):
            if self.throttling.active:
                slowing = Phrase("The GPU is slowing itself down because of heat.")
                self.alert("throttling", "warning", slowing)
            else:
                self.alert("throttling", "over", Phrase("The GPU runs at full speed again."))
        form = "GPU {index} no longer answers (fallen off the bus); a reboot may be needed."
        self.lost = self._gone("gpu lost", "critical", form, self.lost, sample.lost)
        form = (
            "The driver no longer tells anything of GPU {index}; it is asked again and again. In a container"
            " that happens after `systemctl daemon-reload` on the host: restart the container."
        )
        self.silent = self._gone("gpu silent", "warning", form, self.silent, sample.silent)
        self._errors(sample)

    def report(self, report: CompletionReport) -> None:
        self.speed.add(report, self.latest.watts if self.latest else None)
        self._turn_minute()
        if report.decode_tok_s:
            self.running_minute.speeds.append(report.decode_tok_s)
        share = self.speed.share
        if share is None:  # the usual speed of this profile is not known yet
            self.slow = False
        elif not self.slow and share < SLOW:
            self.slow = True
            slower = Phrase(
                "The model writes {share} slower than it usually does.", share=f"{1 - share:.0%}"
            )
            self.alert("speed", "warning", slower)
        elif self.slow and share > USUAL:
            self.slow = False
            self.alert("speed", "over", Phrase("The model writes at its usual speed again."))

    def collect(self) -> list[GpuMinute]:
        """The minutes finished since the last call."""
        self._turn_minute()
        finished, self.finished_minutes = self.finished_minutes, []
        return finished

    def finish(self) -> list[GpuMinute]:
        """All minutes not yet collected, including the current one."""
        finished = [*self.finished_minutes, *self.running_minute.minutes()]
        self.finished_minutes, self.running_minute = [], MinuteSamples(self._minute())
        return finished

    def release_if_unknown(self, now: float) -> None:
        """Stop holding work, and tell that no temperature came for UNKNOWN_SECONDS (`now`: monotonic clock), once, and
        not beside the alert of a GPU that is gone. When one comes again, the guard tells it as cooled."""
        known = self.temperature_known_at
        told = not known or (not self.guard.holding and (self.lost or self.silent))
        if not told and now - known > UNKNOWN_SECONDS:
            self.temperature_known_at = 0.0
            self.guard = ThermalGuard(self.thermal, warned=True)
            self.gpu_queue.open(HEAT)
            unknown = Phrase("The GPU's temperature can no longer be read; work goes on.")
            self.alert("heat", "warning", unknown)

    def _minute(self) -> int:
        return int(self.clock()) // 60 * 60

    def _turn_minute(self) -> None:
        if self._minute() != self.running_minute.began:
            self.finished_minutes += self.running_minute.minutes()
            self.running_minute = MinuteSamples(self._minute())

    def _heat(self, sample: Sample) -> None:
        hottest, limits = sample.hottest, self.thermal
        if hottest is None:  # a GPU that does not answer reports no temperature
            return
        self.temperature_known_at = sample.at
        now = round(hottest)
        change = self.guard.take(hottest)
        if change == "hold":
            held = Phrase(
                "The GPU is at {now} °C; new work waits until it has cooled to {limit} °C.",
                now=now,
                limit=round(limits.resume_c),
            )
            self.gpu_queue.close(HEAT, held)
            self.alert("heat", "critical", held)
        elif change == "resume":
            self.gpu_queue.open(HEAT)
            self.alert(
                "heat", "over", Phrase("The GPU has cooled to {now} °C; work goes on.", now=now)
            )
        elif change == "warn":
            warning = "The GPU is at {now} °C; at {limit} °C work is held."
            self.alert("heat", "warning", Phrase(warning, now=now, limit=round(limits.hold_c)))
        elif change == "cooled":
            self.alert("heat", "over", Phrase("The GPU has cooled to {now} °C.", now=now))

    def _gone(
        self, name: str, level: str, form: str, before: frozenset[int], now: Sequence[int]
    ) -> frozenset[int]:
        """Tell which GPUs are gone and which are back; return those that are gone."""
        gone = frozenset(now)
        for index in sorted(gone - before):
            self.alert(name, level, Phrase(form, index=index))
        for index in sorted(before - gone):
            self.alert(name, "over", Phrase("GPU {index} answers again.", index=index))
        return gone

    def _errors(self, sample: Sample) -> None:
        for gpu in sample.gpus:
            if (count := gpu.ecc_uncorrected) is None:
                continue
            if count > self.ecc.get(gpu.index, count):
                errors = (
                    "GPU {index} has {count} uncorrected memory errors since the driver was loaded."
                )
                self.alert("ecc", "critical", Phrase(errors, index=gpu.index, count=count))
            self.ecc[gpu.index] = count
        for index, number in sample.xids:
            told = Phrase("GPU {index} reported Xid {number}.", index=index, number=number)
            if number in XIDS:
                form, meaning = "GPU {index} reported Xid {number} ({meaning}).", XIDS[number]
                told = Phrase(form, index=index, number=number, meaning=meaning)
            self.alert("xid", "critical", told)


# NVIDIA's Xid catalogue, https://docs.nvidia.com/deploy/xid-errors
XIDS = {
    13: Phrase("a program's error"),
    31: Phrase("a memory page fault"),
    43: Phrase("the program stopped"),
    45: Phrase("cleaned up after a program's end"),
    48: Phrase("double-bit memory error"),
    62: Phrase("internal microcontroller halt"),
    63: Phrase("a memory page is retired"),
    64: Phrase("memory page retirement failed"),
    74: Phrase("NVLink error"),
    79: Phrase("the card has fallen off the bus"),
    92: Phrase("many single-bit memory errors"),
    94: Phrase("contained memory error"),
    95: Phrase("uncontained memory error"),
    154: Phrase("the card has to be reset"),
}


async def keep_history(health: Health, history: History, last: LastSampleFile) -> None:
    """Write minutes as they end, and the last sample regularly; on cancellation write the rest."""

    def write(minutes: list[GpuMinute], *, flush: bool, busy: bool, clean: bool = False) -> None:
        # A full disk must not end the backend.
        try:
            if minutes:
                history.write(minutes)
            if flush and (sample := health.latest):
                last.write(busy, sample.watts, sample.hottest, clean)
        except (OSError, sqlite3.Error) as error:
            log.warning("The GPU's history could not be written: %s.", error)

    flushed = float("-inf")
    try:
        while True:
            await asyncio.sleep(FLUSH_BUSY)
            health.release_if_unknown(time.monotonic())
            minutes, busy = health.collect(), bool(health.gpu_queue.holders)
            flush = busy or time.monotonic() - flushed >= FLUSH_IDLE
            flushed = time.monotonic() if flush else flushed
            await asyncio.to_thread(write, minutes, flush=flush, busy=busy)
    finally:
        write(health.finish(), flush=True, busy=False, clean=True)
