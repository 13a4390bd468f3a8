"""What is asked of the model: the requests that it should meet, and those beyond it."""

from collections.abc import Iterator
from importlib import resources

from pocket.evaluation.asked import again, chat, figures, files, git, memory, several, sums
from pocket.evaluation.asked.files import HOUSE
from pocket.evaluation.case import Case, case
from pocket.evaluation.checks import refuses
from pocket.evaluation.world import Setup

BEYOND = "beyond"


def within() -> list[Case]:
    """The ordinary wishes of a first hour, family by family."""
    families = (figures, sums, files, git, memory, chat, several, again)
    return [one for family in families for one in family.cases()]


def beyond() -> Iterator[Case]:
    """What a demonstration model must plainly decline."""
    text = resources.files(__name__).joinpath("beyond.txt").read_text("utf-8")
    for words in text.splitlines():
        yield case(BEYOND, words, refuses(), Setup(HOUSE))
