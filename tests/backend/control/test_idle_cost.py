"""What work between turns costs, from samples a second apart."""

from pathlib import Path

import pytest

from backend.control.gpu_queue import GpuRequestQueue
from backend.control.speed import IdleCost
from backend.gpu.nvml import Sample
from backend.protocol import EVAL, IDLE, PERSON, Gpu, IdleWork


def sampled(at: float, watts: float | None = None, joules: float | None = None) -> Sample:
    gpus = () if watts is None else (Gpu(index=0, name="V100", power_w=watts),)
    return Sample(at, gpus, joules=joules)


@pytest.fixture
def cost(tmp_path: Path) -> IdleCost:
    return IdleCost(tmp_path / "idle.json", clock=lambda: 1_000_000.0)


def test_without_a_card_seconds_alone_are_counted(cost: IdleCost) -> None:
    cost.held(10.0, 12.5)
    assert cost.work() == IdleWork(seconds=2.5, wh=None)


@pytest.mark.parametrize("counter", [True, False], ids=["energy-counter", "power"])
def test_a_hold_of_a_fraction_of_a_second_is_charged_what_it_drew(
    cost: IdleCost, counter: bool
) -> None:
    # 40 W at rest; from 10.2 s to 10.6 s it read, at 200 W: 64 J above what it drew before and after.
    drawn = 0.0
    for second in range(9, 14):
        watts = 40.0 + (64.0 if second == 11 else 0.0)
        drawn += watts
        if second == 11:
            cost.held(10.2, 10.6)
        cost.sample(sampled(second, watts, drawn if counter else None))
    assert cost.work().seconds == 0.4
    assert (cost.work().wh or 0.0) * 3600 == pytest.approx(0.4 * 200, rel=0.01)


def test_a_long_hold_is_charged_all_that_it_drew(cost: IdleCost) -> None:
    for second in range(5):
        cost.sample(sampled(second, joules=40.0 * second))
    for second in range(5, 16):
        cost.sample(sampled(second, joules=160.0 + 200.0 * (second - 4)))
    cost.held(4.0, 14.0)
    cost.sample(sampled(16, joules=160.0 + 200.0 * 11 + 40.0))
    assert (cost.work().wh or 0.0) * 3600 == pytest.approx(2000.0, rel=0.01)


def test_it_is_kept_over_a_restart_and_for_a_day(tmp_path: Path) -> None:
    now = 1_000_000.0
    path = tmp_path / "idle.json"
    cost = IdleCost(path, clock=lambda: now)
    cost.held(0.0, 3.0)
    again = IdleCost(path, clock=lambda: now)
    again.read()
    assert again.work() == IdleWork(seconds=3.0)
    now += 25 * 3600
    assert again.work() == IdleWork(seconds=0)
    path.write_text("[[1, {}]]")
    IdleCost(path).read()


async def test_the_queue_tells_of_idle_work_alone(cost: IdleCost) -> None:
    now = 0.0
    queue = GpuRequestQueue(now=lambda: now, on_idle=cost.held)
    for chat, priority in (("a", PERSON), (EVAL, IDLE), ("a", IDLE)):
        async with queue.acquire(chat, priority):
            now += 1.0
    assert cost.work().seconds == 1.0
