"""Watches a serving llama-server: observes it, and ends its run when the stall detector says so."""

import asyncio
import signal
from dataclasses import dataclass
from time import monotonic
from typing import NoReturn

from backend import proc
from backend.models.profile import Profile
from backend.server.diagnosis import Cause
from backend.server.llama import LlamaServer, ServerAway, ServerRefused, Slots
from backend.server.process import ServerProcess
from backend.server.stall_detector import Observation, StallDetector, StallLimits, stall_limits
from backend.state import PROXY, BackendState

TICK_SECONDS = 0.5
IDLE_SLOTS = Slots(processing=False, marks=(), decoded=0)


class RunEnded(Exception):
    """The server has ended, or has to."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.sentence)
        self.cause = cause


@dataclass(slots=True)
class LivenessMonitor:
    """`served` becomes True when the server has written a token for somebody."""

    state: BackendState
    profile: Profile
    process: ServerProcess
    server: LlamaServer
    served: bool = False

    async def watch(self) -> NoReturn:
        """Observe the server, more often while it works; raises RunEnded when it is not alive."""
        timing = self.state.timing
        detector = StallDetector(self.limits(), monotonic(), stopped_seconds=timing.stopped)
        last_look = float("-inf")
        while True:
            await asyncio.sleep(min(TICK_SECONDS, timing.look_busy))
            process_state = proc.state(self.process.pid) or "Z"
            seen = detector.last
            works = seen and (seen.slots is None or seen.slots.processing)
            pause = timing.look_busy if self.used or works else timing.look_idle
            if process_state == "T":
                # Going on where it stood keeps the cache and the open turn; a restart keeps neither.
                self.process.signal(signal.SIGCONT)
            elif monotonic() - last_look < pause:
                continue
            last_look = monotonic()
            detector.limits = self.limits()
            if cause := detector.check(await self.observe(process_state)):
                raise RunEnded(cause)

    async def observe(self, process_state: str) -> Observation:
        slots = None if process_state == "T" else await self.slots()
        if self.used and slots and slots.decoded:
            self.served = True
        queue, proxied = self.state.gpu_queue, self.state.activity.proxied
        chats = [ticket for ticket in queue.holders if ticket.chat != PROXY]
        return Observation(
            at=monotonic(),
            slots=slots,
            heartbeats=self.state.activity.heartbeats,
            errors=self.state.speed.errors,
            cpu_seconds=proc.cpu_seconds(self.process.pid) or 0.0,
            gpu=self.state.gpu_load(),
            process_state=process_state,
            wanted=bool(chats or queue.waiters) or not proxied,
        )

    def limits(self) -> StallLimits:
        batch = int(self.profile.flag("--batch-size") or 2048)
        measured = self.state.speed.speed().prefill_tok_s or self.profile.reference.prefill_tok_s
        context = self.state.config.context or self.profile.context
        stall = self.state.timing.stall
        return stall_limits(self.profile.engine, batch, context, measured, stall)

    @property
    def used(self) -> bool:
        return bool(self.state.gpu_queue.holders or self.state.activity.proxied)

    async def slots(self) -> Slots | None:
        """What the slots do; None when the server does not answer."""
        if self.state.status.current.state == "sleeping":
            return IDLE_SLOTS  # asking would wake it
        if self.profile.sleeps and not self.used:
            return IDLE_SLOTS if await self.server.healthy() else None
        try:
            return await self.server.slots(min(5.0, self.state.timing.stall / 2))
        except ServerRefused:
            return IDLE_SLOTS  # it answers, though not to that
        except ServerAway:
            return None
