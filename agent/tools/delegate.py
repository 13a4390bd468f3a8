"""delegate: a sub-task in an inner turn (agent/turn/delegate.py)."""

from agent.errors import ToolError
from agent.tools.tool import Call, Output, tool


@tool
async def delegate(call: Call, task: str) -> Output:
    """Give a task that needs much reading to a helper; returns its conclusion."""
    if call.context.delegate is None:
        raise ToolError("Nothing can be delegated from here.")
    return Output(await call.context.delegate(task, call.strangers))
