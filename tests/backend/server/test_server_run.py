"""What a serving server is watched by, look by look; with servers in test_faults.py."""

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from backend.config import BackendConfig
from backend.models.profile import Profile, Source
from backend.protocol import PERSON, Prefix, WarmPrefix
from backend.server.launch import Launch
from backend.server.llama import Props, ServerAway, ServerRefused, Slots
from backend.server.process import ServerLog
from backend.server.server_run import (
    IDLE_SLOTS,
    LivenessMonitor,
    RunEnded,
    ServerRun,
    is_asleep,
)
from backend.state import PROXY, BackendState, Timing
from fakes.patience import SECONDS, soon
from fakes.words import saying

PLAIN = Profile(name="p", title="p", context=8192, model=Source())
SLEEPY = replace(PLAIN, required={"--sleep-idle-seconds": "60"})
BUSY = Slots(processing=True, marks=((1, 2, 3),), decoded=3)


@dataclass
class Answers:
    """A server whose next answers are set; `asked` are the routes and deadlines."""

    slots_now: Slots | Exception = BUSY
    health: bool = True
    asleep: bool | Exception = False
    computes: Exception | str | None = ""  # an error, or None: it hangs
    asked: list[tuple[str, float]] = field(default_factory=list)

    async def slots(self, seconds: float) -> Slots:
        self.asked.append(("slots", seconds))
        if isinstance(self.slots_now, Exception):
            raise self.slots_now
        return self.slots_now

    async def healthy(self) -> bool:
        self.asked.append(("health", 0.0))
        return self.health

    async def prefill(self, tokens: list[int]) -> None:
        self.asked.append(("prefill", 0.0))
        if self.computes is None:
            await asyncio.Event().wait()
        if isinstance(self.computes, Exception):
            raise self.computes

    async def props(self) -> Props:
        if isinstance(self.asleep, Exception):
            raise self.asleep
        return Props(1, "m", self.asleep, False, "b1")


@dataclass
class Child:
    """A server's process; signals are kept."""

    pid: int = os.getpid()
    log: ServerLog = field(default_factory=ServerLog)
    signals: list[int] = field(default_factory=list)

    def signal(self, number: int) -> None:
        self.signals.append(number)


@dataclass
class Watched:
    state: BackendState
    server: Answers = field(default_factory=Answers)
    child: Child = field(default_factory=Child)

    def monitor(self, profile: Profile = PLAIN) -> LivenessMonitor:
        server: Any = self.server
        child: Any = self.child
        return LivenessMonitor(self.state, profile, child, server, asyncio.Event())


@pytest.fixture
def it(tmp_path: Path) -> Watched:
    timing = Timing(stall=8.0, stopped=0.0, look_busy=0.001, look_idle=0.001)
    return Watched(BackendState.load(BackendConfig(state_dir=tmp_path), timing))


async def test_after_a_sleep_of_the_machine_the_prefix_is_warmed_again(it: Watched) -> None:
    slept = 100.0
    timing = replace(it.state.timing, suspended=lambda: slept)
    watched = replace(it, state=replace(it.state, timing=timing))
    watched.state.prefixes.prefix = Prefix(messages=[{"role": "system", "content": "s"}])
    warm = WarmPrefix(tokens=9, cached_tokens=9, seconds=1.0, source="prefill")
    watched.state.status.set(warm=warm)
    monitor = watched.monitor()
    watching = asyncio.create_task(monitor.watch())
    await soon(lambda: watched.server.asked)
    slept += 4.0  # the clocks do not agree to the second
    asked = len(watched.server.asked)
    await soon(lambda: len(watched.server.asked) > asked + 3)
    assert watched.state.status.current.warm == warm and not monitor.warm_again.is_set()
    slept += 8 * 3600
    await asyncio.wait_for(monitor.warm_again.wait(), SECONDS)
    assert watched.state.status.current.warm is None
    monitor.warm_again.clear()
    asked = len(watched.server.asked)
    await soon(lambda: len(watched.server.asked) > asked + 3)
    assert not monitor.warm_again.is_set() and not watching.done()
    watching.cancel()


@pytest.mark.parametrize(
    ("computes", "used", "ends"),
    [
        (None, False, True),
        (ServerRefused(500, "CUDA error"), False, True),
        (ServerAway(), False, False),
        ("", False, False),
        (None, True, False),
    ],
    ids=["hangs", "refuses", "has ended", "computes", "has a request"],
)
async def test_a_server_that_does_not_compute_after_a_sleep_is_restarted_at_once(
    it: Watched, computes: Any, used: bool, ends: bool
) -> None:
    slept = 0.0
    timing = replace(it.state.timing, suspended=lambda: slept, wake=0.05, stall=SECONDS)
    watched = replace(it, state=replace(it.state, timing=timing))
    watched.server.computes = computes
    watched.state.activity.proxied = int(used)
    watching = asyncio.create_task(watched.monitor().watch())
    await soon(lambda: watched.server.asked)
    slept = 8 * 3600.0
    asked = len(watched.server.asked)
    if ends:
        with pytest.raises(RunEnded) as raised:
            await asyncio.wait_for(watching, SECONDS)
        assert (raised.value.cause.kind, raised.value.cause.sentence) == ("wedged", saying("slept"))
    else:
        await soon(lambda: len(watched.server.asked) > asked + 3)
        assert not watching.done()
        watching.cancel()
    assert watched.server.asked.count(("prefill", 0.0)) == (not used)


