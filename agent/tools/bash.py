"""bash: a command in the chat's sandbox."""

import re
from functools import partial
from typing import Annotated

from pydantic import Field

from agent.sandbox.sandbox import CommandResult
from agent.tools.tool import Call, Output, tool

_GUARDED = re.compile(r"/\.git/.*Read-only file system")


@tool
async def bash(
    call: Call,
    command: str,
    seconds: Annotated[int, Field(description="time limit")] = 0,
) -> Output:
    """Run a bash command in the sandbox. Returns output and exit code."""
    ran = await call.context.sandbox.run(
        command,
        seconds=seconds if seconds > 0 else None,
        output_bytes=call.output_bytes,
        permit=partial(_permitted, call, command),
        progress=call.progress,
    )
    foreign = bool(ran.hosts) or await call.context.sandbox.files.has_foreign_text()
    return Output(told(ran), ok=not ran.exit_code, foreign=foreign)


async def _permitted(call: Call, command: str, host: str) -> None:
    await call.approve(f"Connect to {host}, for: {command}", scope=f"network:{host}", standing=True)


def told(ran: CommandResult) -> str:
    """The output, then a line for each thing to know: what was cut, why it stopped, the exit code."""
    lines = [ran.output.rstrip("\n")] if ran.output.strip("\n") else []
    if ran.saved_path:
        lines.append(
            f"[The whole output is in {ran.saved_path}; search it with grep or read_file.]"
        )
    if ran.reason:
        lines.append(ran.reason)
    if ran.exit_code and _GUARDED.search(ran.output):
        lines.append("A .git in /repos is read-only here: use git_commit.")
    if ran.exit_code:
        lines.append(f"exit code: {ran.exit_code}")
    return "\n".join(lines) or "(no output)"
