"""Jobs, with the bot killed at random steps of them."""

import pytest

from tests.bot.telegram.job_kills import campaign


@pytest.mark.parametrize(
    ("kills", "seed"),
    [(3, 7), pytest.param(100, 1, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)
async def test_killed_at_random_steps_no_job_is_lost_or_said_twice(kills: int, seed: int) -> None:
    report = await campaign(kills, seed)
    assert report.wrong == []
    assert sum(report.stood.values()) == kills
    assert report.ended["done"] >= kills
