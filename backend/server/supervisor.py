"""Keeps one llama-server alive: starts it, and restarts it when its run has ended.

Only Supervisor and ServerRun write the server's status; others make a RestartRequest
and wait. Between two runs process.py decides how long to wait, and
memory_fallback.py what to reduce.
"""

import asyncio
import random
from dataclasses import dataclass, field, replace
from math import inf
from time import monotonic
from typing import NoReturn

from backend.aio import first_of, set_within
from backend.gpu.nvml import installed_gpus
from backend.models.profile import Profile, ProfileError, load
from backend.protocol import Phrase
from backend.server.diagnosis import LASTING, Cause
from backend.server.launch import CannotStart, prepare, with_context
from backend.server.lending import LENT, SAVE_SECONDS, STEP_SECONDS, Lending
from backend.server.memory_fallback import MemoryFallback
from backend.server.process import RestartBackoff, end_orphan
from backend.server.server_run import ServerRun
from backend.state import BackendState


class SwitchFailed(Exception):
    """The new profile did not serve, and the old one was restored. `str` is one plain sentence."""


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """A request to restart with the same profile, or with another one.

    `outcome` becomes None when it serves, or the reason of its first failure.
    """

    cause: Cause
    profile: Profile | None = None
    outcome: "asyncio.Future[Phrase | None]" = field(default_factory=lambda: asyncio.Future())


