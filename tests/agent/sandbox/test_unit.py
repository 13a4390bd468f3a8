"""The sandbox in the bot's own unit: a real systemd starts it, with all that it takes away."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from fakes.booted import CODE, lacking
from tests.attacks.__main__ import scratch
from tests.attacks.cases import ATTACKS, WHOLE
from tests.attacks.hardening import WALLS
from tests.attacks.unit import against_unit

pytestmark = pytest.mark.timeout(1800)  # seconds where the processor is free


@pytest.fixture
async def folder() -> AsyncIterator[Path]:
    if why := await lacking():
        pytest.skip(why)
    with scratch() as path:
        yield path


async def check(folder: Path, attacks: int, areas: Sequence[str] = ()) -> None:
    """Attacks are blocked by sandboxes that work there: the suite looks before it begins."""
    code, said = await against_unit(folder, areas)
    lines = [x for x in said.splitlines() if not x.startswith("removed what a command made: ")]
    walls = len(WALLS)
    assert lines == [
        f"{walls} of {walls} walls of the unit stand",
        f"{attacks} of {attacks} blocked",
    ]
    assert code == 0


@pytest.mark.slow
async def test_its_walls_stand_and_attacks_are_blocked(folder: Path) -> None:
    areas = ["environment", "privileges"]
    await check(folder, sum(attack.area in areas for attack in ATTACKS), areas)


@pytest.mark.slow
async def test_all_attacks_are_blocked(folder: Path) -> None:
    await check(folder, sum(attack.area not in ("chore", WHOLE) for attack in ATTACKS))


def test_without_the_unit_its_walls_are_missed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.attacks.hardening"],
        cwd=CODE,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    missed = [line.partition(":")[0] for line in done.stdout.splitlines() if ":" in line]
    assert done.returncode == 1
    assert {"LockPersonality", "PrivateTmp", "SystemCallFilter"} <= set(missed) <= set(WALLS)
