"""GPU health through the real NVML binding, on a library of our own and on a real card where there is one."""

import asyncio
import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backend import proc
from backend.client import BackendClient
from backend.config import BackendConfig, ThermalLimits
from backend.control.gpu_queue import GpuRequestQueue
from backend.control.speed import Speedometer
from backend.gpu import nvml
from backend.gpu.health import Health
from backend.gpu.history import History, LastSampleFile
from backend.gpu.nvml import Sample, Sampler, sampling
from backend.models.outlook import Machine
from backend.protocol import CompletionReport, Gpu, GpuMinute, QueueState
from fakes.patience import SECONDS, soon, within
from fakes.words import saying
from tests.backend.conftest import Running, running

CARD: dict[str, int] = {
    "temperature": 61,
    "memory_temperature": 70,
    "power": 150_000,
    "limit": 300_000,
    "load": 55,
    "used": 1 << 30,
    "total": 16 << 30,
    "clock": 1380,
    "ecc": 0,
    "links": 6,
}
REAL = """
import asyncio
from backend.gpu import nvml
sample = asyncio.run(nvml.sample_once())
print(sample.hottest, sample.gpus[0].memory_total_mib)
"""
Scene = Callable[..., None]


@pytest.fixture
def library(nvml: Path | None) -> str:
    if nvml is None:
        pytest.skip("no C compiler")
    return str(nvml)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """Sets what the cards say from now on."""
    file = tmp_path / "scene"

    def show(**changes: int | None) -> None:
        lines = {k: v for k, v in {**CARD, **changes}.items() if v is not None}
        fresh = tmp_path / "scene.new"
        fresh.write_text("".join(f"{key} {value}\n" for key, value in lines.items()))
        fresh.replace(file)

    show()
    monkeypatch.setenv("FAKE_NVML", str(file))
    yield show
    show()


async def samples(
    library: str | None, count: int, between: Callable[[int], None] = lambda n: None
) -> list[Sample]:
    """The next samples of the real sampler, with something happening after each."""
    taken: asyncio.Queue[Sample] = asyncio.Queue()
    found = []
    async with sampling(Sampler(listeners=[taken.put_nowait]), library, every=0.01):
        for number in range(count):
            found.append(await asyncio.wait_for(taken.get(), SECONDS))
            between(number)
    return found


V100 = Gpu(
    index=0,
    name="Tesla V100-SXM2-16GB",
    temperature_c=61,
    memory_temperature_c=70,
    power_w=150,
    power_limit_w=300,
    utilization=55,
    memory_used_mib=1024,
    memory_total_mib=16384,
    sm_clock_mhz=1380,
    memory_clock_mhz=1380,
    ecc_uncorrected=0,
    pcie="gen3 x16",
    nvlinks_up=6,
)


async def test_a_card_is_read_whole(library: str, scene: Scene) -> None:
    (sample,) = await samples(library, 1)
    assert sample.gpus == (V100,)
    assert (sample.hottest, sample.watts, sample.load, sample.lost) == (70, 150, 0.55, ())


@pytest.mark.parametrize(
    "code", [999, 1, 2, 4, 6, 8, 9, 11, 12, 16, 17, 18, 19, 20, 21, 23, 27, 28]
)
async def test_a_driver_that_falls_silent_is_initialized_anew(
    library: str, scene: Scene, code: int
) -> None:
    taken: asyncio.Queue[Sample] = asyncio.Queue()
    sampler = Sampler(listeners=[taken.put_nowait])
    async with sampling(sampler, library, every=0.01, reopen_after=0.1), asyncio.timeout(SECONDS):
        assert (await taken.get()).silent == ()
        scene(broken=code, heals=ctypes.CDLL(library).fake_inits() + 2)
        while not (sample := await taken.get()).silent:
            pass
        silent = sample
        while (sample := await taken.get()).silent:
            pass
    assert sample.gpus == (V100,)
    (gpu,) = silent.gpus
    assert (gpu.name, gpu.unified, silent.lost) == (V100.name, False, ())
    unknown = (gpu.temperature_c, gpu.power_w, gpu.utilization, gpu.memory_used_mib, silent.joules)
    assert unknown == (None,) * 5