class Supervisor:
    """Keeps llama-server running with the wanted profile.

    `fallback` holds the wanted profile, whether or not it serves yet.
    """

    def __init__(self, state: BackendState) -> None:
        self.state = state
        self.server_run: ServerRun | None = None
        self.fallback: MemoryFallback | None = None  # until a profile could be read
        self.lending = Lending(state)
        self._request: RestartRequest | None = None  # not yet acted on
        self._accepted: list[RestartRequest] = []  # acted on, but without an outcome yet
        self._requested = asyncio.Event()
        self._switching = asyncio.Lock()
        self._backoff = RestartBackoff()
        self._gpu_expected = True  # False after a start that came up on the processor
        self._reduced = False  # by what the owner was not told yet
        self._restore_at = inf  # monotonic clock
        self._rng = random.Random()

    @property
    def profile(self) -> str | None:
        """The name of the wanted profile."""
        return self.fallback.full.name if self.fallback else None

    # --- requests of others -------------------------------------------------------

    def restart(self) -> None:
        """Restart at once with the full profile; open turns continue afterwards."""
        self._make_request(RestartRequest(Cause("asked", Phrase("A restart was asked for."))))

    async def switch(self, name: str) -> None:
        """Switch the profile between turns.

        Raises SwitchFailed when the new one does not serve, ProfileError when it is unknown.
        """
        wanted = await self._load(name)
        old = self.fallback.full if self.fallback else None
        waiting = Phrase("The model is being switched to {name}; messages wait.", name=name)
        async with self._switching, self.state.gpu_queue.between_turns("switch", waiting):
            if old and old != wanted and self.fallback and self.fallback.full == wanted:
                return  # another request for this profile came first
            reason = await self._start_profile(wanted)
            if reason and old and old != wanted:
                await self._start_profile(old)
        if reason:
            raise SwitchFailed(Phrase("{name} could not be started: {why}", name=name, why=reason))

    async def _load(self, name: str) -> Profile:
        profile = load(name, self.state.config.profiles)
        if profile.cpu:
            cards = (await asyncio.to_thread(installed_gpus)).gpus
            profile = profile.for_machine(gpu=bool(cards))
        return with_context(self.state.config, profile)

    async def _start_profile(self, profile: Profile) -> Phrase | None:
        """Start with this profile; return None once it serves, or the reason when it failed once."""
        cause = Cause("asked", Phrase("The model is switched to {name}.", name=profile.name))
        return await self._make_request(RestartRequest(cause, profile)).outcome

    def _make_request(self, request: RestartRequest) -> RestartRequest:
        """Have the server restarted; return the request whose outcome counts."""
        # A switch that has not begun restarts the server anyway.
        if self._request is None or request.profile:
            self._request = request
        self._requested.set()
        return self._request

    async def keep_lent(self) -> NoReturn:
        """Whenever the card is lent: unload the model, and let nobody in until one serves again."""
        lending, queue = self.lending, self.state.gpu_queue
        while True:
            await lending.begun.wait()
            chats, ends = self.server_run and self.server_run.chats, monotonic() + SAVE_SECONDS
            while chats and chats.unsaved and not queue.open_turns and monotonic() < ends:
                await asyncio.sleep(self.state.timing.look_busy)  # their client has them saved
            async with (
                self._switching,
                queue.between_turns(LENT, lending.reason, patience=0, last_step=STEP_SECONDS),
            ):
                lent = True
                while lent:
                    chats = self.server_run.chats if self.server_run else None
                    if chats and not queue.holders:
                        await chats.save(queue.last_chat)
                        await chats.flushed()
                    lending.begun.clear()
                    request = self._make_request(RestartRequest(Cause("asked", lending.reason)))
                    await first_of(asyncio.wait([request.outcome]), lending.begun.wait())
                    lent = lending.left > 0  # again, before the model served
                lending.end()

    def _accept(self, request: RestartRequest) -> None:
        self._request = None
        self._requested.clear()
        self._backoff, self._gpu_expected, self._restore_at = RestartBackoff(), True, inf
        wanted = request.profile or (self.fallback and self.fallback.full)
        assert wanted
        self.fallback = MemoryFallback(wanted)
        self.state.status.set(
            state="starting", reason=request.cause.sentence, profile=self.profile, less_memory=[]
        )
        self._accepted.append(request)

    def _settle(self, reason: Phrase | None) -> None:
        for request in self._accepted:
            if not request.outcome.done():
                request.outcome.set_result(reason)
        self._accepted = []

    def _serve(self) -> None:
        """Tell whoever requested the start that the server serves; tell the owner, once, what was reduced for memory."""
        self._settle(None)
        self.lending.tell_back()
        if self.state.alerts.stands("failed"):
            self.state.alerts.add("failed", "over", Phrase("The model answers now."))
        if self._reduced and self.fallback:
            form = "The GPU ran out of memory; continuing with {less}."
            last = {taken.label.split()[0]: taken.description for taken in self.fallback.taken}
            less = list(last.values())  # of two smaller windows the second
            self.state.alerts.add("memory", "warning", Phrase(form, less=less))
        self._reduced = False

    # --- runs ---------------------------------------------------------------------

    async def run(self, first: str) -> None:
        """Supervise until cancelled, beginning with the profile `first`."""
        await end_orphan(self.state.server_record)
        try:
            self.fallback = MemoryFallback(await self._load(first))
        except ProfileError as error:
            while (request := self._request) is None or request.profile is None:
                self.state.status.set(state="failed", reason=Phrase.of(error))
                await self._requested.wait()
                self._requested.clear()
                if self._request and self._request.profile is None:
                    await self.lending.over()
                    self._request.outcome.set_result(Phrase.of(error))
                    self._request = None
            self._accept(request)
        while True:
            if self.lending.left > 0:
                self.server_run = None
                await self.lending.over()
            if self._request:  # made while the card was lent
                self._accept(self._request)
            assert self.fallback
            cause, served = await self._run_server(self.fallback)
            await self._after_run(cause, served)

    async def _run_server(self, fallback: MemoryFallback) -> tuple[Cause, bool]:
        """Run the server once: the cause of its end, and whether it had served."""
        state = self.state
        state.status.set(state="starting", profile=self.profile, warm=None, done=None, total=None)
        state.speed.begin(fallback.full.name)
        served_before = state.speed.served
        try:
            launch = await prepare(state.config, fallback.profile)
            if launch.identity in state.canary.leaking:
                launch = await prepare(state.config, fallback.profile.isolated())
        except CannotStart as error:
            return error.cause, False
        self.fallback = replace(fallback, placed=launch.profile)
        for change in launch.changes:
            state.alerts.add("fit", "info", change)
        if launch.left_out:
            lacking = ", ".join(launch.left_out)
            sentence = Phrase("The model server lacks {flags}; left out.", flags=lacking)
            state.alerts.add("flags", "info", sentence)
        state.gpu_queue.resize(launch.profile.slots)
        on_gpu = self._gpu_expected
        server_run = self.server_run = ServerRun(state, launch, self._serve, gpu_expected=on_gpu)
        requested, restored = self._requested.wait(), self._restore_when_due()
        running, *_ = await first_of(server_run.run(), requested, restored)
        if self._request:
            cause = self._request.cause
        elif running.cancelled():
            cause = Cause("asked", Phrase("Back to the full profile."))
        else:
            try:
                cause = running.result()
            except OSError as error:
                why = error.strerror or ""
                sentence = Phrase("The model server cannot be run: {why}.", why=why)
                cause = Cause("unknown", sentence)
        state.status.set(pid=None)
        # A server that somebody killed is restarted without a pause, like one that had served.
        killed = server_run.was_ready and cause.kind == "killed"
        return cause, server_run.served or killed or state.speed.served > served_before

    async def _restore_when_due(self) -> None:
        """Restore the full profile a day after the first reduction, when nobody holds the GPU."""
        await asyncio.sleep(max(0.0, self._restore_at - monotonic()))
        reason = Phrase("The model server returns to its full settings.")
        async with self.state.gpu_queue.drained("restore", reason):
            self._restore_at = inf
            assert self.fallback
            self.fallback = MemoryFallback(self.fallback.full)

    async def _after_run(self, cause: Cause, served: bool) -> None:
        """Record the end of a run, and decide what to start next and when."""
        status = self.state.status
        restart = self.state.restarts.add(cause.sentence)
        status.set(restarts=status.current.restarts + 1, last_restart=restart)
        reduced = cause.kind == "out of memory" and not self._request and self._reduce_memory()
        if cause.kind == "leak":
            self.state.alerts.add("leak", "critical", cause.sentence)
        elif cause.kind != "asked" and not reduced:
            self.state.alerts.add("server", "warning", cause.sentence)
        if self._request:
            self._accept(self._request)
        elif cause.kind == "asked":
            status.set(less_memory=[])
        elif cause.kind == "cpu fallback":
            self._gpu_expected = False
        elif not reduced:
            await self._pause(cause, served)

    def _reduce_memory(self) -> bool:
        """Take the next memory reduction; False when there is none left."""
        run, fallback = self.server_run, self.fallback
        less = fallback.reduced(run.buffers) if run and fallback else None
        if less is None:
            return False
        self.fallback = less
        self._restore_at = min(self._restore_at, monotonic() + self.state.timing.restore)
        taken = [reduction.description for reduction in less.taken]
        sentence = Phrase("The GPU ran out of memory; continuing with {less}.", less=taken[-1])
        self.state.status.set(state="starting", reason=sentence, less_memory=taken)
        self._reduced = True
        return True

    async def _pause(self, cause: Cause, served: bool) -> None:
        """Wait before the next start, or until a request arrives."""
        timing = self.state.timing
        self._backoff = self._backoff.ended(served=served, lasting=cause.kind in LASTING)
        self._settle(cause.sentence)
        failed = self._backoff.given_up
        self.state.status.set(state="failed" if failed else "restarting", reason=cause.sentence)
        if failed:
            sentence = Phrase("The model server cannot be started: {why}", why=cause.sentence)
            self.state.alerts.add("failed", "critical", sentence)
        seconds = self._backoff.pause(self._rng, timing.first_pause, timing.retry)
        await set_within(self._requested, seconds)
        if self._request:
            self._accept(self._request)
