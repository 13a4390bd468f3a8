"""Templates with choices: `{a|b|}` picks one, `[x]` is there half the time, `$slot` is filled in.

Choices nest. The parse is cached, so that a template costs a walk of its tree.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Slot:
    name: str


@dataclass(frozen=True, slots=True)
class Choice:
    branches: tuple["Sequence", ...]


Sequence = tuple[Text | Slot | Choice, ...]


def expand(template: str, random: Random, slots: Mapping[str, str] | None = None) -> str:
    """One sentence of the template, white space tidied at its ends."""
    return _say(_parse(template), random, slots or {}).strip()


def _say(sequence: Sequence, random: Random, slots: Mapping[str, str]) -> str:
    spoken = []
    for part in sequence:
        match part:
            case Text(text):
                spoken.append(text)
            case Slot(name):
                spoken.append(slots[name])
            case Choice(branches):
                spoken.append(_say(random.choice(branches), random, slots))
    return "".join(spoken)


@cache
def _parse(template: str) -> Sequence:
    sequence, end = _sequence(template, 0, "")
    if end != len(template):
        raise ValueError(f"unbalanced {template[end]!r} at {end} in {template!r}")
    return sequence


def _sequence(template: str, at: int, stops: str) -> tuple[Sequence, int]:
    parts: list[Text | Slot | Choice] = []
    while at < len(template) and template[at] not in stops:
        part, at = _part(template, at)
        parts.append(part)
    return tuple(parts), at


def _part(template: str, at: int) -> tuple[Text | Slot | Choice, int]:
    match template[at]:
        case "{":
            return _choice(template, at + 1, "}")
        case "[":
            optional, at = _choice(template, at + 1, "]")
            return Choice(((), (optional,))), at
        case "$":
            end = at + 1
            while end < len(template) and template[end].isalpha():
                end += 1
            return Slot(template[at + 1 : end]), end
    end = at
    while end < len(template) and template[end] not in "{[$|]}":
        end += 1
    if end == at:
        raise ValueError(f"unbalanced {template[at]!r} at {at} in {template!r}")
    return Text(template[at:end]), end


def _choice(template: str, at: int, close: str) -> tuple[Choice, int]:
    branches = []
    while True:
        branch, at = _sequence(template, at, "|" + close)
        branches.append(branch)
        if at == len(template):
            raise ValueError(f"unclosed choice in {template!r}")
        if template[at] == close:
            return Choice(tuple(branches)), at + 1
        at += 1
