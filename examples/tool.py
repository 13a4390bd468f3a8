"""A tool of one's own: copy it to agent/tools/ and name it in [agent] tools."""

from typing import Annotated

from pydantic import Field

from agent.errors import ToolError
from agent.tools.tool import Call, Output, tool


@tool
async def world_time(
    call: Call, zone: Annotated[str, Field(description="such as Asia/Tokyo")]
) -> Output:
    """Tell the time in a time zone."""
    ran = await call.sandbox.run(
        ["/usr/bin/env", f"TZ={zone}", "/usr/bin/date"], output_bytes=call.output_bytes
    )
    if ran.exit_code:
        raise ToolError(f"{zone} is not known here. Give an IANA name such as Asia/Tokyo.")
    return Output(ran.output.strip())