@pytest.mark.parametrize(
    "first",
    [*({"unusable": code} for code in (999, 1, 4, 8, 9, 12, 15, 17, 18, 20, 23, 27)), {"cards": 0}],
    ids=str,
)
async def test_a_driver_that_is_not_ready_yet_is_asked_again(
    library: str, scene: Scene, first: dict[str, int]
) -> None:
    """At boot, or in a container whose devices come back."""
    taken: asyncio.Queue[Sample] = asyncio.Queue()
    sampler = Sampler(listeners=[taken.put_nowait])
    scene(**first)
    async with sampling(sampler, library, every=0.01, reopen_after=0.02), asyncio.timeout(SECONDS):
        await sampler.answered.wait()
        assert sampler.fresh is None or sampler.fresh.gpus == ()
        scene()
        while not (sample := await taken.get()).gpus:
            pass
    assert sample.gpus == (V100,) and sample.silent == ()


@pytest.mark.parametrize(
    "memory",
    [
        {"used": None, "total": None, "capability": 121},  # GB10
        {"used": None, "total": None, "capability": 87, "power": None, "ecc": None},  # Orin
        {"used": None, "total": None, "capability": 110, "clock": None, "links": None},  # Thor
        {"used": None},
        {"memory": 3},
        {"memory": 13},
        {"memory": 0},
        {"memory": 0, "temperature": None},
        {"memory": 13, "capability": 72, "load": None},
        {"memory": 3, "load": None, "power": None, "clock": None, "temperature": None},
    ],
    ids=str,
)
async def test_a_card_without_memory_of_its_own_has_the_machines(
    library: str, scene: Scene, tmp_path: Path, memory: dict[str, int | None]
) -> None:
    scene(**memory)
    sample = await nvml.sample_once(library)
    assert sample
    (gpu,) = sample.gpus
    assert gpu.unified and gpu.memory_total_mib and gpu.memory_used_mib
    assert 0 < gpu.memory_used_mib < gpu.memory_total_mib == pytest.approx(proc.total_mib(), abs=1)
    (found,) = nvml.installed_gpus().gpus
    assert found.unified and found.memory
    machine = Machine.here(tmp_path)
    assert machine.unified and len(machine.cards) == 1
    assert machine.cards[0] == pytest.approx(proc.available_mib() / 1024, rel=0.2)


@pytest.mark.parametrize("code", [1, 2, 4, 6, 9, 12, 17, 18, 20, 999])
async def test_a_card_that_does_not_tell_its_memory_just_now_is_not_the_machines(
    library: str, scene: Scene, code: int
) -> None:
    scene(memory=code)
    (sample,) = await samples(library, 1)
    (gpu,) = sample.gpus
    assert (gpu.unified, gpu.memory_total_mib, gpu.temperature_c) == (False, None, 61)


@pytest.mark.parametrize("byte", [0xF8, 0x80, 0xA0, 0xBF, 0xC0, 0xC3, 0xE4, 0xED, 0xF0, 0xFE, 0xFF])
async def test_a_name_that_is_no_text_costs_only_the_name(
    library: str, scene: Scene, byte: int
) -> None:
    """gpustat issue 170: under WSL the drivers 555.85 to 555.99 answer with bytes of no encoding."""
    scene(garbage=byte)
    (sample,) = await samples(library, 1)
    assert sample.gpus == (V100.model_copy(update={"name": "GPU"}),)
    found = nvml.installed_gpus()
    assert (found.driver, found.problem, [gpu.name for gpu in found.gpus]) == (None, "", ["GPU"])


async def test_no_more_memory_is_used_than_there_is(library: str, scene: Scene) -> None:
    scene(used=17 << 30)
    (sample,) = await samples(library, 1)
    assert sample.gpus == (V100.model_copy(update={"memory_used_mib": 16384}),)


@pytest.mark.parametrize("figure", ["temperature", "power", "limit", "clock"])
@pytest.mark.parametrize("code", [4, 16, 999])
async def test_a_figure_that_fails_alone_leaves_the_others(
    library: str, scene: Scene, figure: str, code: int
) -> None:
    scene(**{f"{figure}_code": code})
    (sample,) = await samples(library, 1)
    (gpu,) = sample.gpus
    told = (gpu.temperature_c, gpu.power_w, gpu.power_limit_w, gpu.sm_clock_mhz)
    kept = ("temperature", "power", "limit", "clock").index(figure)
    assert told == tuple(None if at == kept else v for at, v in enumerate((61, 150, 300, 1380)))
    assert (sample.silent, sample.lost, sample.hottest, gpu.memory_total_mib) == ((), (), 70, 16384)


