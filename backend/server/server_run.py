"""One run of llama-server: start, load, warm-up, watching it serve, and why it ended."""

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import NoReturn

from backend import proc
from backend.aio import set_within
from backend.models.profile import Profile
from backend.protocol import PREFIX, SCHEDULED, Phrase, Restored
from backend.server.canary import Canary
from backend.server.chat_states import NOTHING_SHARED, PART, ChatStates
from backend.server.diagnosis import Cause, diagnose, on_cpu
from backend.server.launch import LOAD_LOOK_SECONDS, Launch
from backend.server.llama import LlamaServer, ServerAway, ServerRefused, Slots, llama_server
from backend.server.memory_fallback import Buffers, logged_buffers
from backend.server.process import ServerProcess, server_process
from backend.server.stall_detector import (
    LoadStallDetector,
    Observation,
    StallDetector,
    StallLimits,
    stall_limits,
)
from backend.server.warmup import Warmer
from backend.state import PROXY, BackendState

log = logging.getLogger(__name__)

HUNG = frozenset({"wedged", "stopped", "slow load"})  # these do not react to TERM
ON_CPU = Phrase("The model runs on the processor instead of the GPU, many times slower.")
ASLEEP = Phrase("The model server does not compute any more after the machine has slept.")
LEAKS = Phrase(
    "One conversation could read another in the model server. It now serves one at a time and keeps none in its cache."
)
STILL_LEAKS = Phrase(
    "One conversation can read another in the model server, even one at a time and without its cache. "
    "Install another build of it."
)
COMPILER = "libnvidia-ptxjitcompiler"  # loaded by the driver to compile PTX for the card
COMPILES = Phrase("The driver compiles the model server for this card. It takes minutes, once.")
TICK_SECONDS = 0.5
SLEPT_SECONDS = 5.0  # less is no sleep of the machine
IDLE_SLOTS = Slots(processing=False, marks=(), decoded=0)


