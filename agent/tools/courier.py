"""send_file: a file of the workspace, or of a repository, to the person."""

import os
import posixpath

from agent.errors import ToolError
from agent.tool import Call, Output, tool


@tool
async def send_file(call: Call, path: str, caption: str = "") -> Output:
    """Send a file to the person."""
    desk = call.desk
    if desk.courier is None:
        raise ToolError("Files cannot be sent in this chat.")
    spot = desk.sandbox.files.spot(path)
    with await desk.sandbox.files.open(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if spot.repo:
            await call.approve(f"Send {spot.name} ({size:,} bytes)", scope=f"send:{spot.repo}")
        await desk.courier.send_file(file, posixpath.basename(spot.path), caption)
    return Output(f"sent {spot.name}, {size:,} bytes")
