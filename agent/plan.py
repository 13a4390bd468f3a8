"""The plan of a task: a few steps that the model keeps up to date, and the person sees and corrects."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.language import translated

MOST_STEPS, LONGEST_STEP = 20, 200  # characters


class WrongPlan(ValueError):
    """A plan cannot be changed so; `str(error)` is one plain sentence."""


@dataclass(frozen=True, slots=True)
class PlanStep:
    text: str
    done: bool = False


Plan = tuple[PlanStep, ...]


def plan_lines(plan: Plan) -> list[str]:
    """The steps as the model sees them."""
    return [f"{n}. [{'x' if each.done else ' '}] {each.text}" for n, each in enumerate(plan, 1)]


def with_steps(plan: Plan, texts: Sequence[str]) -> Plan:
    """The plan with further steps at its end. WrongPlan where there are too many, or one is too long."""
    new = [" ".join(text.split()) for text in texts]
    if longest := next((text for text in new if len(text) > LONGEST_STEP), None):
        form = translated("A step has at most {most} characters, this one {count}.")
        raise WrongPlan(form.format(most=LONGEST_STEP, count=len(longest)))
    whole = (*plan, *(PlanStep(text) for text in new if text))
    if len(whole) > MOST_STEPS:
        raise WrongPlan(translated("A plan has at most {most} steps.").format(most=MOST_STEPS))
    return whole


def with_done(plan: Plan, number: int) -> Plan:
    return replaced(plan, number, replace(step(plan, number), done=True))


def with_text(plan: Plan, number: int, text: str) -> Plan:
    """The plan with other words for a step; WrongPlan as for `with_steps`."""
    (new,) = with_steps((), [text]) or (step(plan, number),)
    return replaced(plan, number, replace(new, done=step(plan, number).done))


def replaced(plan: Plan, number: int, new: PlanStep) -> Plan:
    return (*plan[: number - 1], new, *plan[number:])


def step(plan: Plan, number: int) -> PlanStep:
    if not plan:
        raise WrongPlan(translated("There is no plan."))
    if not 1 <= number <= len(plan):
        form = translated("There is no step {number}; the plan has {count}.")
        raise WrongPlan(form.format(number=number, count=len(plan)))
    return plan[number - 1]
