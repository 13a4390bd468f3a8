"""When a server is started again."""

import random

import pytest
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


class Ends(random.Random):
    """Chance that always falls on one end."""

    def __init__(self, *, longest: bool) -> None:
        super().__init__(0)
        self.longest = longest

    def uniform(self, a: float, b: float) -> float:
        return b if self.longest else a


@pytest.mark.parametrize(
    ("barren", "first", "shortest", "longest"),
    [
        (0, 1.0, 1.0, 1.0),
        (1, 1.0, 1.0, 2.0),
        (3, 1.0, 4.0, 8.0),
        (4, 1.0, 8.0, 16.0),
        (3, 10.0, 30.0, 60.0),
        (0, 0.25, 0.25, 0.25),
        (5, 1.0, 77.0, 77.0),
        (6, 1.0, 77.0, 77.0),
    ],
)
def test_a_pause_is_between_the_half_and_the_whole_of_what_doubles(
    barren: int, first: float, shortest: float, longest: float
) -> None:
    backoff = RestartBackoff(barren)
    pauses = [backoff.pause(Ends(longest=end), first, 77.0) for end in (False, True)]
    assert pauses == [shortest, longest]


def test_a_lasting_reason_gives_up_at_once_and_counts_on_no_further() -> None:
    assert RestartBackoff(2).ended(served=False, lasting=True) == RestartBackoff(5)
    assert RestartBackoff(7).ended(served=False, lasting=True) == RestartBackoff(7)
    assert RestartBackoff(7).ended(served=False) == RestartBackoff(8)
