"""A case: what a person says, in one turn or several, and what must come of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pocket.evaluation.machine import Machine
from pocket.evaluation.world import Setup

LOOKING = frozenset({"read_file", "list_files", "grep", "git_status", "git_diff", "recall"})


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call that was made, its result, and the machine and files as it left them."""

    name: str
    arguments: dict[str, Any]
    result: str
    ok: bool
    machine: Machine
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class Played:
    """One turn as it went, on `machine` as it was then."""

    words: str
    steps: tuple[Step, ...]
    answer: str
    machine: Machine


CallCheck = Callable[[Step], bool]
AnswerCheck = Callable[[Played], bool]
Before = Literal["nothing", "look", "failure"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """`call` is None where no tool is wanted; then a right answer is what `held` asks for.

    `before` says what may come ahead of the wanted call: nothing, a look at
    files, or a first try that fails. `bare`: the value stands in the context
    block or the conversation, so an answer without a call is right as well.
    """

    call: CallCheck | None
    held: AnswerCheck
    before: Before = "nothing"
    bare: bool = False

    def right(self, played: Played) -> bool:
        """Whether the tool and its arguments were right (or rightly absent)."""
        if self.call is None:
            return not played.steps and self.held(played)
        if not played.steps:
            return self.bare and self.held(played)
        return any(self.call(step) for step in self._counting(played))

    def _counting(self, played: Played) -> Sequence[Step]:
        """The steps up to the first that may not come before the wanted call."""
        steps = played.steps
        early = next((i for i, step in enumerate(steps) if not self._early(step)), len(steps) - 1)
        return steps[: early + 1]

    def _early(self, step: Step) -> bool:
        if self.before == "nothing":
            return False
        return step.name in LOOKING or (self.before == "failure" and not step.ok)


@dataclass(frozen=True, slots=True)
class Turn:
    words: str
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Case:
    """`notes` stand in the first message's context block."""

    family: str
    turns: tuple[Turn, ...]
    setup: Setup = field(default_factory=Setup)
    notes: Sequence[str] = ()


def case(
    family: str, words: str, wanted: Wanted, setup: Setup | None = None, notes: Sequence[str] = ()
) -> Case:
    """A conversation of one turn."""
    return Case(family, (Turn(words, wanted),), setup or Setup(), notes)
