"""An answer that claims an action although no tool was called."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from agent import texts

_I = r"\b(?:i|we)(?:'ve|\u2019ve| have| had)?(?: now| just| already| also| successfully)* "
_WILL = r"\b(?:i'll|i\u2019ll|i will|i am going to|i'm going to) (?:now |also )?"


@dataclass(frozen=True, slots=True)
class Claim:
    """`note` goes to the model; `correction` to the person if it insists."""

    words: re.Pattern[str]
    tools: frozenset[str]  # one of these having run makes the claim true
    note: str
    correction: str


def _pattern(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


_CHANGING = frozenset(
    ("bash", "write_file", "edit_file", "git_commit", "send_file", "remember", "schedule")
)
CLAIMS = (
    Claim(
        _pattern(
            _WILL + r"(?:remind|notify|message|ping) you\b",
            _I + r"(?:scheduled|set (?:up )?(?:a|the|your) (?:reminder|alarm|timer))\b",
            r"\b(?:reminder|alarm|timer) (?:is|has been|was)? ?(?:now )?(?:set|scheduled|created)\b",
        ),
        frozenset(("schedule",)),
        texts.CLAIM_SCHEDULED,
        texts.NOTHING_SCHEDULED,
    ),
    Claim(
        _pattern(
            _I + r"(?:saved|noted|stored|remembered|memori[sz]ed|made a note)\b",
            _WILL + r"(?:remember|keep (?:that|this|it) in mind|make a note)\b",
            r"\b(?:saved|added|noted|stored) (?:to|in) (?:my |your )?(?:memory|notes)\b",
        ),
        frozenset(("remember", "bash", "write_file", "edit_file", "schedule")),
        texts.CLAIM_SAVED,
        texts.NOTHING_SAVED,
    ),
    Claim(
        _pattern(
            _I + r"(?:created|written|wrote|edited|changed|updated|fixed|deleted|removed|renamed"
            r"|moved|copied|committed|installed|sent|executed|run|ran)\b"
            r"[^.?!]{0,60}\b(?:files?|folders?|director(?:y|ies)|scripts?|commits?|commands?|tests?"
            r"|repo(?:sitory)?|packages?|\S+\.\w{1,4})\b",
        ),
        _CHANGING,
        texts.CLAIM_DONE,
        texts.NOTHING_DONE,
    ),
)


def false_claim(text: str, done: Collection[str]) -> Claim | None:
    """The first claim in `text` for which no tool of this turn (names in `done`) stands."""
    for claim in CLAIMS:
        if not claim.tools & set(done) and claim.words.search(text):
            return claim
    return None
