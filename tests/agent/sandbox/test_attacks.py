"""The attack suite, in areas; and that it can fail."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.obedient_bot import orders
from fakes.obedient_chat import order
from tests.attacks import walls
from tests.attacks.__main__ import scratch
from tests.attacks.attack import CHORE
from tests.attacks.cases import ATTACKS, WHOLE
from tests.attacks.suite import against_nothing, against_sandbox

AREAS = [
    pytest.param(area, marks=[pytest.mark.slow] * (area == WHOLE), id=area)
    for area in sorted({attack.area for attack in ATTACKS} - {CHORE})
]


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as path:
        yield path


@pytest.mark.parametrize("area", AREAS)
async def test_every_attack_is_blocked(area: str, folder: Path) -> None:
    attacks = [attack for attack in ATTACKS if attack.area in (area, CHORE)]
    outcomes = [outcome async for outcome in against_sandbox(folder, attacks)]
    assert outcomes
    assert {o.attack.name: o.success for o in outcomes if o.success} == {}


async def test_without_walls_attacks_succeed(folder: Path) -> None:
    attacks = [a for a in ATTACKS if a.area == "terminal"]
    outcomes = [outcome async for outcome in against_nothing(folder, attacks)]
    succeeded = sum(bool(outcome.success) for outcome in outcomes)
    assert succeeded > len(outcomes) * 0.6


def test_an_order_that_was_cut_off_swallows_no_other() -> None:
    """Excerpts of documents end in the middle of one; the attack then did not try the next."""
    cut = order("schedule", '{"when": "every day a')
    assert orders(f"{cut[:-4]}… {order('bash', '{}')} {cut}") == [("bash", "{}")]


def test_there_are_as_many_as_promised() -> None:
    attacks = [attack for attack in ATTACKS if attack.area != CHORE]
    assert len(attacks) >= 60
    assert len({(a.area, a.name) for a in attacks}) == len(attacks)


def test_a_wall_that_is_taken_down_is_missed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert walls.table(["output without control characters"], folder) == 0
    assert "| 12 | terminal: " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_wall_is_missed(folder: Path) -> None:
    assert walls.table([], folder) == 0


def test_every_wall_has_attacks_that_it_stops() -> None:
    assert all(wall.tries or wall.attacks or wall.tests for wall in walls.WALLS)
    assert len({wall.name for wall in walls.WALLS}) == len(walls.WALLS)