@pytest.mark.parametrize(
    ("profile", "state", "used", "answer", "health", "slots", "asked"),
    [
        (PLAIN, "ready", False, BUSY, True, BUSY, [("slots", 4.0)]),
        (PLAIN, "ready", False, ServerRefused(501, "no"), True, IDLE_SLOTS, [("slots", 4.0)]),
        (PLAIN, "ready", False, ServerAway(), True, None, [("slots", 4.0)]),
        (PLAIN, "sleeping", True, BUSY, True, IDLE_SLOTS, []),
        (SLEEPY, "ready", False, BUSY, True, IDLE_SLOTS, [("health", 0.0)]),
        (SLEEPY, "ready", False, BUSY, False, None, [("health", 0.0)]),
        (SLEEPY, "ready", True, BUSY, True, BUSY, [("slots", 4.0)]),
    ],
    ids=["answers", "refuses", "away", "asleep", "may fall asleep", "ill", "at work"],
)
async def test_a_server_is_asked_what_does_not_wake_it(
    it: Watched, profile: Profile, state: str, used: bool, answer: Slots | Exception, health: bool,
    slots: Slots | None, asked: list[tuple[str, float]],
) -> None:  # fmt: skip
    it.state.status.set(state=state)
    it.state.activity.proxied = int(used)
    it.server = Answers(answer, health)
    assert await it.monitor(profile).slots() == slots
    assert it.server.asked == asked


@pytest.mark.parametrize(
    ("holder", "proxied", "used", "wanted"),
    [(None, 0, False, True), (None, 1, True, False), ("a", 1, True, True), (PROXY, 1, True, False)],
    ids=["idle", "other program", "chat", "other program in the queue"],
)
async def test_whether_more_than_other_programs_want_it(
    it: Watched, holder: str | None, proxied: int, used: bool, wanted: bool
) -> None:
    it.state.activity.proxied, it.state.activity.heartbeats = proxied, 5
    it.state.speed.errors = 2
    monitor = it.monitor()
    async with asyncio.timeout(SECONDS):
        if holder:
            async with it.state.gpu_queue.acquire(holder, PERSON):
                seen, was_used = await monitor.observe("S"), monitor.used
        else:
            seen, was_used = await monitor.observe("S"), monitor.used
    assert (was_used, seen.wanted, monitor.served) == (used, wanted, used)
    assert (seen.slots, seen.heartbeats, seen.errors, seen.gpu) == (BUSY, 5, 2, None)
    assert seen.process_state == "S"
    assert seen.cpu_seconds > 0.0
    assert abs(seen.at - monotonic()) < SECONDS


async def test_somebody_who_waits_wants_it(it: Watched) -> None:
    it.state.activity.proxied = 1
    with it.state.gpu_queue.enqueue(PROXY, PERSON, lambda state: None):
        with it.state.gpu_queue.enqueue("a", PERSON, lambda state: None):
            assert (await it.monitor().observe("S")).wanted
        assert not (await it.monitor().observe("S")).wanted


async def test_a_stopped_server_is_not_asked(it: Watched) -> None:
    assert (await it.monitor().observe("T")).slots is None
    assert it.server.asked == []


@pytest.mark.parametrize(
    ("process_state", "change", "kind"),
    [
        ("T", lambda it: None, "stopped"),
        ("S", lambda it: setattr(it.state.speed, "errors", 3), "errors"),
    ],
    ids=["stopped", "errors"],
)
async def test_the_watch_ends_the_run_with_its_cause(
    it: Watched, monkeypatch: pytest.MonkeyPatch, process_state: str,
    change: Callable[[Watched], None], kind: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("backend.proc.state", lambda pid: process_state)
    change(it)
    with pytest.raises(RunEnded) as raised:
        async with asyncio.timeout(SECONDS):
            await it.monitor().watch()
    assert raised.value.cause.kind == kind
    assert it.child.signals == ([signal.SIGCONT] if process_state == "T" else [])


async def test_an_idle_server_is_looked_at_now_and_then(it: Watched) -> None:
    state = replace(it.state, timing=replace(it.state.timing, look_idle=10 * SECONDS))
    it.server.slots_now = IDLE_SLOTS
    watching = asyncio.create_task(replace(it, state=state).monitor().watch())
    await soon(lambda: it.server.asked)
    await asyncio.sleep(0.02)
    assert it.server.asked == [("slots", 4.0)]
    state.activity.proxied = 1  # from now on it works
    await soon(lambda: len(it.server.asked) >= 3)
    watching.cancel()
    await asyncio.wait([watching])


@pytest.mark.parametrize(
    ("answer", "asleep"),
    [(True, True), (False, False), (ServerAway(), False), (ServerRefused(500, "no"), False)],
    ids=["asleep", "awake", "away", "refuses"],
)
async def test_whether_it_sleeps(answer: bool | Exception, asleep: bool) -> None:
    server: Any = Answers(asleep=answer)
    assert await is_asleep(server) is asleep


@pytest.mark.parametrize(
    ("kills", "kind"),
    [((5, 5), "killed"), ((5, 6), "out of host memory")],
    ids=["before", "meanwhile"],
)
async def test_a_killed_server_is_short_of_memory_only_where_the_kernel_killed_meanwhile(
    it: Watched, monkeypatch: pytest.MonkeyPatch, kills: tuple[int, int], kind: str
) -> None:
    monkeypatch.setattr("backend.proc.oom_kills", iter(kills).__next__)
    sleeps = ("sleep", "60")
    launch = Launch(sleeps, {}, "http://127.0.0.1:1", "", Path("m"), "", (), PLAIN, ())
    run = ServerRun(it.state, launch, lambda: None, gpu_expected=False)
    running = asyncio.create_task(run.run())
    await soon(lambda: run.process is not None)
    assert run.process
    os.kill(run.process.pid, signal.SIGKILL)
    assert (await asyncio.wait_for(running, SECONDS)).kind == kind