async def test_the_energy_counters_of_all_cards_are_one_sum(library: str, scene: Scene) -> None:
    scene(cards=2, energy=1_500_000)
    sample = await nvml.sample_once(library)
    assert sample and sample.joules == 3_000.0
    scene(cards=2)
    sample = await nvml.sample_once(library)
    assert sample and sample.joules is None


async def test_what_a_card_does_not_know_is_none(library: str, scene: Scene) -> None:
    scene(memory_temperature=None, ecc=None, links=None, power=None)
    (sample,) = await samples(library, 1)
    unknown = {
        "memory_temperature_c",
        "ecc_uncorrected",
        "nvlinks_up",
        "power_w",
    }
    assert sample.gpus == (V100.model_copy(update=dict.fromkeys(unknown)),)
    assert sample.watts is None


@pytest.mark.parametrize(
    ("figure", "field", "value"),
    [
        ("temperature", "temperature_c", 0),
        ("memory_temperature", "memory_temperature_c", 0),
        ("power", "power_w", 0),
        ("limit", "power_limit_w", 0),
        ("ecc", "ecc_uncorrected", 0),
        ("temperature", "temperature_c", 511),
        ("temperature", "temperature_c", 255),
        ("memory_temperature", "memory_temperature_c", 65_535),
        ("memory_temperature", "memory_temperature_c", 4_294_967_279),  # -17, as unsigned
        ("power", "power_w", (1 << 31) - 1),
        ("limit", "power_limit_w", (1 << 32) - 2),
        ("load", "utilization", 255),
    ],
)
async def test_a_value_that_is_absurd_or_not_available_is_none(
    library: str, scene: Scene, figure: str, field: str, value: int
) -> None:
    scene(**{figure: value or (1 << (64 if figure == "ecc" else 32)) - 1})
    (sample,) = await samples(library, 1)
    assert sample.gpus == (V100.model_copy(update={field: None}),)
    assert sample.hottest in (61, 70)


@pytest.mark.parametrize(
    ("files", "cores", "mib"),
    [
        ({}, 0, 0),
        ({"cpu.max": "max 100000\n", "memory.max": "max\n"}, 0, 0),
        ({"cpu.max": "100000 100000\n"}, 1, 0),
        ({"cpu.max": "50000 100000\n"}, 1, 0),
        ({"cpu.max": "10000 100000"}, 1, 0),
        ({"cpu.max": "100000000 100000\n"}, 0, 0),
        ({"cpu.max": "junk\n", "memory.max": "junk"}, 0, 0),
        ({"memory.max": "100000000", "memory.current": "50000000", "memory.stat": "anon 50000000\n"}, 0, 47.7),
        ({"memory.max": "100000000", "memory.current": "50000000", "memory.stat": "anon 1\ninactive_file 30000000\nactive_file 10000000\nfile 40000000\n"}, 0, 85.8),
        ({"memory.max": "1048576", "memory.current": "2097152", "memory.stat": ""}, 0, -1),
    ],
)  # fmt: skip
def test_a_containers_limits_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], cores: int, mib: float
) -> None:
    """Where 0 is given the machine's own."""
    monkeypatch.setattr(proc, "CGROUP", tmp_path / "none")
    own, there = proc.cores(), proc.available_mib()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(proc, "CGROUP", tmp_path)
    assert proc.cores() == (cores or own)
    assert proc.available_mib() == pytest.approx(mib or there, rel=0.001 if mib else 0.5)


