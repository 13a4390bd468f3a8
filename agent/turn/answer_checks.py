"""What is wrong with an answer that calls no tool: asked once to do better, then taken as it is."""

from collections.abc import Collection

from agent.turn import texts
from agent.turn.claims import Claim, false_claim
from agent.turn.step import Step


class AnswerChecks:
    """Each kind of objection is made at most once a turn."""

    def __init__(self) -> None:
        self._made: set[str] = set()
        self._parts: list[str] = []

    def __call__(self, step: Step, done: Collection[str]) -> str | None:
        """What to tell the model, or None when the answer stands."""
        kind, advice = self._fault(step, done)
        if kind is None or kind in self._made:
            return None
        self._made.add(kind)
        self._parts = [*self._parts, step.text] if kind == "cut" else []
        return advice

    def _fault(self, step: Step, done: Collection[str]) -> tuple[str | None, str]:
        if step.cut_call:
            return "cut_call", texts.CUT_CALL
        if not step.text:
            return "empty", texts.EMPTY
        if step.cut:
            return "cut", texts.CUT_ANSWER
        claim = false_claim(step.text, done)
        return ("claim", claim.note) if claim else (None, "")

    def acted(self) -> None:
        """Tools were called after all: a part of an answer from before is no part of the next."""
        self._parts = []

    def text(self, step: Step, done: Collection[str]) -> str:
        """The whole answer for the person, with what must be added to it; may be empty."""
        said = " ".join([*self._parts, step.text]).strip()
        claim = false_claim(step.text, done)
        return _with(said, step, claim) if said else ""


def _with(said: str, step: Step, claim: Claim | None) -> str:
    if step.cut:
        said = f"{said} {texts.CUT}"
    return f"{said}\n\n{claim.correction}" if claim else said
