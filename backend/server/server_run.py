"""One life of llama-server: from its start, through loading, warming and serving, to its end."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import NoReturn

from backend import proc
from backend.models.profile import Profile
from backend.protocol import SCHEDULED
from backend.server import diagnosis, memory_fallback
from backend.server.diagnosis import Cause
from backend.server.launch import Launch, slots_folder
from backend.server.liveness import Ended, LivenessMonitor
from backend.server.llama import LlamaServer, Props, ServerAway, ServerRefused, llama_server
from backend.server.process import Child, child
from backend.server.stall_detector import LoadWatch
from backend.server.warmup import Warmer
from backend.state import BackendState

HEALTH_OFTEN, HEALTH_SELDOM, YOUNG_SECONDS = 0.1, 0.5, 10.0  # while it loads
HUNG = frozenset({"wedged", "stopped", "slow load"})


class ServerRun:
    def __init__(
        self,
        state: BackendState,
        profile: Profile,
        launch: Launch,
        *,
        gpu_expected: bool = True,
        on_serving: Callable[[], None] = lambda: None,
    ) -> None:
        self.state, self.profile, self.launch = state, profile, launch
        self.gpu_expected, self._on_serving = gpu_expected, on_serving
        self.process: Child | None = None
        self.served = False  # has written a token for somebody
        self.was_ready = False
        self.serves = False
        self.vision = False
        self._tending = asyncio.Event()

    async def run(self) -> Cause:
        """Start the server, keep it, and return why it ended."""
        cause = Cause("unknown", "The model server ended.")
        async with (
            child(self.launch.argv, self.launch.env, self.state.record) as process,
            llama_server(self.launch.url, self.launch.api_key) as server,
        ):
            self.process = process
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._until_exit(process))
                    await self._lead(group, process, server)
            except* Ended as endings:
                cause = _cause(endings)
            self._away(cause.sentence)
            if cause.kind in HUNG:
                process.signal(signal.SIGKILL)
        return cause

    def tend(self) -> None:
        """A new prefix is to be warmed."""
        self._tending.set()

    def _away(self, sentence: str | None) -> None:
        self.serves = False
        self.state.status.set(state="restarting", reason=sentence, pid=None)

    @property
    def buffers(self) -> memory_fallback.Buffers:
        log = self.process.log.everything() if self.process else []
        return memory_fallback.buffers(log, self.launch.draft_mib)

    async def _lead(self, group: asyncio.TaskGroup, process: Child, server: LlamaServer) -> None:
        self.state.status.set(state="loading", reason=None, pid=process.pid)
        await self._load(process, server)
        self._check_gpu(process)
        props = await self._props(server)
        self.vision = props.vision
        self.state.status.set(
            n_ctx=props.n_ctx or self.profile.context, model=self.launch.model.name
        )
        vigil = LivenessMonitor(self.state, self.profile, process, server, self._note_served)
        group.create_task(vigil.keep())
        warmer = self._warmer(server)
        await self._warm_fixed(warmer)
        self.serves = self.was_ready = True
        self._on_serving()
        self.state.status.set(
            state="ready", reason=self._on_cpu_reason(process), done=None, total=None
        )
        group.create_task(self._tend(warmer))
        if self.profile.sleeps:
            group.create_task(self._tend_sleep(server, warmer))

    def _warmer(self, server: LlamaServer) -> Warmer:
        folder = slots_folder(self.state.config)
        values = dict(self.profile.template)
        return Warmer(server, folder, self.launch.identity, values, self.profile.slots)

    # --- loading ----------------------------------------------------------------

    async def _until_exit(self, process: Child) -> NoReturn:
        before = proc.oom_kills()
        code = await process.wait()
        self._away(None)
        raise Ended(diagnosis.diagnose(code, await process.last_words(), proc.oom_kills() - before))

    async def _load(self, process: Child, server: LlamaServer) -> None:
        timing, began = self.state.timing, monotonic()
        watch = LoadWatch(timing.load_stall, timing.longest_load, began, last_sign=began)
        watch.measured = began, 0.0
        while not await server.healthy():
            if cause := watch.verdict(
                monotonic(), proc.cpu_seconds(process.pid) or 0.0, _marks(process)
            ):
                raise Ended(cause)
            young = monotonic() - began < YOUNG_SECONDS
            await asyncio.sleep(
                HEALTH_OFTEN if young else HEALTH_SELDOM
            )  # the server has no way to tell us that it is ready

    def _check_gpu(self, process: Child) -> None:
        """A server that belongs on a GPU and came up on the CPU is started once more."""
        if self.profile.gpu and self.gpu_expected and self._on_cpu(process):
            raise Ended(
                Cause("cpu fallback", "The model server came up on the processor, not on the GPU.")
            )

    def _on_cpu_reason(self, process: Child) -> str | None:
        """What to say of a server that stays on the processor: it serves, slowly."""
        if not (self.profile.gpu and self._on_cpu(process)):
            return None
        sentence = "The model runs on the processor instead of the GPU, many times slower."
        self.state.news("cpu fallback", "warning", sentence)
        return sentence

    def _on_cpu(self, process: Child) -> bool:
        return diagnosis.on_cpu(process.log.first()) or self.state.cards.holds(process.pid) is False

    async def _props(self, server: LlamaServer) -> Props:
        try:
            return await server.props()
        except (ServerAway, ServerRefused) as error:
            raise Ended(
                Cause("unknown", f"The model server gives no account of itself: {error}.")
            ) from None

    def _note_served(self) -> None:
        self.served = True

    # --- warming ----------------------------------------------------------------

    async def _warm_fixed(self, warmer: Warmer) -> None:
        board, register = self.state.status, self.state.register
        self._tending.clear()
        if register.fixed is None:
            board.set(warm=None)
            return
        board.set(state="warming", done=0, total=None, warm=None)
        try:
            warm = await warmer.fixed(register.fixed, self._progress)
        except ServerRefused as error:
            # A template that refuses the shape still serves; it is only cold.
            self.state.news("warm-up", "warning", f"The prefix could not be warmed: {error}")
            return
        except ServerAway:
            await self._gone()
        board.set(warm=warm)

    def _progress(self, done: int, total: int) -> None:
        self.state.status.set(done=done, total=total)

    async def _gone(self) -> NoReturn:
        """The connection broke; the exit, or the watch, will say why within its time."""
        await asyncio.sleep(self.state.timing.stall)
        raise Ended(Cause("wedged", "The model server dropped a request and did not come back."))

    async def _tend(self, warmer: Warmer) -> NoReturn:
        """Warm a prefix that is registered while it serves."""
        while True:
            await self._tending.wait()
            async with self.state.gpu_queue.hold("prefix", SCHEDULED):
                await self._warm_fixed(warmer)
                self.state.status.set(state="ready", done=None, total=None)

    # --- sleep ------------------------------------------------------------------

    async def _tend_sleep(self, server: LlamaServer, warmer: Warmer) -> NoReturn:
        """Notice that it unloaded itself, and wake and warm it when somebody comes."""
        gpu_queue, board = self.state.gpu_queue, self.state.status
        while True:
            await asyncio.sleep(self.state.timing.look_idle)  # it tells nobody when it falls asleep
            if gpu_queue.holders or not await self._sleeps(server):
                continue
            board.set(state="sleeping")
            gpu_queue.close("sleeping", "The model is being loaded again.")
            try:
                while not gpu_queue.waiters and await self._sleeps(server):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(gpu_queue.demand.wait(), self.state.timing.look_idle)
                await self._warm_fixed(warmer)
                board.set(state="ready", done=None, total=None)
            finally:
                gpu_queue.open("sleeping")

    async def _sleeps(self, server: LlamaServer) -> bool:
        with suppress(ServerAway, ServerRefused):
            return (await server.props()).sleeping
        return False


def _marks(process: Child) -> tuple[float, ...]:
    pid = process.pid
    return float(proc.read_bytes(pid) or 0), proc.rss_mib(pid) or 0.0, float(process.log.total)


def _cause(endings: BaseExceptionGroup[Ended]) -> Cause:
    """The first cause; an exit that followed from another explains less."""
    first = endings
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]  # type: ignore[assignment]
    return first.cause
