"""Looking after a serving llama-server: asks it for signs of life, and ends its life when there are none."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import NoReturn

from backend import proc
from backend.models.profile import Profile
from backend.server.diagnosis import Cause
from backend.server.llama import LlamaServer, ServerAway, ServerRefused, Slots
from backend.server.process import Child
from backend.server.stall_detector import Limits, Look, StallDetector, limits
from backend.state import PROGRAM, BackendState

TICK = 0.5
NOTHING = Slots(processing=False, marks=(), decoded=0)


class Ended(Exception):
    """A life is over."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.sentence)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class LivenessMonitor:
    """`served` is called when the server has written a token for somebody."""

    state: BackendState
    profile: Profile
    process: Child
    server: LlamaServer
    served: Callable[[], None]

    async def keep(self) -> NoReturn:
        """Look at the server, often while it works; raises Ended when it is not alive."""
        watch = StallDetector(
            self._limits(), monotonic(), stopped_seconds=self.state.timing.stopped
        )
        looked = float("-inf")
        while True:
            await asyncio.sleep(min(TICK, self.state.timing.look_busy))
            state = proc.state(self.process.pid) or "Z"
            if state == "T":
                # Going on where it stood keeps the cache and the open turn; a restart keeps neither.
                self.process.signal(signal.SIGCONT)
            elif monotonic() - looked < self._every(watch):
                continue
            looked = monotonic()
            watch.limits = self._limits()
            if cause := watch.verdict(await self._look(state)):
                raise Ended(cause)

    async def _look(self, state: str) -> Look:
        slots = None if state == "T" else await self._slots()
        if self._used and slots and slots.decoded:
            self.served()
        return Look(
            at=monotonic(),
            slots=slots,
            signs=self.state.signs.tokens,
            errors=self.state.speed.errors,
            cpu_seconds=proc.cpu_seconds(self.process.pid) or 0.0,
            gpu=self.state.cards.load(),
            state=state,
            ours=self._ours,
        )

    def _limits(self) -> Limits:
        batch = int(self.profile.flag("--batch-size") or 2048)
        measured = self.state.speed.speed().prefill_tok_s or self.profile.reference.prefill_tok_s
        context = self.state.config.context or self.profile.context
        return limits(self.profile.engine, batch, context, measured, self.state.timing.stall)

    def _every(self, watch: StallDetector) -> float:
        processing = watch.last and (watch.last.slots is None or watch.last.slots.processing)
        timing = self.state.timing
        return timing.look_busy if self._used or processing else timing.look_idle

    @property
    def _used(self) -> bool:
        return bool(self.state.gpu_queue.holders or self.state.signs.programs)

    @property
    def _ours(self) -> bool:
        gpu_queue = self.state.gpu_queue
        chats = [ticket for ticket in gpu_queue.holders if ticket.chat != PROGRAM]
        return bool(chats or gpu_queue.waiters) or not self.state.signs.programs

    async def _slots(self) -> Slots | None:
        if self.state.status.current.state == "sleeping":
            return NOTHING  # asking would wake it
        if self.profile.sleeps and not self._used:
            return NOTHING if await self.server.healthy() else None
        try:
            return await self.server.slots(min(5.0, self.state.timing.stall / 2))
        except ServerRefused:
            return NOTHING  # it answers, though not to that
        except ServerAway:
            return None


__all__ = ["Ended", "LivenessMonitor"]