@pytest.mark.parametrize(
    "failure",
    [
        {"broken": 15},
        {"broken": 15, "broken_card": 1},
        *({"handle": code, "broken_card": code % 2} for code in (1, 2, 8, 11, 15, 16, 17, 20, 28, 999)),
    ],
    ids=str,
)  # fmt: skip
async def test_a_lost_card_comes_back_with_the_driver(
    library: str, scene: Scene, failure: dict[str, int]
) -> None:
    """Lost while it is sampled, or before: then the driver counts it, and gives no handle for it."""
    taken: asyncio.Queue[Sample] = asyncio.Queue()
    scene(cards=2, **failure, heals=ctypes.CDLL(library).fake_inits() + 3)
    sampler = Sampler(listeners=[taken.put_nowait])
    async with sampling(sampler, library, every=0.01, reopen_after=0.05), asyncio.timeout(SECONDS):
        first = await taken.get()
        while (sample := await taken.get()).lost:
            pass
    lost = {failure["broken_card"]} if "broken_card" in failure else {0, 1}
    assert ({*first.lost}, first.silent) == (lost, ())
    assert [gpu.index for gpu in first.gpus] == sorted({0, 1} - lost)
    assert list(sample.gpus) == [V100.model_copy(update={"index": index}) for index in (0, 1)]
    assert len(nvml.installed_gpus().gpus) == 2


async def test_a_card_that_is_not_ours_is_left_out(library: str, scene: Scene) -> None:
    """The driver counts cards that this user, or container, may not open."""
    scene(cards=2, handle=4, broken_card=0)
    (sample,) = await samples(library, 1)
    assert ([gpu.index for gpu in sample.gpus], sample.lost, sample.silent) == ([1], (), ())
    assert len(nvml.installed_gpus().gpus) == 1
    scene(cards=2, handle=4)
    found = nvml.installed_gpus()
    assert (found.gpus, found.code) == ((), 4) and found.problem
    assert await nvml.sample_once(library) is None


async def test_two_cards_one_lost_and_found_again(library: str, scene: Scene) -> None:
    scene(cards=2, lost=1)
    found = await samples(library, 20, lambda n: scene(cards=2) if n == 0 else None)
    assert (found[0].lost, [card.index for card in found[0].gpus]) == ((1,), [0])
    assert (found[-1].lost, [card.index for card in found[-1].gpus]) == ((), [0, 1])


@pytest.mark.parametrize("code", [1, 2, 4, 6, 9, 10, 12, 16, 17, 18, 19, 20, 21, 999])
@pytest.mark.parametrize("broken", [0, 1])
async def test_a_card_that_fails_leaves_the_figures_of_the_other(
    library: str, scene: Scene, code: int, broken: int
) -> None:
    def change(number: int) -> None:
        if number in (0, 9):
            scene(cards=2, **({"broken": code, "broken_card": broken} if number == 0 else {}))

    scene(cards=2)
    found = await samples(library, 20, change)
    failed = [each for each in found if broken in (*each.silent, *each.lost)]
    other = V100.model_copy(update={"index": 1 - broken})
    assert failed and all(other in each.gpus and each.hottest == 70 for each in failed)
    assert (len(found[-1].gpus), found[-1].silent, found[-1].lost) == (2, (), ())


async def test_throttling_and_xids(library: str, scene: Scene) -> None:
    scene(throttle=0x20 | 0x40 | 0x4 | 0x1, xid=79, pid=os.getpid())
    first, second = await samples(library, 2)
    assert first.gpus[0].throttle == ["power cap", "thermal"]
    assert (first.xids, second.xids) == (((0, 79),), ())
    assert first.pids == {os.getpid()}


async def test_a_machine_without_nvml_has_no_cards_and_no_noise() -> None:
    sampler = Sampler()
    async with sampling(sampler, "/nonexistent/libnvidia-ml.so.1", every=0.01):
        pass
    assert sampler.fresh is None


@pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no NVIDIA card here")
def test_a_real_card() -> None:
    """In a process of its own, which has not loaded the fake."""
    done = subprocess.run([sys.executable, "-c", REAL], capture_output=True, text=True, check=True)
    hottest, memory = (float(word) for word in done.stdout.split())
    assert 10 < hottest < 110
    assert memory


async def test_a_call_that_hangs_delays_nothing(
    library: str, scene: Scene, config: BackendConfig
) -> None:
    scene(hang=30)
    from dataclasses import replace

    async with running(replace(config, nvml=library)) as it:
        await it.ready()
        with within(5):
            await it.ask("a", "hello")
            status = await it.client.status()
    assert status.gpus == []


