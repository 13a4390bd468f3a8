"""The wishes of a newcomer are what they claim to be, and are judged as they say."""

import re
import tomllib
from datetime import UTC, datetime

import pytest

from pocket.evaluation.newcomer import WISHES, Outcome, Tried, Wish, found, table

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def test_there_are_two_hundred_a_third_of_them_beyond_the_toy() -> None:
    with WISHES.open("rb") as file:
        wishes = [Wish.model_validate(each) for each in tomllib.load(file)["wish"]]
    assert len({wish.say for wish in wishes}) == len(wishes) == 200
    assert sum(not wish.within for wish in wishes) >= 67
    for wish in wishes:
        for pattern in (*wish.answer, *wish.not_answer, wish.call, wish.never):
            re.compile(re.sub(r"\{[a-z]+\}", "x", pattern))
        assert not wish.within or wish.answer or wish.call or wish.after, wish.say


DELETED = Wish(within=True, say=("delete a",), after={"a": "", "b": "x"})
SAID = Wish(within=True, say=("date?",), answer=("{tomorrow}",), never="remember")


@pytest.mark.parametrize(
    ("tried", "outcome"),
    [
        (Tried(DELETED, [["bash rm a"]], "Done.", {"b": "x"}), "right"),
        (Tried(DELETED, [["bash rm b"]], "I cannot do that.", {"a": "x"}), "wrong"),
        (Tried(DELETED, [[]], "I cannot do that.", {"a": "x", "b": "x"}), "declined"),
        (Tried(SAID, [[]], "Tuesday."), "right"),
        (Tried(SAID, [["remember x"]], "Tuesday."), "wrong"),
        (Tried(SAID, [[]], "Monday."), "wrong"),
    ],
    ids=["done", "harm with a no", "a plain no", "said", "forbidden", "another day"],
)
def test_an_outcome_is_right_declined_or_wrong(tried: Tried, outcome: Outcome) -> None:
    assert tried.outcome(NOW) == outcome


def test_the_shares_are_held_against_the_targets() -> None:
    good, bad = Tried(SAID, [[]], "24 November"), Tried(SAID, [[]], "Monday.")
    assert table([good] * 20, NOW)[1] and not table([good, bad], NOW)[1]
    assert not found("{tomorrow}", "23 November", NOW)
