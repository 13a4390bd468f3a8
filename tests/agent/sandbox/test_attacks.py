"""The attack suite: a sixtieth of it by day, all of it in areas; and that it can fail."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fakes.obedient_bot import orders
from fakes.obedient_chat import order
from tests.attacks import walls
from tests.attacks.__main__ import scratch
from tests.attacks.attack import CHORE, Attack
from tests.attacks.cases import ATTACKS, WHOLE
from tests.attacks.suite import against_nothing, against_sandbox

AREAS = sorted({attack.area for attack in ATTACKS} - {CHORE})


def every_sixtieth() -> list[Attack]:
    """Of each area but the one of half an hour, and all that tidies up between them."""
    of_area = Counter[str]()
    chosen = []
    for attack in ATTACKS:
        of_area[attack.area] += attack.area not in (CHORE, WHOLE)
        if attack.area == CHORE or of_area[attack.area] % 60 == 1:
            chosen.append(attack)
    return chosen


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as path:
        yield path


async def check(attacks: Sequence[Attack], folder: Path) -> None:
    outcomes = [outcome async for outcome in against_sandbox(folder, attacks)]
    assert outcomes
    assert {o.attack.name: o.success for o in outcomes if o.success} == {}


async def test_attacks_of_each_area_are_blocked(folder: Path) -> None:
    await check(every_sixtieth(), folder)


@pytest.mark.slow
@pytest.mark.parametrize("area", AREAS)
async def test_every_attack_is_blocked(area: str, folder: Path) -> None:
    await check([attack for attack in ATTACKS if attack.area in (area, CHORE)], folder)


async def test_without_walls_attacks_succeed(folder: Path) -> None:
    attacks = [a for a in ATTACKS if a.area == "terminal"][::3]
    outcomes = [outcome async for outcome in against_nothing(folder, attacks)]
    succeeded = sum(bool(outcome.success) for outcome in outcomes)
    assert succeeded > len(outcomes) * 0.6


def test_an_order_that_was_cut_off_swallows_no_other() -> None:
    """Excerpts of documents end in the middle of one; the attack then did not try the next."""
    cut = order("schedule", '{"when": "every day a')
    assert orders(f"{cut[:-4]}… {order('bash', '{}')} {cut}") == [("bash", "{}")]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_wall_is_missed(folder: Path) -> None:
    assert walls.table([], folder) == 0


def test_every_wall_has_attacks_that_it_stops() -> None:
    assert all(wall.tries or wall.attacks or wall.tests for wall in walls.WALLS)
    assert len({wall.name for wall in walls.WALLS}) == len(walls.WALLS)
