"""What work between turns costs, from samples a second apart."""

from pathlib import Path

import pytest

from backend.control.speed import IdleCost
from backend.gpu.nvml import Sample
from backend.protocol import Gpu, IdleWork


def sampled(at: float, watts: float | None = None, joules: float | None = None) -> Sample:
    gpus = () if watts is None else (Gpu(index=0, name="V100", power_w=watts),)
    return Sample(at, gpus, joules=joules)


@pytest.fixture
def cost(tmp_path: Path) -> IdleCost:
    return IdleCost(tmp_path / "idle.json", clock=lambda: 1_000_000.0)


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