class Watched:
    """A Health with its alerts and GPU queue, and a clock of its own."""

    def __init__(self, thermal: ThermalLimits | None = None) -> None:
        self.alerts: list[tuple[str, str, str]] = []
        self.gpu_queue = GpuRequestQueue()
        self.now = 1_000_020.0
        self.speed = Speedometer()
        self.health = Health(
            thermal or ThermalLimits(),
            self.gpu_queue,
            self.speed,
            self.alert,
            clock=lambda: self.now,
        )

    def alert(self, name: str, level: str, text: str) -> None:
        self.alerts.append((name, level, text))

    def show(self, **changes: Any) -> None:
        self.now += 1
        extra = {key: changes.pop(key) for key in ("lost", "silent", "xids") if key in changes}
        self.health.sample(Sample(self.now, (V100.model_copy(update=changes),), **extra))


def test_heats_up_to_90_and_cools_down() -> None:
    watched = Watched()
    for celsius in [*range(60, 91), *range(90, 59, -1)]:
        watched.show(memory_temperature_c=celsius)
        held = watched.gpu_queue.reason
        assert (held is not None) == (watched.health.guard.holding)
    assert watched.alerts == [
        ("heat", "warning", saying("at 80 °C", "84 °C")),
        ("heat", "critical", saying("at 84 °C", "waits", "75 °C")),
        ("heat", "over", saying("75 °C", "goes on")),
    ]


def test_a_temperature_that_can_no_longer_be_read_holds_work_for_a_minute_only() -> None:
    watched = Watched()
    watched.show(temperature_c=90)
    for _ in range(3):
        watched.show(temperature_c=None, memory_temperature_c=None)
    watched.health.release_if_unknown(watched.now)
    assert watched.gpu_queue.reason is not None
    watched.health.release_if_unknown(watched.now + 61)
    assert watched.gpu_queue.reason is None
    assert watched.alerts[-1] == ("heat", "warning", saying("temperature", "goes on"))


@pytest.mark.parametrize("samples", [0, 90])
def test_a_temperature_that_is_missing_is_told_once_and_that_it_is_back(samples: int) -> None:
    """Alone, or with everything where a call never returns."""
    watched = Watched()
    watched.show()
    for _ in range(samples):
        watched.show(temperature_c=None, memory_temperature_c=None)
        watched.health.release_if_unknown(watched.now)
    for seconds in (61, 62, 3600):
        watched.health.release_if_unknown(watched.now + seconds)
    watched.show()
    watched.health.release_if_unknown(watched.now)
    assert watched.alerts == [
        ("heat", "warning", saying("temperature", "no longer", "goes on")),
        ("heat", "over", saying("70 °C")),
    ]


@pytest.mark.parametrize("gone", ["lost", "silent"])
def test_a_card_that_is_gone_is_told_once(gone: str) -> None:
    watched = Watched()
    watched.show()
    nothing = {"temperature_c": None, "memory_temperature_c": None}
    for _ in range(90):
        watched.show(**nothing, **{gone: (0,)})
        watched.health.release_if_unknown(watched.now)
    watched.show()
    assert [(name, level) for name, level, _ in watched.alerts] == [
        (f"gpu {gone}", "critical" if gone == "lost" else "warning"),
        (f"gpu {gone}", "over"),
    ]


