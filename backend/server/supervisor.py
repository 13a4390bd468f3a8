"""Keeps one llama-server alive. With life.py the only writer of the board; others state a wish and wait.

Between two lives policy.py says how long to wait and ladder.py what to give up.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic

from backend.models.profile import Profile, ProfileError, load
from backend.protocol import Restart
from backend.server import restart_backoff
from backend.server.binary import CannotStart
from backend.server.diagnosis import LASTING, Cause
from backend.server.launch import prepare, wanted
from backend.server.memory_fallback import MemoryFallback
from backend.server.process import end_orphan
from backend.server.server_run import ServerRun
from backend.state import BackendState


class SwitchFailed(Exception):
    """The wanted profile did not serve; the old one is back. `str` is one plain sentence."""


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """What somebody asked for: the same profile anew, or another.

    `outcome` becomes None when that serves, or the reason of its first failure.
    """

    cause: Cause
    profile: Profile | None = None
    outcome: "asyncio.Future[str | None]" = field(default_factory=lambda: asyncio.Future())

    def settle(self, reason: str | None) -> None:
        if not self.outcome.done():
            self.outcome.set_result(reason)


class Supervisor:
    def __init__(self, state: BackendState) -> None:
        self.state = state
        self.life: ServerRun | None = None
        self.ladder: MemoryFallback | None = None
        self._record = restart_backoff.Record()
        self._wish: RestartRequest | None = None
        self._granted: RestartRequest | None = None  # acted on, and not yet settled
        self._switching = asyncio.Lock()
        self._wished = asyncio.Event()
        self._gpu_tried = False
        self._climb_at: float | None = None

    @property
    def profile(self) -> str | None:
        """The profile that is wanted, whether it serves by now or not."""
        return self.ladder.full.name if self.ladder else None

    # --- wishes -----------------------------------------------------------------

    def restart(self, sentence: str = "A restart was asked for.") -> None:
        """Start anew with the full profile, at once; open turns go on afterwards."""
        self._ask(RestartRequest(Cause("asked", sentence)))

    async def switch(self, name: str) -> None:
        """Change the profile between turns. SwitchFailed when it does not serve, ProfileError when unknown."""
        wanted = load(name, self.state.config.profiles)
        old = self.ladder.full if self.ladder else None
        waiting = f"The model is being switched to {name}; messages wait."
        async with self._switching, self.state.gpu_queue.between_turns("switch", waiting):
            if old and old.name != name and self.profile == name:
                return  # somebody else asked for the same a moment before
            reason = await self._try(wanted)
            if reason and old and old.name != name:
                await self._try(old)
        if reason:
            raise SwitchFailed(f"{name} could not be started: {reason}")

    def tend(self) -> None:
        if self.life:
            self.life.tend()

    def _ask(self, wish: RestartRequest) -> None:
        # A switch that has not begun restarts the server anyway.
        if self._wish is None or wish.profile:
            self._wish = wish
        self._wished.set()

    async def _try(self, profile: Profile) -> str | None:
        """Start `profile` and wait until it serves (None) or has failed once (the reason)."""
        wish = RestartRequest(Cause("asked", f"The model is switched to {profile.name}."), profile)
        self._ask(wish)
        return await wish.outcome

    def _settle(self, reason: str | None) -> None:
        if self._granted:
            self._granted.settle(reason)
            self._granted = None

    # --- lives ------------------------------------------------------------------

    async def run(self, first: str) -> None:
        """Supervise until cancelled, beginning with the profile `first`."""
        await end_orphan(self.state.record)
        try:
            self.ladder = MemoryFallback(
                wanted(self.state.config, load(first, self.state.config.profiles))
            )
        except ProfileError as error:
            self.state.status.set(state="failed", reason=str(error))
            await self._first_wish()
        while True:
            ended = await self._live()
            await self._between(ended)

    async def _first_wish(self) -> None:
        while self._wish is None or self._wish.profile is None:
            await self._wished.wait()
            self._wished.clear()
        self._grant(self._wish)

    async def _live(self) -> tuple[Cause, bool]:
        """One life: why it ended, and whether that says nothing against the next start."""
        assert self.ladder
        profile, state = self.ladder.profile, self.state
        state.status.set(
            state="starting", profile=self.ladder.full.name, warm=None, done=None, total=None
        )
        state.speed.begin(self.ladder.full.name)
        served = state.speed.served
        try:
            launch = await prepare(state.config, profile)
        except CannotStart as error:
            return error.cause, False
        profile = launch.profile
        self.ladder = self.ladder.started(profile)
        if launch.changed:
            state.news("fit", "info", launch.changed)
        if launch.left_out:
            state.news(
                "flags", "info", f"The model server lacks {', '.join(launch.left_out)}; left out."
            )
        state.gpu_queue.resize(profile.slots)
        told = not self._gpu_tried
        self.life = ServerRun(
            state, profile, launch, gpu_expected=told, on_serving=lambda: self._settle(None)
        )
        try:
            cause = await self._until_wish(self.life)
        except OSError as error:
            cause = Cause("unknown", f"The model server cannot be run: {error.strerror}.")
        state.status.set(pid=None)
        return cause, _blameless(self.life, cause) or state.speed.served > served

    async def _until_wish(self, life: ServerRun) -> Cause:
        """Run a life until it ends or somebody wishes for another."""
        living = asyncio.create_task(life.run())
        wishing = asyncio.create_task(self._wished.wait())
        climbing = asyncio.create_task(self._climb_when_due())
        tasks = {living, wishing, climbing}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if living.cancelled() or self._wish:
            return self._wish.cause if self._wish else Cause("asked", "Back to the full profile.")
        return living.result()

    async def _climb_when_due(self) -> None:
        """Return when a day has passed since the first step down, and nobody is at work."""
        if self._climb_at is None:
            await asyncio.Event().wait()
            return
        await asyncio.sleep(max(0.0, self._climb_at - monotonic()))
        async with self.state.gpu_queue.emptied(
            "climb", "The model server returns to its full settings."
        ):
            self._climb_at = None
            assert self.ladder
            self.ladder = self.ladder.up()

    # --- between lives ----------------------------------------------------------

    async def _between(self, ended: tuple[Cause, bool]) -> None:
        cause, served = ended
        self._count(cause)
        if self._wish:
            self._grant(self._wish)
        elif cause.kind == "asked":
            self._say_less()
        elif cause.kind == "out of memory" and self._step_down():
            pass
        elif cause.kind == "cpu fallback":
            self._gpu_tried = True
        else:
            await self._pause(cause, served)

    def _count(self, cause: Cause) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        restarts = self.state.status.current.restarts + 1
        self.state.status.set(restarts=restarts, last_restart=Restart(at=now, cause=cause.sentence))
        if cause.kind != "asked":
            self.state.news("server", "warning", cause.sentence)

    def _grant(self, wish: RestartRequest) -> None:
        self._wish = None
        self._wished.clear()
        self._record, self._gpu_tried, self._climb_at = restart_backoff.Record(), False, None
        if wish.profile:
            self.ladder = MemoryFallback(wanted(self.state.config, wish.profile))
        elif self.ladder:
            self.ladder = self.ladder.up()
        assert self.ladder
        self.state.status.set(
            state="starting", reason=wish.cause.sentence, profile=self.ladder.full.name
        )
        self._say_less()
        self._granted = wish

    def _step_down(self) -> bool:
        assert self.ladder
        life = self.life
        less = self.ladder.down(life.buffers) if life else None
        if less is None:
            return False
        self.ladder = less
        self._climb_at = self._climb_at or monotonic() + self.state.timing.climb
        words = less.taken[-1].words
        sentence = f"The GPU ran out of memory; going on with {words}."
        self.state.status.set(state="starting", reason=sentence)
        self.state.news("memory", "warning", sentence)
        self._say_less()
        return True

    def _say_less(self) -> None:
        taken = self.ladder.taken if self.ladder else ()
        self.state.status.set(less_memory=[step.words for step in taken])

    async def _pause(self, cause: Cause, served: bool) -> None:
        timing = self.state.timing
        self._record = self._record.ended(served)
        self._settle(cause.sentence)
        failed = self._record.failed or (cause.kind in LASTING and not served)
        state = "failed" if failed else "restarting"
        self.state.status.set(state=state, reason=cause.sentence)
        if failed:
            self._record = replace(self._record, barren=restart_backoff.GIVE_UP_AFTER)
            self.state.news(
                "failed", "critical", f"The model server cannot be started: {cause.sentence}"
            )
        seconds = (
            timing.retry
            if failed
            else restart_backoff.pause(self._record, self.state.chance, timing.first_pause)
        )
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wished.wait(), seconds)
        if self._wish:
            self._grant(self._wish)


def _blameless(life: ServerRun, cause: Cause) -> bool:
    """It served somebody, or somebody else ended it after it had become ready."""
    return life.served or (life.was_ready and cause.kind == "killed")
