"""What the cards' samples mean: heat holds work, trouble becomes news, minutes become history."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from backend.config import Thermal
from backend.control.alerts import AddAlert
from backend.control.gpu_queue import HEAT, GpuQueue
from backend.control.speed import Speedometer
from backend.gpu.history import BlackBox, History, Tally
from backend.gpu.nvml import Sample, throttled
from backend.gpu.thermal_guard import ThermalGuard
from backend.protocol import CompletionReport, GpuMinute

log = logging.getLogger(__name__)

THROTTLED_AFTER, CLEAR_AFTER = 5, 60  # samples in a row
BLIND_SECONDS = 60.0
SLOW, USUAL = 0.75, 0.85  # of the profile's own median speed: an alert, and its end
FLUSH_BUSY, FLUSH_IDLE = 5.0, 60.0  # seconds between two writes of the black box


@dataclass(slots=True)
class Streak:
    """A condition that counts once it held for `on` samples, and is over after `off` without it."""

    on: int
    off: int
    active: bool = False
    run: int = 0

    def take(self, now: bool) -> bool:
        """True when `active` changed."""
        self.run = self.run + 1 if now != self.active else 0
        if self.run < (self.off if self.active else self.on):
            return False
        self.active, self.run = now, 0
        return True


@dataclass(slots=True)
class Health:
    """Listens to samples and reports; `write_due` has minutes for the history."""

    thermal: Thermal
    gpu_queue: GpuQueue
    speed: Speedometer
    news: AddAlert
    clock: Callable[[], float] = time.time
    guard: ThermalGuard = field(init=False)
    latest: Sample | None = None
    felt: float = 0.0  # when a temperature was last known, steady clock
    throttling: Streak = field(default_factory=lambda: Streak(THROTTLED_AFTER, CLEAR_AFTER))
    slow: bool = False
    lost: frozenset[int] = frozenset()
    ecc: dict[int, int] = field(default_factory=dict)
    tally: Tally = field(init=False)
    due: list[GpuMinute] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.guard = ThermalGuard(self.thermal)
        self.tally = Tally(self._minute())

    def sample(self, sample: Sample) -> None:
        self.latest = sample
        self._turn_minute()
        self.tally.add(sample.gpus)
        self._heat(sample.hottest)
        self._throttle(throttled(sample.gpus))
        self._lost(frozenset(sample.lost))
        self._errors(sample)

    def report(self, report: CompletionReport) -> None:
        self.speed.add(report, self.latest.watts if self.latest else None)
        self._turn_minute()
        if report.decode_tok_s:
            self.tally.speeds.append(report.decode_tok_s)
        self._tell_speed(self.speed.share)

    def collect(self) -> list[GpuMinute]:
        """Finished minutes, once."""
        self._turn_minute()
        due, self.due = self.due, []
        return due

    def finish(self) -> list[GpuMinute]:
        """Everything not yet collected, the running minute too."""
        due, self.due = [*self.due, *self.tally.minutes()], []
        self.tally = Tally(self._minute())
        return due

    def _minute(self) -> int:
        return int(self.clock()) // 60 * 60

    def check_blindness(self, now: float) -> None:
        """Let work go on when the temperature has been unknown for a minute; `now` of the steady clock."""
        if self.guard.holding and now - self.felt > BLIND_SECONDS:
            self.guard = ThermalGuard(self.thermal)
            self.gpu_queue.open(HEAT)
            self.news(
                "heat", "warning", "The GPU's temperature can no longer be read; work goes on."
            )

    def _turn_minute(self) -> None:
        if self._minute() != self.tally.began:
            self.due += self.tally.minutes()
            self.tally = Tally(self._minute())

    def _heat(self, hottest: float | None) -> None:
        limits = self.thermal
        if hottest is not None and self.latest:
            self.felt = self.latest.at
        for change in self.guard.take(hottest):
            if change == "hold":
                held = f"The GPU is at {hottest:.0f} °C; new work waits until it has cooled to {limits.resume_c:.0f} °C."
                self.gpu_queue.close(HEAT, held)
                self.news("heat", "critical", held)
            elif change == "resume":
                self.gpu_queue.open(HEAT)
                self.news("heat", "over", f"The GPU has cooled to {hottest:.0f} °C; work goes on.")
            elif change == "warn":
                self.news(
                    "heat",
                    "warning",
                    f"The GPU is at {hottest:.0f} °C; at {limits.hold_c:.0f} °C work is held.",
                )
            else:
                self.news("heat", "over", f"The GPU has cooled to {hottest:.0f} °C.")

    def _throttle(self, now: bool) -> None:
        if not self.throttling.take(now):
            return
        if now:
            self.news("throttling", "warning", "The GPU slows itself down for heat.")
        else:
            self.news("throttling", "over", "The GPU runs at full speed again.")

    def _lost(self, lost: frozenset[int]) -> None:
        for index in sorted(lost - self.lost):
            self.news(
                "gpu lost",
                "critical",
                f"GPU {index} no longer answers (fallen off the bus); a reboot may be needed.",
            )
        for index in sorted(self.lost - lost):
            self.news("gpu lost", "over", f"GPU {index} answers again.")
        self.lost = lost

    def _errors(self, sample: Sample) -> None:
        for gpu in sample.gpus:
            count = gpu.ecc_uncorrected
            if count is not None and count > self.ecc.setdefault(gpu.index, count):
                self.news(
                    "ecc",
                    "critical",
                    f"GPU {gpu.index} has {count} uncorrected memory errors since the driver was loaded.",
                )
            if count is not None:
                self.ecc[gpu.index] = count
        for index, number in sample.xids:
            self.news("xid", "critical", f"GPU {index} reported Xid {number}{_xid(number)}.")

    def _tell_speed(self, share: float | None) -> None:
        if share is None:  # another profile serves, whose usual speed is not known yet
            self.slow = False
        elif not self.slow and share < SLOW:
            self.slow = True
            self.news(
                "speed", "warning", f"The model writes {1 - share:.0%} slower than it usually does."
            )
        elif self.slow and share > USUAL:
            self.slow = False
            self.news("speed", "over", "The model writes at its usual speed again.")


_XIDS = {
    13: "a program's error",
    31: "a memory page fault",
    43: "the program stopped",
    45: "cleaned up after a program's end",
    48: "double-bit memory error",
    62: "internal microcontroller halt",
    63: "a memory page is retired",
    64: "memory page retirement failed",
    74: "NVLink error",
    79: "the card has fallen off the bus",
    92: "many single-bit memory errors",
    94: "contained memory error",
    95: "uncontained memory error",
}


def _xid(number: int) -> str:
    """What NVIDIA's Xid catalogue says of a number."""
    return f" ({_XIDS[number]})" if number in _XIDS else ""


async def keep_history(health: Health, history: History, box: BlackBox) -> None:
    """Write minutes as they end, and the black box; ends by cancellation, with the rest written."""
    flushed = float("-inf")
    try:
        while True:
            await asyncio.sleep(FLUSH_BUSY)
            health.check_blindness(time.monotonic())
            due, busy = health.collect(), bool(health.gpu_queue.holders)
            pressing = busy or time.monotonic() - flushed >= FLUSH_IDLE
            flushed = time.monotonic() if pressing else flushed
            await asyncio.to_thread(
                _write, history, due, box if pressing else None, health.latest, busy
            )
    finally:
        _write(history, health.finish(), box, health.latest, busy=False, clean=True)


def _write(
    history: History,
    due: list[GpuMinute],
    box: BlackBox | None,
    latest: Sample | None,
    busy: bool,
    clean: bool = False,
) -> None:
    # A full disk costs the history, never a reply.
    try:
        if due:
            history.write(due)
        if box and latest:
            box.write(busy, latest.watts, latest.hottest, clean)
    except (OSError, sqlite3.Error) as error:
        log.warning("The GPU's history could not be written: %s.", error)