def test_a_damaged_history_is_begun_anew(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db")
    history.path.write_bytes(b"no database at all" * 100)
    minute = GpuMinute(at=datetime.fromtimestamp(60, UTC), gpu=0, power_w=100)
    history.write([minute])
    assert history.read(0) == [minute]


def test_throttling_is_told_once_it_lasts_and_once_it_is_over() -> None:
    watched = Watched()
    for _ in range(4):
        watched.show(throttle=["thermal"])
    watched.show()
    assert watched.alerts == []
    for _ in range(5):
        watched.show(throttle=["thermal"])
    for _ in range(60):
        watched.show(throttle=["power cap"])
    assert watched.alerts == [
        ("throttling", "warning", saying("GPU", "slow", "heat")),
        ("throttling", "over", saying("GPU", "full speed")),
    ]


def test_memory_errors_xids_and_lost_cards_are_told() -> None:
    watched = Watched()
    watched.show(ecc_uncorrected=2)
    watched.show(ecc_uncorrected=2)
    watched.show(ecc_uncorrected=5, xids=((0, 79), (0, 999)))
    watched.show(lost=(1,))
    watched.show(lost=(1,))
    watched.show()
    assert watched.alerts == [
        ("ecc", "critical", saying("GPU 0", "5 uncorrected")),
        ("xid", "critical", saying("GPU 0", "Xid 79 (", "bus")),
        ("xid", "critical", saying("GPU 0", "Xid 999.")),
        ("gpu lost", "critical", saying("GPU 1", "no longer", "reboot")),
        ("gpu lost", "over", saying("GPU 1", "again")),
    ]


def test_a_slow_model_is_told_once() -> None:
    watched = Watched()
    around = (
        [74.0] * 5 + [80.0] * 5
    ) * 3  # neither slow enough for an alert nor quick enough to end one
    for speed in [100.0] * 60 + [60.0] * 5 + around + [100.0] * 5:
        watched.health.report(CompletionReport(completion_tokens=64, decode_tok_s=speed))
    assert watched.alerts == [
        ("speed", "warning", saying("40% slower")),
        ("speed", "over", saying("usual speed again")),
    ]


def test_minutes_are_averaged_kept_a_month_and_read_back(tmp_path: Path) -> None:
    watched = Watched()
    for celsius in (60, 62, 64):
        watched.show(temperature_c=celsius)
    watched.health.report(CompletionReport(completion_tokens=30, decode_tok_s=55))
    watched.now += 60
    minutes = watched.health.collect()
    at = datetime.fromtimestamp(1_000_020, UTC)
    card = GpuMinute(
        at=at, gpu=0, temperature_c=62, memory_temperature_c=70, power_w=150, utilization=55,
        memory_used_mib=1024, sm_clock_mhz=1380, throttled=0,
    )  # fmt: skip
    assert minutes == [card, GpuMinute(at=at, decode_tok_s=55)]
    assert watched.health.collect() == []
    history = History(tmp_path / "history.db")
    history.write(minutes)
    assert history.read(0) == [minutes[1], minutes[0]]
    after = {"at": datetime.fromtimestamp(1_000_080, UTC), "temperature_c": 70.0}
    history.write([card.model_copy(update=after)])
    means = [minute for minute in history.read(0, 5) if minute.gpu == 0]
    assert [(each.at, each.temperature_c) for each in means] == [(at, 66.0)]
    month = datetime.fromtimestamp(1_000_080 + 31 * 86400 + 60, UTC)
    later = card.model_copy(update={"at": month})
    history.write([later])
    assert history.read(0) == [later]


def test_after_a_power_cut_the_owner_is_told_what_came_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = LastSampleFile(tmp_path / "last.json")
    assert last.unclean_reboot() is None
    last.write(busy=True, watts=231.4, hottest=45.0)
    assert last.unclean_reboot() is None  # the same boot: it was only the backend that ended
    text = last.path.read_text()
    from backend import proc

    last.path.write_text(text.replace(proc.boot(), "another boot"))
    story = last.unclean_reboot() or ""
    assert story == saying("without a shutdown", "under load", "231 W", "45 °C", "power supply")
    last.write(busy=True, watts=231.4, hottest=45.0, clean=True)
    last.path.write_text(last.path.read_text().replace(proc.boot(), "another boot"))
    assert last.unclean_reboot() is None


async def heated(it: Running, scene: Scene) -> None:
    """The backend has begun to hold new work."""
    await it.ready()
    scene(temperature=90)
    alerts = it.backend.state.alerts
    await soon(lambda: [alert for alert in alerts.kept if alert.name == "heat"])


async def test_heat_through_the_whole_backend(
    library: str, scene: Scene, config: BackendConfig
) -> None:
    """The scenario of the real binding: 90 °C, a message waits and is told why; 70 °C, it goes on."""
    waits: list[QueueState] = []
    async with running(replace(config, nvml=library)) as it:
        await heated(it, scene)
        hot = await it.client.status()
        asking = asyncio.create_task(wait_for_lane(it.client, waits))
        await soon(lambda: waits)
        scene(temperature=70, memory_temperature=70)
        await asyncio.wait_for(asking, SECONDS)
        news = [
            (alert.level, alert.text)
            for alert in it.backend.state.alerts.kept
            if alert.name == "heat"
        ]
    held = hot.backend.held
    assert held == saying("at 90 °C", "waits", "75 °C")
    assert waits == [QueueState(state="waiting", ahead=0, reason=held)]
    assert news == [("critical", held), ("over", saying("70 °C", "goes on"))]


async def wait_for_lane(client: BackendClient, waits: list[QueueState]) -> None:
    async with client.acquire_gpu("a", 0, waits.append):
        pass
