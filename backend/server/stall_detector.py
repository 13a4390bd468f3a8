"""Signs of life: alive means tokens, prefill progress, or idle and answering. Pure.

A fixed time-out would kill a long prefill that makes progress, and /health
stays green through a wedge (llama.cpp #27388), so neither decides here.
"""

from dataclasses import dataclass, field

from backend.server.diagnosis import Cause
from backend.server.llama import Slots

STALL_SECONDS = 30.0
STOPPED_SECONDS = 3.0
STREAK = 3  # completions in a row that answered 5xx
BUSY_SHARE = 0.05  # of one core, or of the GPU: less is no work
LOAD_SHARE = 0.3  # of one core
PATIENCE = 4.0  # times the measured prefill


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the server. `at` in seconds of a steady clock.

    `slots` is None when /slots did not answer; `signs` counts tokens that
    clients told of; `gpu` is the load, 0 to 1, None where there is none. `ours`:
    more than the requests of other local programs is under way or waits.
    """

    at: float
    slots: Slots | None
    signs: int = 0
    errors: int = 0
    cpu_seconds: float = 0.0
    gpu: float | None = None
    state: str = "S"
    ours: bool = True


@dataclass(frozen=True, slots=True)
class Limits:
    """`silent`: the engine is mute while it prefills, for at most `silent_seconds`."""

    stall_seconds: float = STALL_SECONDS
    silent: bool = False
    silent_seconds: float = 600.0


def limits(
    engine: str, batch: int, context: int, prefill_tok_s: float | None, stall: float = STALL_SECONDS
) -> Limits:
    """What to expect of this engine: one batch may take as long as it was measured to, and more."""
    speed = prefill_tok_s or 50.0
    return Limits(
        stall_seconds=max(stall, PATIENCE * batch / speed),
        silent=engine == "ik_llama.cpp",
        silent_seconds=max(stall, PATIENCE * context / speed),
    )


@dataclass(slots=True)
class StallDetector:
    """Takes one look after the other; `verdict` is None while the server is alive."""

    limits: Limits
    last_sign: float
    last: Look | None = None
    working: float = field(default=0.0)  # when a mute engine last showed load
    stopped_seconds: float = STOPPED_SECONDS
    stopped_since: float | None = None

    def verdict(self, look: Look) -> Cause | None:
        previous, self.last = self.last, look
        if self._alive(previous, look):
            self.last_sign = self.working = look.at
        elif previous and _loaded(previous, look):
            self.working = look.at
        return self._streak(look) or self._stopped(look) or self._stalled(look)

    def _alive(self, previous: Look | None, look: Look) -> bool:
        if previous and look.signs != previous.signs:
            return True
        if look.slots is None:
            return False
        before = previous.slots if previous else None
        return not look.slots.processing or before is None or before.marks != look.slots.marks

    def _streak(self, look: Look) -> Cause | None:
        if look.errors < STREAK:
            return None
        return Cause(
            "errors", f"The model server answered {look.errors} requests in a row with an error."
        )

    def _stopped(self, look: Look) -> Cause | None:
        if look.state not in "Tt":
            self.stopped_since = None
            return None
        if self.stopped_since is None:
            self.stopped_since = look.at
        if look.at - self.stopped_since < self.stopped_seconds:
            return None
        return Cause("stopped", "The model server was stopped (SIGSTOP) by someone.")

    def _stalled(self, look: Look) -> Cause | None:
        silence = look.at - self.last_sign
        # A request of another program may hang as it likes, until somebody of ours comes.
        if silence < self.limits.stall_seconds or not look.ours:
            return None
        # A mute engine that works is believed for several times the measured prefill.
        works = self.limits.silent and look.at - self.working < self.limits.stall_seconds
        if works and silence < self.limits.silent_seconds:
            return None
        return Cause(
            "wedged", f"The model server hung: no token and no progress for {silence:.0f} s."
        )


def _loaded(previous: Look, look: Look) -> bool:
    passed = look.at - previous.at
    worked = look.cpu_seconds - previous.cpu_seconds
    return (passed > 0 and worked / passed > BUSY_SHARE) or (look.gpu or 0) > BUSY_SHARE


@dataclass(slots=True)
class LoadWatch:
    """A loading server lives while it computes, reads, grows or prints."""

    stall_seconds: float
    longest_seconds: float
    began: float
    last_sign: float
    marks: tuple[float, ...] = (0.0, 0.0, 0.0)
    measured: tuple[float, float] = (0.0, 0.0)  # when, and CPU seconds by then

    def verdict(self, at: float, cpu_seconds: float, marks: tuple[float, ...]) -> Cause | None:
        """`marks`: bytes read, resident MiB, bytes printed."""
        moved = any(
            new - old > step for new, old, step in zip(marks, self.marks, _STEPS, strict=True)
        )
        if moved:
            self.marks = marks
        if self._works(at, cpu_seconds) or moved:
            self.last_sign = at
        if at - self.last_sign >= self.stall_seconds or at - self.began >= self.longest_seconds:
            return Cause(
                "slow load", f"The model did not finish loading ({at - self.began:.0f} s)."
            )
        return None

    def _works(self, at: float, cpu_seconds: float) -> bool:
        """Whether it used a fair share of a core; answering our own questions costs a little."""
        then, before = self.measured
        if at - then < 1:
            return False
        self.measured = at, cpu_seconds
        return (cpu_seconds - before) / (at - then) > LOAD_SHARE


# Bytes read, resident MiB, bytes printed: more than this is progress.
_STEPS = (4 << 20, 8.0, 0.0)
