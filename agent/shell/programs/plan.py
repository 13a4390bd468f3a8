"""plan: the steps of a task, shown to the person."""

from collections.abc import Callable, Sequence

from agent.errors import ToolError
from agent.language import ENGLISH, speaking
from agent.plan import Plan, WrongPlan, plan_lines, with_done, with_steps
from agent.shell.command import ShellCall, UsageError, command, no_lines
from agent.tools.context import Plans, ToolContext

FORMS = "plan [set STEP... | add STEP... | done NUMBER]  Keep the steps of long work, which the person sees."


def plan_line(context: ToolContext) -> Sequence[str]:
    return [FORMS] if context.plans else []


@command(lines=plan_line)
async def plan(call: ShellCall) -> None:
    """Show the plan of this task."""
    await show(call, await plans(call).of_turn(call.turn))


@command(lines=no_lines)
async def set_(call: ShellCall, *steps: str) -> None:
    """Begin a plan: plan set "read the log" "find the cause" "write the fix"."""
    await change(call, lambda _: with_steps((), given(steps)))


@command(lines=no_lines)
async def add(call: ShellCall, *steps: str) -> None:
    """Further steps at its end."""
    await change(call, lambda plan: with_steps(plan, given(steps)))


@command(lines=no_lines)
async def done(call: ShellCall, number: int) -> None:
    """Tick off a step."""
    await change(call, lambda plan: with_done(plan, number))


def given(steps: Sequence[str]) -> Sequence[str]:
    if not steps:
        raise UsageError("steps are missing, each in quotes")
    return steps


def plans(call: ShellCall) -> Plans:
    if call.context.plans is None or not call.turn:
        raise ToolError("There is no task to plan here.")
    return call.context.plans


async def change(call: ShellCall, correct: Callable[[Plan], Plan]) -> None:
    try:
        with speaking(ENGLISH):  # the model reads what is wrong
            changed = await plans(call).change(call.chat, correct, call.turn)
    except WrongPlan as error:
        raise ToolError(str(error)) from None
    call.within.planned(changed)
    await show(call, changed)


async def show(call: ShellCall, plan: Plan) -> None:
    await call.write("\n".join(plan_lines(plan) or ["There is no plan."]) + "\n")
