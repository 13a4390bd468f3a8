"""What follows the end of a run, run by run, with scripted runs; with servers in test_faults.py."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from backend.config import BackendConfig
from backend.models.profile import Profile
from backend.protocol import PERSON, Phrase, unended
from backend.server import supervisor as module
from backend.server.diagnosis import Cause
from backend.server.launch import CannotStart, Launch
from backend.server.memory_fallback import Buffers
from backend.server.supervisor import Supervisor, SwitchFailed
from backend.state import BackendState, Timing
from fakes.patience import SECONDS, soon
from fakes.words import saying

FOREVER = 10 * SECONDS
OOM = Cause("out of memory", Phrase("The GPU's memory is full."))
EXIT = Cause("unknown", Phrase("It ended with code 1."))
CPU = Cause("cpu fallback", Phrase("It came up on the processor."))
KILLED = Cause("killed", Phrase("It was killed by someone."))
LACKING = Cause("library missing", Phrase("A library is missing."))


@dataclass(frozen=True)
class Ends:
    """A run that ends by itself: why, after it was ready or not, and had served or not."""

    cause: Cause | OSError
    served: bool = False
    ready: bool = False


SERVES = None  # a run that becomes ready and goes on


@dataclass
class Runs:
    """Takes the place of ServerRun and of what prepares a launch; the last line of the plan repeats."""

    plan: list[Ends | CannotStart | None]
    begun: list[tuple[str, int, bool]] = field(default_factory=list)
    """Of each run that began: profile, window, whether it must be on the GPU."""
    left_out: tuple[str, ...] = ()
    changes: tuple[Phrase, ...] = ()
    states: list[str] = field(default_factory=list)  # of the server, when each was prepared

    def line(self) -> Ends | CannotStart | None:
        return self.plan.pop(0) if len(self.plan) > 1 else self.plan[0]

    async def prepare(self, config: BackendConfig, profile: Profile) -> Launch:
        if isinstance(line := self.plan[0], CannotStart):
            self.line()
            self.begun.append((profile.name, 0, False))
            raise line
        model = Path("m.gguf")
        return Launch(
            (), {}, "http://x", "", model, "", self.left_out, profile, self.changes
        )  # fmt: skip

    def run(
        self,
        state: BackendState,
        launch: Launch,
        on_serving: Callable[[], None],
        *,
        gpu_expected: bool,
    ) -> "Run":
        self.begun.append((launch.profile.name, launch.profile.context, gpu_expected))
        line = self.line()
        assert not isinstance(line, CannotStart)
        return Run(state, on_serving, line)


class Run:
    buffers = Buffers(kv=4000)

    def __init__(
        self, state: BackendState, on_serving: Callable[[], None], line: Ends | None
    ) -> None:
        self.state, self.on_serving, self.line = state, on_serving, line
        self.served = line.served if line else False
        self.was_ready = line.ready if line else True

    async def run(self) -> Cause:
        if self.line is None:
            self.state.status.set(state="ready", reason=None, pid=7)
            self.on_serving()
            await asyncio.Event().wait()
        assert self.line
        if isinstance(self.line.cause, OSError):
            raise self.line.cause
        return self.line.cause


@dataclass
class Running:
    state: BackendState
    supervisor: Supervisor
    runs: Runs

    @property
    def windows(self) -> list[int]:
        return [window for _, window, _ in self.runs.begun]

    @property
    def alerts(self) -> list[tuple[str, str]]:
        return [(alert.name, alert.text) for alert in self.state.alerts.kept]

    async def until(self, state: str, runs: int) -> None:
        """The server is in this state, so many runs having begun."""
        status = self.state.status
        await soon(lambda: (status.current.state, len(self.runs.begun)) == (state, runs))


@pytest.fixture
def config(tmp_path: Path) -> BackendConfig:
    form = 'title = "T"\ngpu = true\ncontext = {0}\n[model]\npath = "x"\n{1}'
    (tmp_path / "big.toml").write_text(form.format(8192, ""))
    (tmp_path / "least.toml").write_text(
        form.format(4096, '[flags.required]\n"-ub" = "128"\n"-np" = "3"\n')
    )
    return BackendConfig(state_dir=tmp_path, profiles=tmp_path)


@asynccontextmanager
async def supervised(
    config: BackendConfig, monkeypatch: pytest.MonkeyPatch, runs: Runs, first: str = "big",
    timing: Timing | None = None,
) -> AsyncIterator[Running]:  # fmt: skip
    """With pauses that nobody lives to see the end of."""
    monkeypatch.setattr(module, "prepare", runs.prepare)
    monkeypatch.setattr(module, "ServerRun", runs.run)
    timing = timing or Timing(first_pause=FOREVER, retry=FOREVER)
    state = BackendState.load(config, timing)
    supervisor = Supervisor(state)
    task = asyncio.create_task(supervisor.run(first))
    try:
        yield Running(state, supervisor, runs)
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_with_nothing_left_to_give_up_it_pauses(
    config: BackendConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs([Ends(OOM), Ends(OOM)])
    async with supervised(config, monkeypatch, runs, "least") as it:
        await it.until("restarting", 2)  # a KV cache of 8 bits was left
        assert it.state.status.current.reason == OOM.sentence
        assert it.alerts == [("server", OOM.sentence)]


async def test_the_full_profile_returns_when_its_time_has_come_and_nobody_is_at_work(
    config: BackendConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs([Ends(OOM), SERVES])
    timing = Timing(first_pause=FOREVER, restore=0.0)
    async with supervised(config, monkeypatch, runs, timing=timing) as it:
        async with it.state.gpu_queue.acquire("a", PERSON):
            await soon(lambda: it.state.gpu_queue.reason)
            assert it.windows == [8192, 6144]
        await it.until("ready", 3)
        assert it.windows == [8192, 6144, 8192]
        assert it.state.status.current.less_memory == []


async def test_a_start_on_the_processor_is_tried_once_more_and_then_taken(
    config: BackendConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with supervised(config, monkeypatch, Runs([Ends(CPU), SERVES])) as it:
        await it.until("ready", 2)
        assert [gpu for _, _, gpu in it.runs.begun] == [True, False]
        it.supervisor.restart()
        await it.until("ready", 3)
        assert it.runs.begun[-1] == ("big", 8192, True)


@pytest.mark.parametrize(
    ("line", "state", "reason"),
    [
        (Ends(EXIT), "restarting", EXIT.sentence),
        (Ends(OSError(8, "Exec format error")), "restarting", "The model server cannot be run: Exec format error."),
        (Ends(KILLED), "restarting", KILLED.sentence),
        (Ends(LACKING), "failed", LACKING.sentence),
        (Ends(LACKING, served=True), "restarting", LACKING.sentence),
        (CannotStart(LACKING), "failed", LACKING.sentence),
        (CannotStart(EXIT), "restarting", EXIT.sentence),
    ],
    ids=["exit", "no program", "killed early", "lasting", "lasting, served", "cannot", "cannot yet"],
)  # fmt: skip
async def test_a_pause_says_why(
    config: BackendConfig, monkeypatch: pytest.MonkeyPatch,
    line: Ends | CannotStart, state: str, reason: str,
) -> None:  # fmt: skip
    async with supervised(config, monkeypatch, Runs([line, SERVES])) as it:
        await it.until(state, 1)
        status = it.state.status.current
        assert (status.reason, status.pid, status.restarts) == (reason, None, 1)
        failed = ("failed", f"The model server cannot be started: {reason}")
        assert it.alerts == [("server", reason), *([failed] if state == "failed" else [])]
        it.supervisor.restart()  # which ends the pause
        await it.until("ready", 2)
        assert [told.text for told in unended(it.state.alerts.kept)] == [
            reason, *(["The model answers now."] if state == "failed" else [])
        ]  # fmt: skip


async def test_five_barren_runs_fail_and_a_served_one_begins_the_count_anew(
    config: BackendConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    barren, served = Ends(EXIT), Ends(EXIT, served=True)
    killed = Ends(KILLED, ready=True)  # by somebody, while it served: no fault of its own
    runs = Runs([*[barren] * 4, served, *[barren] * 4, killed, *[barren] * 5, SERVES])
    timing = Timing(first_pause=0.0, retry=FOREVER)
    monkeypatch.setattr("backend.server.process.LAST_S", 0.0)
    async with supervised(config, monkeypatch, runs, timing=timing) as it:
        await it.until("failed", 15)
        assert [name for name, _ in it.alerts].count("failed") == 1


async def test_what_the_server_lacks_and_what_had_no_room_is_told(
    config: BackendConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs([SERVES], left_out=("--a", "--b"), changes=(Phrase("A smaller window fits."),))
    async with supervised(config, monkeypatch, runs, "least") as it:
        await it.until("ready", 1)
        lacking = "The model server lacks --a, --b; left out."
        assert it.alerts == [("fit", "A smaller window fits."), ("flags", lacking)]
        assert {alert.level for alert in it.state.alerts.kept} == {"info"}
        async with asyncio.timeout(SECONDS):  # three slots
            async with (
                it.state.gpu_queue.acquire("a", PERSON),
                it.state.gpu_queue.acquire("b", PERSON),
            ):
                pass


async def test_a_switch_ends_when_the_profile_serves(
    config: BackendConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with supervised(config, monkeypatch, Runs([SERVES])) as it, asyncio.timeout(SECONDS):
        await it.until("ready", 1)
        one, same = (asyncio.create_task(it.supervisor.switch("least")) for _ in range(2))
        await asyncio.gather(one, same)
        assert it.supervisor.profile == "least"
        assert [name for name, _, _ in it.runs.begun] == ["big", "least"]
        assert it.state.status.current.profile == "least"
        assert it.alerts == []


async def test_a_switch_that_fails_says_why_and_the_old_profile_is_back(
    config: BackendConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with supervised(config, monkeypatch, Runs([SERVES])) as it, asyncio.timeout(SECONDS):
        await it.until("ready", 1)
        it.runs.plan = [Ends(EXIT), SERVES]
        with pytest.raises(SwitchFailed, match=rf"^least could not be started: {EXIT.sentence}$"):
            await it.supervisor.switch("least")
        assert it.supervisor.profile == "big"
        assert [name for name, _, _ in it.runs.begun] == ["big", "least", "big"]
        assert it.state.status.current.state == "ready"


async def test_a_first_profile_that_cannot_be_read_waits_for_another(
    config: BackendConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with supervised(config, monkeypatch, Runs([SERVES]), "none") as it:
        await it.until("failed", 0)
        assert it.state.status.current.reason == saying("no profile called none")
        assert it.supervisor.profile is None
        it.supervisor.restart()
        await asyncio.sleep(0.01)
        assert it.runs.begun == []
        async with asyncio.timeout(SECONDS):
            await it.supervisor.switch("big")
        assert it.state.status.current.state == "ready"


async def test_the_configured_window_counts_for_every_profile(
    config: BackendConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with supervised(replace(config, context=5120), monkeypatch, Runs([SERVES])) as it:
        await it.until("ready", 1)
        async with asyncio.timeout(SECONDS):
            await it.supervisor.switch("least")
        assert it.windows == [5120, 5120]
