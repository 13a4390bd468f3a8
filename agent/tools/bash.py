"""bash: a command in the chat's sandbox."""

import re
import time
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from agent.sandbox.bubblewrap import REPOS
from agent.sandbox.files import CLOCK_REALTIME_COARSE, WEB
from agent.sandbox.sandbox import CommandResult
from agent.shell.broker import Broker
from agent.tools.tool import Call, Output, tool

DOWNLOAD = re.compile(r"\b(?:curl|wget)\b.*https?://(?!localhost|127\.|\[::1)", re.DOTALL)
NO_OUTPUT = "(done, no output)"
READ_ONLY_GIT = re.compile(r"(/\.git/|\.lock').*Read-only file system")
NO_REPOSITORY = re.compile(r"fatal: not a git repository")
NO_HARDWARE = re.compile(r"(?<![\w./-])/sys/|/proc/bus/|/dev/mem\b|dmidecode|lspci|lsusb")
HARDWARE = "The machine's hardware is not shown here: cat /host.txt tells of it."
SPACES_ONLY = re.compile(
    r"\b(?:awk (?!.*(?:-F|\bFS\b))[^|]*\$[1-9]|sort (?![^|]*(?:-\w*t|--field))[^|]*-\w*k ?[2-9])[^|]*\.csv\b",
    re.DOTALL,
)
CALCULATOR_ERROR = re.compile(r"(?:\(standard_in\) \d+: .*\s*)+")  # bc ends with 0 after it
DIFFERS = re.compile(r"\s*(?:diff|cmp)\b[^|;&]*")
NO_SCRIPT = re.compile(r"can't open file '(?:/workspace/)?([^']+)'.*No such file")
MAKE_IT = "There is no {name}: where it is to be made, write_file makes it."
BY_COMMA = (
    "These lines were split at blanks. The columns of a CSV file are split by awk -F, or sort -t,"
)
READ_ONLY_REPO = re.compile(r"Read-only file system")
NAME_REPOS = (
    "Repositories that others write to are there for a command that names /repos itself: "
    "ls /repos; ./script"
)
WRITE_BY_TOOL = (
    "This chat holds text of strangers, so its commands cannot change /repos: write_file and edit_file "
    "can, when an owner allows it."
)


@tool
async def bash(
    call: Call, command: str, seconds: Annotated[int, Field(description="time limit")] = 0
) -> Output:
    """Run a shell command: programs, scripts, disk space, counting, sorting, moving, renaming, deleting."""
    result, shown = await run_command(call, command, seconds=seconds)
    text = rendered(result)
    if READ_ONLY_REPO.search(result.output) and await call.touched_by():
        text += f"\n{WRITE_BY_TOOL}"
    if shown < len(call.sandbox.config.repos) and f"{REPOS}/" in result.output:
        text += f"\n{NAME_REPOS}"
    if result.exit_code and NO_REPOSITORY.search(result.output):
        folders = sorted(path.parent.name for path in call.sandbox.workspace.glob("*/.git"))
        text += f"\nFolders with a repository: {', '.join(folders[:8])}." if folders else ""
    blanks = not result.exit_code and SPACES_ONLY.search(command)
    if blanks:
        text += f"\n{BY_COMMA}"
    if result.exit_code and NO_HARDWARE.search(result.output):
        text += f"\n{HARDWARE}"
    if result.exit_code and (absent := NO_SCRIPT.search(result.output)):
        text += f"\n{MAKE_IT.format(name=absent[1])}"
    browser = call.context.browser
    unread = (
        browser and browser.reading != "never" and not result.hosts and DOWNLOAD.search(command)
    )
    if unread:
        text += f"\nNo page was reached. {WEB}"
    differs = result.exit_code == 1 and DIFFERS.fullmatch(command)
    if differs:
        text += " (they differ)"
    failed = result.exit_code or CALCULATOR_ERROR.fullmatch(result.output)
    return Output(text, ok=bool(differs) or not failed, found=not (unread or blanks))


async def run_command(
    call: Call,
    command: str,
    *,
    seconds: int = 0,
    script: Sequence[str] = (),
    whole: bool = False,
    acting: bool = True,
) -> tuple[CommandResult, int]:
    """Run a command in the chat's sandbox with what the chat may reach; its result, and how many repositories it
    saw. `script`: what runs in its place, and does what the command names. `whole`: the output is not cut. Not `acting`: no
    file of the chat can act in it."""
    sandbox = call.sandbox
    held = await sandbox.files.taints()
    named = sandbox.repos_seen(command)
    repos = [repo.source for repo in named]
    call.strangers.extend([*(taint.source for taint in held), *repos])
    shown = await call.repos_shown([repo.name for repo in named])
    touched = await call.touched_by()
    began = time.clock_gettime(CLOCK_REALTIME_COARSE)
    result = await sandbox.run(
        script or command,
        seconds=seconds if seconds > 0 else None,
        output_bytes=None if whole else call.output_limit,
        permit=call.host_permit(command, held if acting else ()),
        progress=call.progress,
        strangers=[*repos, *filter(None, [touched])],
        write_repos=not touched,
        repos=shown,
        outflow=call.outflow(command),
        commands=Broker(call, held),
        whole=whole,
    )
    await call.budget.sent()
    if call.budget.counts("files"):
        await call.budget.settle({"files": await sandbox.files.count_changed(began)})
    call.strangers.extend(sorted(result.hosts))
    return result, len(shown)


def rendered(result: CommandResult) -> str:
    """The output, then lines about it: what was cut, why it stopped, the exit code."""
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
    return "\n".join(lines) or NO_OUTPUT
