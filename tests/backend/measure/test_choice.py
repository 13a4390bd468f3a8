"""Which of two servers stays, from what was measured of each."""

from pathlib import Path

import pytest

from backend.measure.bench import BenchRow, Conditions, Setting
from backend.measure.probe import CannotMeasure
from backend.measure.sweep import choose

USED, NEW = Path("/released"), Path("/compiled")
Speeds = list[float | str | None]  # decode tokens/s; why it does not run; throttled


@pytest.mark.parametrize(
    ("used", "new", "stays", "words"),
    [
        ([10, 10], [20, 20], NEW, "faster"),
        ([20, 20], [10, 10], USED, "stays"),
        ([10, 10], [10.1, 10.1], USED, "stays"),
        ([10, 19], [20, 18], USED, "stays"),
        ([10, 10], ["no such device"], USED, "no such device"),
        (["out of memory"], [5, 5], NEW, "out of memory"),
        (["no model"], ["no model"], NEW, "Neither"),
        ([10, None], [None, 20], NEW, "faster"),
        ([10, 10], [None, None], USED, "slowed"),
    ],
    ids=["faster", "slower", "chance", "overlap", "new broken", "old broken", "neither", "one throttled", "throttled"],
)  # fmt: skip
async def test_the_faster_one_stays(used: Speeds, new: Speeds, stays: Path, words: str) -> None:
    left = {USED: [*used], NEW: [*new]}
    order: list[Path] = []

    async def measure(server: Path) -> BenchRow:
        order.append(server)
        found = left[server].pop(0)
        if isinstance(found, str):
            raise CannotMeasure(found)
        why = () if found else ("thermal",)
        setting = Setting("p", "b", "", "f16")
        return BenchRow("r", setting, Conditions(throttle=why), 512, 1000, found or 1)

    server, why = await choose(USED, NEW, measure)
    assert (server, words in why) == (stays, True)
    assert not any(left.values())
    if len(used) == len(new) == 2:
        assert order == [USED, NEW, USED, NEW]
