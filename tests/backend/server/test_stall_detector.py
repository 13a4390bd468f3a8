"""What counts as progress of a serving and of a loading server."""

from collections.abc import Sequence

from backend.server.diagnosis import Cause
from backend.server.llama import Slots
from backend.server.stall_detector import (
    LoadStallDetector,
    Observation,
    StallDetector,
    StallLimits,
    stall_limits,
)
from fakes.words import saying

IDLE = Slots(processing=False, marks=((0, 0, 0),), decoded=0)


def reading(read: int, decoded: int = 0) -> Slots:
    return Slots(processing=True, marks=((1, read, decoded),), decoded=decoded)


def causes(limits: StallLimits, seen: Sequence[Observation]) -> list[Cause | None]:
    detector = StallDetector(limits, last_progress=0.0)
    return [detector.check(look) for look in seen]


def test_a_prefill_that_makes_progress_may_last_for_hours() -> None:
    seen = [Observation(at=30.0 * n, slots=reading(100 * n)) for n in range(400)]
    assert causes(StallLimits(stall_seconds=45), seen) == [None] * 400


def test_slots_that_stay_silent_are_a_hang() -> None:
    seen = [Observation(at=0, slots=reading(5))] + [
        Observation(at=10.0 * n, slots=None) for n in range(1, 6)
    ]
    assert [bool(v) for v in causes(StallLimits(stall_seconds=45), seen)] == [False] * 5 + [True]


def test_what_a_frozen_watch_did_not_see_is_no_silence() -> None:
    times = (0.0, 10.0, 8000.0, 8010.0, 8040.0, 8050.0)
    seen = [Observation(at=at, slots=reading(5) if at == 0 else None) for at in times]
    assert [bool(v) for v in causes(StallLimits(stall_seconds=45), seen)] == [False] * 5 + [True]


def test_a_load_that_was_frozen_with_its_watch_goes_on() -> None:
    detector = LoadStallDetector(120.0, 1800.0, began=0.0, last_progress=0.0)
    times = (1.0, *(8000.0 + 9 * n for n in range(15)))
    looks = [bool(detector.check(at, 0.0, (0.0, 0.0, 0.0))) for at in times]
    assert looks == [False] * 15 + [True]


def test_a_request_that_stands_still_is_a_hang_however_busy_the_processor() -> None:
    seen = [Observation(at=10.0 * n, slots=reading(5, 3), cpu_seconds=20.0 * n) for n in range(6)]
    assert [bool(v) for v in causes(StallLimits(stall_seconds=45), seen)] == [False] * 5 + [True]


def test_a_request_of_another_program_is_no_hang_until_one_of_ours_waits() -> None:
    theirs = [Observation(at=10.0 * n, slots=reading(5, 3), wanted=False) for n in range(20)]
    seen = [*theirs, Observation(at=201.0, slots=reading(5, 3))]
    assert [bool(v) for v in causes(StallLimits(stall_seconds=45), seen)] == [False] * 20 + [True]


def test_a_clients_heartbeat_counts_where_the_server_is_silent() -> None:
    seen = [Observation(at=10.0 * n, slots=None, heartbeats=n) for n in range(20)]
    assert causes(StallLimits(stall_seconds=45), seen) == [None] * 20


def test_a_silent_engine_may_prefill_for_150_seconds_while_it_works() -> None:
    limits = stall_limits("ik_llama.cpp", 2048, 24_000, 160.0)
    assert limits == StallLimits(stall_seconds=51.2, silent_seconds=600.0)
    by_cpu = [Observation(at=1.0 * n, slots=None, cpu_seconds=2.0 * n) for n in range(150)]
    by_gpu = [Observation(at=1.0 * n, slots=None, gpu=0.9) for n in range(150)]
    assert causes(limits, by_cpu) == causes(limits, by_gpu) == [None] * 150
    dead = causes(limits, [Observation(at=1.0 * n, slots=None, gpu=0.0) for n in range(60)])
    assert dead.index(next(v for v in dead if v)) == 52
    endless = causes(limits, [Observation(at=10.0 * n, slots=None, gpu=1.0) for n in range(70)])
    assert endless.index(next(v for v in endless if v)) == 60


def test_while_the_driver_compiles_only_a_server_that_works_may_be_silent() -> None:
    limits = stall_limits("llama.cpp", 2048, 8192, 900.0, compiling=True)
    busy = causes(limits, [Observation(at=5.0 * n, slots=None, cpu_seconds=5.0 * n) for n in range(121)])  # fmt: skip
    assert busy[:-1] == [None] * 120 and busy[-1]
    idle = causes(limits, [Observation(at=5.0 * n, slots=None) for n in range(7)])
    assert idle[:-1] == [None] * 6 and idle[-1]


def test_stopped_and_failing_servers() -> None:
    seen = [Observation(at=1.0 * n, slots=IDLE, process_state="T") for n in range(5)]
    assert [bool(v) for v in causes(StallLimits(), seen)] == [False, False, False, True, True]
    assert causes(
        StallLimits(),
        [Observation(at=0, slots=IDLE, errors=2), Observation(at=1, slots=IDLE, errors=3)],
    ) == [
        None,
        Cause("errors", saying("3 requests in a row", "error")),
    ]


def test_a_loading_server_is_alive_while_it_does_anything() -> None:
    detector = LoadStallDetector(stall_seconds=10, longest_seconds=200, began=0, last_progress=0)
    for n in range(1, 4):  # prints
        assert detector.check(9.0 * n, 0.0, (0.0, 0.0, float(n))) is None
    for n in range(4, 7):  # computes
        assert detector.check(9.0 * n, 5.0 * n, (0.0, 0.0, 3.0)) is None
    for n in range(7, 10):  # reads, and a little time goes into answering
        assert detector.check(9.0 * n, 30.0, (n * 1e8, 0.0, 3.0)) is None
    assert detector.check(90, 31.0, (9e8 + 100, 1.0, 3.0)) is None
    assert detector.check(92, 31.1, (9e8 + 200, 2.0, 3.0)) == Cause(
        "slow load", saying("loading", "92 s")
    )
