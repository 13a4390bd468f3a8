"""The card is lent to other programs: no model is loaded until a time, or while another program computes on it."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from time import monotonic

from pydantic import AwareDatetime, ValidationError

from backend.aio import set_within
from backend.files import replace_text
from backend.gpu.nvml import Sample
from backend.protocol import MOST_LENT, Phrase, Value
from backend.state import BackendState

LENT = "lent"
STEP_SECONDS = 4.0  # a request that runs longer is broken off; its client makes it again at the end
SAVE_SECONDS = 4.0  # in which clients have unsaved prompts saved
UNLOAD_SECONDS, FREE_SECONDS = 30.0, 10.0
STAYS = 3  # samples in a row
HELD_SECONDS = 60.0  # after the last sample with another program


class Lend(Value):
    """The file's content. `known`, of a lend by itself: processes for which the card is not lent."""

    until: AwareDatetime
    known: frozenset[int] | None = None


class Lending:
    """Whether the card is lent, also after a restart of the backend. The supervisor unloads and loads the model."""

    def __init__(self, state: BackendState) -> None:
        self.state = state
        # `begun` also when it is lent once more while the model is being loaded.
        self.begun, self._unloaded = asyncio.Event(), asyncio.Event()
        self._changed = asyncio.Event()
        self._returning = False  # until the model serves after a lend
        self.lend: Lend | None = None
        self._known: frozenset[int] = frozenset()
        self._server: int | None = None  # the process beside which those were known
        self._streak = 0  # samples in a row with another program
        with suppress(OSError, ValidationError):
            self.lend = Lend.model_validate_json(self._file.read_bytes())
            self._ends = monotonic() + MOST_LENT
            self._known = self.lend.known or self._known
            self.begun.set()

    @property
    def _file(self) -> Path:
        return self.state.config.state_dir / "lend.json"

    @property
    def left(self) -> float:
        """Seconds until the card is to be given back, 0 if it is not lent; a clock set back does not add to them."""
        if not self.lend:
            return 0.0
        by_clock = (self.lend.until - self.state.now()).total_seconds()
        return min(by_clock, self._ends - monotonic())

    @property
    def reason(self) -> Phrase:
        if self.lend and self.lend.known is not None:
            reason = Phrase("Another program computes on the card; messages wait until it ends.")
        elif self.lend is None or self.left <= 0:
            return Phrase("The model is being loaded again.")
        else:
            at = f"{self.lend.until:%H:%M}"
            reason = Phrase("The card is lent until {at}; messages wait.", at=at)
        if not self.state.config.urgent_model:
            return reason
        form = "{reason} A small model answers `/urgent WORDS` meanwhile."
        return Phrase(form, reason=reason)

    def begin(self, seconds: float, known: frozenset[int] | None = None) -> None:
        """Lend the card for `seconds` from now on, also if it is lent already; 0 takes it back."""
        again = self.lend is not None
        if not seconds and not again:
            return
        self.lend = Lend(until=self.state.now() + timedelta(seconds=seconds), known=known)
        self._ends = monotonic() + seconds
        with suppress(OSError):  # a full disk: a restart ends the lend
            replace_text(self._file, self.lend.model_dump_json())
        self.state.status.set(lent_until=self.lend.until)
        if again:
            self.state.gpu_queue.close(LENT, self.reason)
        if seconds and not self._unloaded.is_set():
            self.begun.set()
        self._changed.set()

    def end(self) -> None:
        """The model serves again, or cannot."""
        self.lend, self._returning = None, True
        self.begun.clear()
        with suppress(OSError):  # a disk that can only be read
            self._file.unlink(missing_ok=True)
        self.state.status.set(lent_until=None)
        if self.state.status.current.serving:
            self.tell_back()

    def tell_back(self) -> None:
        """Tell the owner, once after a lend, that the model serves again."""
        if self._returning and not self.lend:
            self._returning = False
            self.state.alerts.add(LENT, "over", Phrase("The card is back: the model serves again."))

    async def over(self) -> None:
        """Return once the card is not lent; meanwhile no model may be loaded."""
        while self.lend and self.left > 0:
            self._changed.clear()
            self.state.status.set(state="sleeping", reason=self.reason, lent_until=self.lend.until)
            self._unloaded.set()
            await set_within(self._changed, min(self.left, self.state.timing.look_schedule))
        self._unloaded.clear()
        self.state.status.set(reason=self.reason)

    async def unloaded(self, pid: int | None) -> Phrase:
        """Once the model is unloaded, a sentence on whether the card is free of the server's process `pid`."""
        ended = await set_within(self._unloaded, UNLOAD_SECONDS)
        at, began = f"{self.lend.until:%H:%M}" if self.lend else "", monotonic()
        sample = self.state.sampler.fresh
        while ended and monotonic() - began < FREE_SECONDS:
            sample = self.state.sampler.fresh
            if sample is None:
                break
            if sample.at > began and sample.without(pid):
                return Phrase("The card is free until {at}.", at=at)
            await asyncio.sleep(self.state.timing.look_busy)
        if sample is None:
            return Phrase("The model is unloaded until {at}.", at=at)
        held = sum(gpu.memory_used_mib or 0 for gpu in sample.gpus)
        form = "The card is lent until {at}, but {mib} MiB of its memory are still held."
        return Phrase(form, at=at, mib=round(held))

    def sample(self, sample: Sample) -> None:
        """Lend the card to a program that begins to compute on it beside the model."""
        server, lend = self.state.status.current, self.lend
        if not lend and server.pid != self._server and server.pid in sample.pids:
            self._server, self._known = server.pid, sample.pids
        others = sample.pids - self._known - {server.pid}
        # A container does not see the processes of others, nor its own.
        self._streak = self._streak + 1 if others and server.pid in sample.pids else 0
        if lend is None and self._streak >= STAYS:
            self.begin(HELD_SECONDS, self._known)
            self.state.alerts.add(LENT, "info", self.reason)
        elif lend and lend.known is not None and others and self.left < HELD_SECONDS / 2:
            self.begin(HELD_SECONDS, self._known)
