"""bash: a command in the chat's sandbox."""

import re
from typing import Annotated

from pydantic import Field

from agent.sandbox.sandbox import CommandResult
from agent.tools.tool import Call, Output, tool

READ_ONLY_GIT = re.compile(r"(/\.git/|\.lock').*Read-only file system")


@tool
async def bash(
    call: Call,
    command: str,
    seconds: Annotated[int, Field(description="time limit")] = 0,
) -> Output:
    """Run a bash command in the sandbox. Returns output and exit code."""
    result = await call.sandbox.run(
        command,
        seconds=seconds if seconds > 0 else None,
        output_bytes=call.output_limit,
        permit=call.host_permit(command),
        progress=call.progress,
    )
    foreign = bool(result.hosts) or await call.sandbox.files.has_foreign_text()
    return Output(rendered(result), ok=not result.exit_code, foreign=foreign)


def rendered(result: CommandResult) -> str:
    """The output, then a line for each thing to know: what was cut, why it stopped, the exit code."""
    lines = [result.output.rstrip("\n")] if result.output.strip("\n") else []
    if result.saved_path:
        lines.append(
            f"[The whole output is in {result.saved_path}; search it with grep or read_file.]"
        )
    if result.reason:
        lines.append(result.reason)
    if result.exit_code and READ_ONLY_GIT.search(result.output):
        lines.append("A git directory in /repos is read-only here: use git_commit.")
    if result.exit_code:
        lines.append(f"exit code: {result.exit_code}")
    return "\n".join(lines) or "(no output)"
