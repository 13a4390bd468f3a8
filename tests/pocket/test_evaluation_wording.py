"""What the evaluation asks, the generator of the training text does not say.

Every family of the generator is asked for exchanges, and each template that it
chooses from is read as a pattern, so that all of its wordings are compared and
not only those that were drawn. Letters' case and punctuation do not count.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random

import pytest

from pocket.conversation import FAMILIES, conversation
from pocket.dialogue import User, World
from pocket.evaluation.asked import beyond, within
from pocket.grammar import expand
from pocket.noise import AFTER, BEFORE, SYNONYMS
from pocket.prefix import product

PREFIX = Path(__file__).parents[2] / "agent/prefix"
CASES = [*within(), *beyond()]
EXCHANGES = 150  # of each family: more find no further template
CONVERSATIONS, LENGTH = 100, 20
SHARED = {"hi", "thanks", "thx", "help", "ls", "df"}  # nobody can word these otherwise
SHARED_REPOSITORIES = {"."}
PART = re.compile(r"\$(?P<slot>[a-zA-Z]+)|(?P<mark>[{}\[\]|])|(?P<word>[^\W_]+)|(?P<other>.)", re.S)
MARKS = {"{": "(?:", "|": "|", "}": ")", "[": "(?:", "]": ")?"}

Heard = defaultdict[str, defaultdict[str, set[str]]]  # template -> slot -> values


class Listening(World):
    """Notes each template that might have been said, and the values of its slots."""

    heard: Heard

    def say(self, templates: Sequence[str], **slots: str) -> User:
        for template in templates:
            values = self.heard[template]
            for slot, value in slots.items():
                values[slot].add(plain(value))
        return super().say(templates, **slots)


def plain(words: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", words.split("</context>\n")[-1].lower()))


@cache
def heard() -> tuple[Heard, frozenset[str]]:
    """The generator's templates with their values, and the wordings that were drawn."""
    templates: Heard = defaultdict(lambda: defaultdict(set))
    drawn = set()
    for family in FAMILIES:
        for seed in range(EXCHANGES):
            world = Listening(Random(seed))
            world.heard = templates
            drawn |= {plain(m.words) for m in family(world) if isinstance(m, User)}
    return templates, frozenset(drawn)


class Pattern:
    """A template as a pattern over plain words, in which a synonym may stand for a word."""

    def __init__(self, template: str) -> None:
        self.slots: list[str] = []
        parts = (self._part(found) for found in PART.finditer(template))
        self.form = re.compile(" *" + re.sub(r"(?: \*)+", " *", "".join(parts)) + " *")

    def _part(self, found: re.Match[str]) -> str:
        if found["slot"]:
            self.slots.append(found["slot"])
            return "(.+?)"
        if found["word"]:
            word = found["word"].lower()
            return f"(?:{'|'.join(map(plain, (word, *SYNONYMS.get(word, ()))))})"
        return MARKS[found["mark"]] if found["mark"] else " *"

    def says(self, words: str, values: dict[str, set[str]]) -> bool:
        found = self.form.fullmatch(words)
        return found is not None and all(
            value is None or value.strip() in values[slot]
            for slot, value in zip(self.slots, found.groups(), strict=True)
        )


def joined(templates: Sequence[str]) -> str:
    return "|".join(Pattern(template).form.pattern for template in templates)


OPENING, CLOSING = re.compile(f"(?:{joined(BEFORE)}) "), re.compile(f"(.*?) (?:{joined(AFTER)})")


def without_courtesies(words: str) -> Iterator[str]:
    """The words, and what is left of them without what noise may put before and behind."""
    opened = OPENING.match(words)
    for rest in (words, words[opened.end() :] if opened else ""):
        closed = CLOSING.fullmatch(rest)
        yield from filter(None, (rest, closed and closed[1]))


def said(asked: Sequence[str]) -> set[str]:
    """Those of `asked` that the generator says."""
    templates, drawn = heard()
    patterns = [(Pattern(template), values) for template, values in templates.items()]
    return {
        words
        for words in asked
        if any(
            core in drawn or any(pattern.says(core, values) for pattern, values in patterns)
            for core in without_courtesies(plain(words))
        )
    }


@pytest.mark.slow
def test_the_generator_says_no_wording_of_the_evaluation() -> None:
    asked = [turn.words for one in CASES for turn in one.turns]
    assert said(asked) == SHARED


def test_no_conversation_of_the_generator_holds_a_wording_of_the_evaluation() -> None:
    asked = {plain(turn.words) for one in CASES for turn in one.turns} - SHARED
    prefix = product(PREFIX / "system.txt", PREFIX / "tools.json")
    talks = (conversation(Random(seed), prefix, LENGTH) for seed in range(CONVERSATIONS))
    spoken = {plain(m.words) for talk in talks for m in talk.messages if isinstance(m, User)}
    assert len(spoken) > CONVERSATIONS * LENGTH / 2
    assert spoken & asked == set()


def test_no_file_or_repository_of_the_evaluation_is_named_by_the_generator() -> None:
    names = {name for one in CASES for name in (*one.setup.files, *one.setup.repositories)}
    values = {
        value for slots in heard()[0].values() for of_slot in slots.values() for value in of_slot
    }
    assert {name for name in names - SHARED_REPOSITORIES if plain(name) in values} == set()


@pytest.mark.slow
def test_what_the_generator_says_is_found_out_behind_courtesies() -> None:
    bare = [template for template, values in heard()[0].items() if not values]
    asked = {f"Please {expand(template, Random(1))}, thanks!" for template in bare}
    assert len(asked) > 80
    assert said(sorted(asked)) == asked
