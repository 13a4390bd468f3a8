"""bash: a command in the chat's sandbox."""

import re
import time
from typing import Annotated

from pydantic import Field

from agent.sandbox.files import CLOCK_REALTIME_COARSE
from agent.sandbox.sandbox import CommandResult
from agent.shell.broker import Broker
from agent.tools.tool import Call, Output, tool

READ_ONLY_GIT = re.compile(r"(/\.git/|\.lock').*Read-only file system")

READ_ONLY_REPO = re.compile(r"Read-only file system")
WRITE_BY_TOOL = (
    "This chat holds text of strangers, so its commands cannot change /repos: write_file and edit_file "
    "can, when an owner allows it."
)


@tool
async def bash(
    call: Call, command: str, seconds: Annotated[int, Field(description="time limit")] = 0
) -> Output:
    """Run a bash command in the sandbox. Returns output and exit code."""
    sandbox = call.sandbox
    held = await sandbox.files.taints()
    repos = [f"repository {repo.name}" for repo in sandbox.repos_seen(command)]
    call.strangers.extend([*(taint.source for taint in held), *repos])
    touched = await call.touched_by()
    began = time.clock_gettime(CLOCK_REALTIME_COARSE)
    result = await sandbox.run(
        command,
        seconds=seconds if seconds > 0 else None,
        output_bytes=call.output_limit,
        permit=call.host_permit(command, held),
        progress=call.progress,
        strangers=[*repos, *filter(None, [touched])],
        write_repos=not touched,
        outflow=call.outflow(command),
        commands=Broker(call, held),
    )
    await call.budget.sent()
    if call.budget.counts("files"):
        await call.budget.settle({"files": await sandbox.files.count_changed(began)})
    call.strangers.extend(sorted(result.hosts))
    text = rendered(result)
    if touched and READ_ONLY_REPO.search(result.output):
        text += f"\n{WRITE_BY_TOOL}"
    return Output(text, ok=not result.exit_code)


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
