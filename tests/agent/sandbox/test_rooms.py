"""Strangers' bytes that have taken over the reader of mail or Chromium reach nothing else."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.attacks.__main__ import scratch
from tests.attacks.attack import Attack
from tests.attacks.rooms import KEPT, PROXY, ROOMS, against, attacks_on

OWN = (*KEPT, *PROXY)


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as path:
        yield path


async def check(folder: Path, room: str, attacks: Sequence[Attack]) -> None:
    outcomes = [outcome async for outcome in against(folder, room, attacks)]
    assert len(outcomes) == len(attacks) > 0
    assert {o.attack.name: o.success for o in outcomes if o.success} == {}


@pytest.mark.parametrize(
    "room", [pytest.param(room, marks=() if room == "mail" else pytest.mark.slow) for room in ROOMS]
)
async def test_attacks_from_within_are_blocked(folder: Path, room: str) -> None:
    every = attacks_on(room)
    await check(folder, room, [each for n, each in enumerate(every) if each in OWN or n % 12 == 0])


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
async def test_every_attack_from_within_is_blocked(folder: Path, room: str) -> None:
    await check(folder, room, attacks_on(room))
