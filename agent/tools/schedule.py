"""schedule: work for later."""

from typing import Annotated, Literal

from pydantic import Field

from agent.errors import ToolError
from agent.tools.tool import Call, Output, tool

TO_SUMMARISE = "the repository to summarise, "


@tool
async def schedule(
    call: Call,
    when: Annotated[
        str, Field(description="the person's own words for the time, no date of yours")
    ],
    task: Annotated[
        str,
        Field(
            description=f"the text to send, the task to do, {TO_SUMMARISE}or watch and what to look at"
        ),
    ],
    kind: Literal["remind", "task", "summary"] = "",  # type: ignore[assignment] # not said: found out from the task
) -> Output:
    """Plan something for later, once or repeatedly."""
    if (jobs := call.context.jobs) is None:
        raise ToolError("Nothing can be scheduled in this chat.")
    touched = await call.touched_by()
    told, shown = await jobs.schedule(when, task, kind, call.approve, touched, call.asked)
    return Output(told, shown=shown)
