"""Whether the server makes progress: it decodes, prefills, or is idle and answers. Pure.

A fixed time-out would end a long prefill that makes progress, and /health answers
200 while the decode loop hangs (llama.cpp #27388), so neither is used.
"""

from dataclasses import dataclass, field

from backend.protocol import Phrase
from backend.server.diagnosis import Cause
from backend.server.llama import Slots

STALL_SECONDS = 30.0
STOPPED_SECONDS = 3.0
STREAK = 3  # completions in a row that answered 5xx
BUSY_SHARE = 0.05  # of one core, or of the GPU: less counts as idle
FROZEN_SECONDS = 10.0  # between two looks at a load: this process was frozen, too
LOAD_SHARE = 0.3  # of one core
COMPILE_SECONDS = 600.0  # the driver compiles one of llama.cpp's modules, and the server is silent
PATIENCE = 4.0  # multiple of the measured prefill time
# Bytes read, resident MiB, bytes printed: a larger step is progress.
LOAD_STEPS = 4 << 20, 8.0, 0.0


@dataclass(frozen=True, slots=True)
class Observation:
    """The server at one moment; `at` in seconds of a monotonic clock.

    `slots` is None when /slots did not answer; `heartbeats` is the number sent by
    clients; `errors` counts failed completions in a row; `gpu` is the load, 0 to 1,
    None without a GPU. `wanted` is False if only requests of other local programs
    are running and none waits.
    """

    at: float
    slots: Slots | None
    heartbeats: int = 0
    errors: int = 0
    cpu_seconds: float = 0.0
    gpu: float | None = None
    process_state: str = "S"  # as in /proc
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class StallLimits:
    """A server counts as hung after `stall_seconds` without progress; one that works but reports nothing only after
    `silent_seconds`, if that is longer."""

    stall_seconds: float = STALL_SECONDS
    silent_seconds: float = 0.0


def stall_limits(
    engine: str,
    batch: int,
    context: int,
    prefill_tok_s: float | None,
    stall: float = STALL_SECONDS,
    *,
    compiling: bool = False,
) -> StallLimits:
    """Limits for an engine with this prefill speed; a batch may take PATIENCE times as long as measured.

    `compiling`: the driver may have to compile code for the card before the server goes on.
    """
    speed = prefill_tok_s or 50.0
    ik = engine == "ik_llama.cpp"  # silent while it prefills (ik_llama.cpp #1210)
    longest = (PATIENCE * context / speed if ik else 0, COMPILE_SECONDS if compiling else 0)
    return StallLimits(
        stall_seconds=max(stall, PATIENCE * batch / speed),
        silent_seconds=max(longest),
    )


@dataclass(slots=True)
class StallDetector:
    """Takes observations in order; `check` returns None while the server is alive."""

    limits: StallLimits
    last_progress: float
    last: Observation | None = None
    last_load: float = field(default=0.0)  # when a silent engine last used CPU or GPU
    stopped_seconds: float = STOPPED_SECONDS
    stopped_since: float | None = None

    def check(self, seen: Observation) -> Cause | None:
        previous, self.last = self.last, seen
        # After so long without a look this process was frozen too: what it missed is no silence.
        frozen = previous and seen.at - previous.at >= self.limits.stall_seconds
        if frozen or progressed(previous, seen):
            self.last_progress = self.last_load = seen.at
        elif previous and loaded(previous, seen):
            self.last_load = seen.at
        if seen.errors >= STREAK:
            sentence = "The model server answered {count} requests in a row with an error."
            return Cause("errors", Phrase(sentence, count=seen.errors))
        return self._stopped(seen) or self._stalled(seen)

    def _stopped(self, seen: Observation) -> Cause | None:
        if seen.process_state not in "Tt":
            self.stopped_since = None
            return None
        if self.stopped_since is None:
            self.stopped_since = seen.at
        if seen.at - self.stopped_since < self.stopped_seconds:
            return None
        return Cause("stopped", Phrase("The model server was stopped (SIGSTOP) by someone."))

    def _stalled(self, seen: Observation) -> Cause | None:
        silence = seen.at - self.last_progress
        # A request of another local program may hang until one of a chat waits behind it.
        if silence < self.limits.stall_seconds or not seen.wanted:
            return None
        works = seen.at - self.last_load < self.limits.stall_seconds
        if works and silence < self.limits.silent_seconds:
            return None
        sentence = "The model server hung: no token and no progress for {seconds} s."
        return Cause("wedged", Phrase(sentence, seconds=round(silence)))


def progressed(previous: Observation | None, seen: Observation) -> bool:
    """Whether a client sent a heartbeat, or the slots advanced or are idle."""
    if previous and seen.heartbeats != previous.heartbeats:
        return True
    if seen.slots is None:
        return False
    before = previous.slots if previous else None
    return not seen.slots.processing or before is None or before.marks != seen.slots.marks


def loaded(previous: Observation, seen: Observation) -> bool:
    passed = seen.at - previous.at
    worked = seen.cpu_seconds - previous.cpu_seconds
    return (passed > 0 and worked / passed > BUSY_SHARE) or (seen.gpu or 0) > BUSY_SHARE


@dataclass(slots=True)
class LoadStallDetector:
    """A loading server makes progress while it computes, reads, grows or prints."""

    stall_seconds: float
    longest_seconds: float
    began: float
    last_progress: float
    marks: tuple[float, ...] = (0.0, 0.0, 0.0)
    measured: tuple[float, float] = (0.0, 0.0)  # when, and CPU seconds by then

    def check(self, at: float, cpu_seconds: float, marks: tuple[float, ...]) -> Cause | None:
        """Return why loading counts as stalled at the time `at`, None while it goes on.

        `marks`: bytes read, resident MiB, bytes printed.
        """
        steps = zip(marks, self.marks, LOAD_STEPS, strict=True)
        then, before = self.measured
        if at - then >= FROZEN_SECONDS:
            self.began += at - then
            self.last_progress = at
        if any(new - old > step for new, old, step in steps):
            self.marks, self.last_progress = marks, at
        if at - then >= 1:
            self.measured = at, cpu_seconds
            # Answering the health checks alone takes less than this share of a core.
            if (cpu_seconds - before) / (at - then) > LOAD_SHARE:
                self.last_progress = at
        took = at - self.began
        if at - self.last_progress >= self.stall_seconds or took >= self.longest_seconds:
            sentence = "The model did not finish loading ({seconds} s)."
            return Cause("slow load", Phrase(sentence, seconds=round(took)))
        return None
