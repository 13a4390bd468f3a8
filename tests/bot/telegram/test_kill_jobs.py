"""Jobs, with the bot killed at random steps of them: the short form of bench.faults_schedule."""

from bench.faults_schedule import campaign


async def test_killed_at_random_steps_no_job_is_lost_or_said_twice() -> None:
    report = await campaign(5, seed=7)
    assert report.wrong == []
    assert sum(report.stood.values()) == 5
    assert report.ended["done"] >= 5
