"""When a server is started again."""

import random

from hypothesis import given
from hypothesis import strategies as st

from backend.server.process import RestartBackoff


@given(st.integers(0, 20) | st.integers(1_000, 3_000), st.integers(0, 1 << 30))
def test_pauses_stay_between_one_second_and_a_minute_until_it_gives_up(
    barren: int, seed: int
) -> None:
    seconds = RestartBackoff(barren).pause(random.Random(seed))
    assert seconds == 600 if barren >= 5 else 1 <= seconds <= 60


def test_a_served_request_resets_the_count() -> None:
    backoff = RestartBackoff()
    for _ in range(4):
        backoff = backoff.ended(served=False)
    assert (backoff.failures, backoff.given_up) == (4, False)
    assert backoff.ended(served=True) == RestartBackoff(0)
    assert backoff.ended(served=False).given_up
    assert RestartBackoff().ended(served=False, lasting=True).given_up
    assert not RestartBackoff().ended(served=True, lasting=True).given_up


def test_a_lasting_reason_gives_up_at_once_and_counts_on_no_further() -> None:
    assert RestartBackoff(2).ended(served=False, lasting=True) == RestartBackoff(5)
    assert RestartBackoff(7).ended(served=False, lasting=True) == RestartBackoff(7)
    assert RestartBackoff(7).ended(served=False) == RestartBackoff(8)