class RunEnded(Exception):
    """The server has ended, or has to."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.sentence)
        self.cause = cause


class ServerRun:
    """One run of llama-server. `on_serving` is called once, when the server takes requests."""

    def __init__(
        self,
        state: BackendState,
        launch: Launch,
        on_serving: Callable[[], None],
        *,
        gpu_expected: bool,
    ) -> None:
        self.state, self.launch, self.profile = state, launch, launch.profile
        self.gpu_expected, self.on_serving = gpu_expected, on_serving
        self.process: ServerProcess | None = None
        self.monitor: LivenessMonitor | None = None  # from when it has loaded
        self.chats: ChatStates | None = None  # from when it has loaded
        self.was_ready = False
        self.serves = False
        self.vision = False
        self.audio = False
        self.new_prefix = asyncio.Event()  # set it to have the registered prefix warmed

    @property
    def served(self) -> bool:
        """Whether the server has written a token for a client."""
        return self.monitor is not None and self.monitor.served

    @property
    def buffers(self) -> Buffers:
        log = self.process.log.everything() if self.process else []
        return logged_buffers(log, self.launch.draft_mib)

    async def run(self) -> Cause:
        """Run the server to its end, and return the cause."""
        cause = Cause("unknown", Phrase("The model server ended."))
        async with (
            server_process(
                self.launch.argv, self.launch.env, self.state.server_record
            ) as self.process,
            llama_server(self.launch.url, self.launch.api_key) as server,
        ):
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._until_exit(self.process))
                    await self._serve(group, self.process, server)
            except* RunEnded as ends:
                cause = first_cause(ends)
            self._set_away(cause.sentence)
            if cause.kind in HUNG:
                self.process.signal(signal.SIGKILL)
        return cause

    async def _until_exit(self, process: ServerProcess) -> NoReturn:
        kills = proc.oom_kills()
        code = await process.wait()
        self._set_away(None)
        raise RunEnded(diagnose(code, await process.final_log(), proc.oom_kills() - kills))

    def _set_away(self, reason: Phrase | None) -> None:
        self.serves = False
        if self.chats:
            self.chats.end()
        self.state.status.set(state="restarting", reason=reason, pid=None)

    async def _serve(
        self, group: asyncio.TaskGroup, process: ServerProcess, server: LlamaServer
    ) -> None:
        state, profile = self.state, self.profile
        state.status.set(state="loading", reason=None, pid=process.pid)
        await self._load(process, server)
        if self.gpu_expected and self._on_cpu(process):  # the supervisor tries once more
            sentence = Phrase("The model server came up on the processor, not on the GPU.")
            raise RunEnded(Cause("cpu fallback", sentence))
        try:
            props = await server.props()
        except (ServerAway, ServerRefused) as error:
            sentence = Phrase(
                "The model server does not answer /props: {why}.", why=Phrase.of(error)
            )
            raise RunEnded(Cause("unknown", sentence)) from None
        self.vision = props.vision
        self.audio = props.audio
        state.status.set(n_ctx=props.n_ctx or profile.context, model=self.launch.model.name)
        self.monitor = LivenessMonitor(state, profile, process, server, self.new_prefix)
        group.create_task(self.monitor.watch())
        folder, template = state.config.slots_folder, dict(profile.template)
        warmer = Warmer(server, folder, self.launch.identity, template, profile.slots)
        self.chats = self._chat_states(server)
        await self._warm(warmer)
        for holder in state.gpu_queue.holders:  # its request waits for this server
            if restoring := self.chats.restoring(holder.chat):
                await restoring
        self.serves = self.was_ready = True
        self.on_serving()
        reason = ON_CPU if self._on_cpu(process) else None
        if reason:
            state.alerts.add("cpu fallback", "warning", reason)
        state.status.set(state="ready", reason=reason, done=None, total=None)
        group.create_task(self._warm_new_prefixes(warmer))
        group.create_task(self._check_separation(server, warmer))
        if profile.sleeps:
            group.create_task(self._follow_sleep(server, warmer))

    def _chat_states(self, server: LlamaServer) -> ChatStates:
        config, status = self.state.config, self.state.status

        def restored(now: Restored) -> None:
            status.set(restored=now.added_to(status.current.restored))

        for left in config.slots_folder.glob(f"*{PART}"):  # of a server that was killed as it saved
            left.unlink(missing_ok=True)
        return ChatStates(
            server,
            config.slots_folder,
            most_bytes=config.saved_prompts_mib << 20,
            ram_bytes=self.launch.cache_ram_bytes,
            least_seconds=self.state.timing.least_saved,
            rolls_back=self.launch.rolls_back,
            on_restored=restored,
        )

    async def _load(self, process: ServerProcess, server: LlamaServer) -> None:
        timing, began, pid = self.state.timing, monotonic(), process.pid
        detector = LoadStallDetector(
            timing.load_stall, timing.longest_load, began, last_progress=began, measured=(began, 0)
        )
        first = not any(self.state.config.cuda_cache.glob("*"))
        while not await server.healthy():
            if first and proc.maps(pid, COMPILER):
                self.state.status.set(reason=COMPILES)
            read, resident = float(proc.read_bytes(pid) or 0), proc.rss_mib(pid) or 0.0
            marks = read, resident, float(process.log.total)
            if cause := detector.check(monotonic(), proc.cpu_seconds(pid) or 0.0, marks):
                raise RunEnded(cause)
            await asyncio.sleep(LOAD_LOOK_SECONDS)

    def _on_cpu(self, process: ServerProcess) -> bool:
        """Whether a server that should use a GPU runs on the CPU."""
        sample = self.state.sampler.fresh
        unused = sample is not None and sample.holds(process.pid) is False
        return self.profile.gpu and (on_cpu(process.log.first()) or unused)

    async def _warm(self, warmer: Warmer) -> None:
        """Warm the registered prefix, if there is one."""
        status, prefix = self.state.status, self.state.prefixes.prefix
        self.new_prefix.clear()
        if prefix is None:
            status.set(warm=None)
            return
        status.set(state="warming", done=0, total=None, warm=None)
        try:
            warm = await warmer.warm(prefix, lambda done, total: status.set(done=done, total=total))
        except ServerRefused as error:
            # With a template that rejects the prefix the server still works, without a warm cache.
            sentence = Phrase("The prefix could not be warmed: {why}", why=Phrase.of(error))
            self.state.alerts.add("warm-up", "warning", sentence)
            return
        except ServerAway:
            # Within this time the server's exit or the stall detector ends the run with a better cause.
            await asyncio.sleep(self.state.timing.stall)
            sentence = Phrase("The model server dropped a request and did not come back.")
            raise RunEnded(Cause("wedged", sentence)) from None
        status.set(warm=warm)
        if self.chats:
            self.chats.begin(warm, warmer.reused)

    async def _warm_new_prefixes(self, warmer: Warmer) -> NoReturn:
        """Warm a prefix that is registered while the server serves."""
        while True:
            await self.new_prefix.wait()
            async with self.state.gpu_queue.acquire(PREFIX, SCHEDULED):
                await self._warm(warmer)
                self.state.status.set(state="ready", done=None, total=None)

    async def _check_separation(self, server: LlamaServer, warmer: Warmer) -> NoReturn:
        """Have canary conversations take turns when a check is due, and end a server that mixes them up."""
        state, prefix, pause = self.state, self.state.prefixes.prefix, self.state.timing.canary
        isolated = self.profile == self.profile.isolated()
        running = f"{self.launch.identity}{' isolated' * isolated}"
        while True:
            await asyncio.sleep(pause)
            now = state.now()
            asleep = state.status.current.state == "sleeping"  # a request would wake it
            if asleep or not state.canary.due(running, now.timestamp(), now.hour):
                continue
            leaking, began = "", monotonic()
            try:
                tokens = await (warmer.tokens(prefix) if prefix else server.tokenize(""))
                canary = Canary(server, state.gpu_queue, tokens, self.profile.slots)
                leaking = self.launch.identity if await canary.leaks() else ""
            except ServerAway:
                continue  # until it is back, or its exit has been noticed
            except ServerRefused as error:
                log.warning("whether conversations stay separate cannot be checked: %s", error)
                if error.status >= 500:
                    continue  # it may pass
            log.info("canary leak=%s seconds=%.1f", bool(leaking), monotonic() - began)
            state.canary.add(running, now.timestamp(), leaking)
            if isolated and prefix:  # a model that cannot roll back has lost it
                self.new_prefix.set()
            if leaking and isolated:
                state.alerts.add("leak", "critical", STILL_LEAKS)
            elif leaking:
                raise RunEnded(Cause("leak", LEAKS))

    async def _follow_sleep(self, server: LlamaServer, warmer: Warmer) -> NoReturn:
        """Detect that the server has unloaded its model; wake and warm it when a request waits."""
        queue, status, pause = self.state.gpu_queue, self.state.status, self.state.timing.look_idle
        while True:
            await asyncio.sleep(pause)  # the server does not signal that it goes to sleep
            if queue.holders or not await is_asleep(server):
                continue
            status.set(state="sleeping")
            queue.close("sleeping", Phrase("The model is being loaded again."))
            try:
                while not queue.waiters and await is_asleep(server):
                    await set_within(queue.demand, pause)
                await self._warm(warmer)
                status.set(state="ready", done=None, total=None)
            finally:
                queue.open("sleeping")


async def is_asleep(server: LlamaServer) -> bool:
    with suppress(ServerAway, ServerRefused):
        return (await server.props()).sleeping
    return False


def first_cause(group: BaseExceptionGroup[RunEnded]) -> Cause:
    """The cause that was raised first; later ones are its consequences."""
    first: BaseException = group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    assert isinstance(first, RunEnded)
    return first.cause


@dataclass(slots=True)
class LivenessMonitor:
    """Ends the run of a serving server when the stall detector says so.

    `served` becomes True when the server has written a token for a client.
    """

    state: BackendState
    profile: Profile
    process: ServerProcess
    server: LlamaServer
    warm_again: asyncio.Event
    served: bool = False

    async def watch(self) -> NoReturn:
        """Observe the server, more often while it works; raise RunEnded when it hangs."""
        timing = self.state.timing
        detector = StallDetector(self.limits(), monotonic(), stopped_seconds=timing.stopped)
        last_look, slept = float("-inf"), timing.suspended()
        while True:
            await asyncio.sleep(min(TICK_SECONDS, timing.look_busy))
            if (now := timing.suspended()) - slept >= SLEPT_SECONDS:
                # The card may have lost its memory: what is warm is measured again, and restored by that.
                log.info("the machine slept for %.0f s", now - slept)
                await self._compute_again()
                slept, detector.last_progress = now, monotonic()
                if self.state.prefixes.prefix:
                    self.state.status.set(warm=None)
                    self.warm_again.set()
            process_state = proc.state(self.process.pid) or "Z"
            seen = detector.last
            works = seen and (seen.slots is None or seen.slots.processing)
            pause = timing.look_busy if self.used or works else timing.look_idle
            if process_state == "T":
                # Resuming keeps the cache and the open turn, which a restart would lose.
                self.process.signal(signal.SIGCONT)
            elif monotonic() - last_look < pause:
                continue
            last_look = monotonic()
            detector.limits = self.limits()
            if cause := detector.check(await self.observe(process_state)):
                raise RunEnded(cause)

    async def _compute_again(self) -> None:
        """After a sleep of the machine, have a token read: a card that lost its memory shows before a person waits."""
        if self.used or self.state.status.current.state == "sleeping":
            return  # the request that is open shows it; a model that is not loaded is loaded anew
        try:
            async with asyncio.timeout(self.state.timing.wake):
                await self.server.prefill(NOTHING_SHARED)
        except ServerAway:
            return  # its exit is noticed, with a better cause
        except (TimeoutError, ServerRefused):
            raise RunEnded(Cause("wedged", ASLEEP)) from None

    async def observe(self, process_state: str) -> Observation:
        slots = None if process_state == "T" else await self.slots()
        if self.used and slots and slots.decoded:
            self.served = True
        queue, proxied = self.state.gpu_queue, self.state.activity.proxied
        sample = self.state.sampler.fresh
        chats = [ticket for ticket in queue.holders if ticket.chat != PROXY]
        return Observation(
            at=monotonic(),
            slots=slots,
            heartbeats=self.state.activity.heartbeats,
            errors=self.state.speed.errors,
            cpu_seconds=proc.cpu_seconds(self.process.pid) or 0.0,
            gpu=sample.load if sample else None,
            process_state=process_state,
            wanted=bool(chats or queue.waiters) or not proxied,
        )

    def limits(self) -> StallLimits:
        batch = int(self.profile.flag("--batch-size") or 2048)
        measured = self.state.speed.speed().prefill_tok_s or self.profile.reference.prefill_tok_s
        context = self.state.config.context or self.profile.context
        stall = self.state.timing.stall
        # Once it has written a token, the code is compiled, and a hang is noticed sooner.
        compiling = not self.served and proc.maps(self.process.pid, COMPILER)
        engine = self.profile.engine
        return stall_limits(engine, batch, context, measured, stall, compiling=compiling)

    @property
    def used(self) -> bool:
        return bool(self.state.gpu_queue.holders or self.state.activity.proxied)

    async def slots(self) -> Slots | None:
        """The activity of the slots; None when the server does not answer."""
        if self.state.status.current.state == "sleeping":
            return IDLE_SLOTS  # a request would wake it
        if self.profile.sleeps and not self.used:
            return IDLE_SLOTS if await self.server.healthy() else None
        try:
            return await self.server.slots(min(5.0, self.state.timing.stall / 2))
        except ServerRefused:
            return IDLE_SLOTS  # it is alive, but lacks the route
        except ServerAway:
            return None
