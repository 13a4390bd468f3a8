"""list_files and grep: both look inside the sandbox, with what every Linux has, past .gitignore."""

from typing import Annotated

from pydantic import Field

from agent.errors import ToolError
from agent.sandbox.files import SandboxPath
from agent.sandbox.rootfs import EMPTY_GIT
from agent.tools.glob import beneath, is_wild
from agent.tools.tool import Call, Output, tool

MOST_FILES = 200
MOST_LINES = 300
LONGEST_LINE = 300  # bytes
SECONDS = 30
QUESTION_MARKS = str.maketrans("\n␤", "??")  # for the line breaks in a name, as a glob has it
ABSENT = 44  # exit code of the script

# Arguments: 1 top directory, 2 where to look beneath it, 3 expression for paths.
FILES = rf"""
cd -- "$1" && [ -e "./$2" ] || exit {ABSENT}
export GIT_DIR={EMPTY_GIT} GIT_WORK_TREE="$1"
find -H "./$2" -name .git -prune -o -type f -print0 |
  sed -z 's|^\./*||; s|//*|/|g' | grep -zE -e "$3" | sort -z > /tmp/all
if [ -n "$2" ] && git check-ignore -q --no-index -- "$2"; then
  cp /tmp/all /tmp/files
else
  git check-ignore -z --no-index --stdin < /tmp/all | sort -z > /tmp/ignored
  comm -z -23 /tmp/all /tmp/ignored > /tmp/files
fi
"""

NEWEST = rf"""{FILES}
printf '%s\0' "$(tr -cd '\0' < /tmp/files | wc -c)"
xargs -0 -r stat --printf='%.9Y\t%n\0' -- < /tmp/files |
  sort -z -k1,1nr | head -z -n {MOST_FILES} | cut -z -f2-
"""

# Argument 4: what to find; as plain text when it is no regular expression. A match is a field:
# the name, a line feed, the line. No name with a line feed in it can pose as another file's match.
LINES = rf"""{FILES}
kind=-P
grep -qP -e "$4" /dev/null 2>/dev/null
[ $? -lt 2 ] || kind=-F
printf '%s\0' "$kind"
sed -z '/\n/d' /tmp/files | xargs -0 -r grep -nHIsZ --color=never $kind -e "$4" -- |
  tr '\n\0' '\0\n' | cut -z -b 1-{LONGEST_LINE} | head -z -n {MOST_LINES + 1}
"""


@tool
async def list_files(
    call: Call,
    pattern: str,
    path: Annotated[str, Field(description="folder to search")] = "",
) -> Output:
    """List files that match a glob, newest first, such as *.py or src/**."""
    place, glob = split_pattern(call, path, pattern)
    await call.reads(place)
    count, *names = await search(call, place, NEWEST, beneath(place.path, glob))
    names = [name.translate(QUESTION_MARKS) for name in names]
    if not names:
        return Output(f"No file matches {pattern} in {place.name}.")
    return Output(bounded(call, place, names, int(count), "files more; use a narrower pattern"))


@tool
async def grep(
    call: Call,
    pattern: str,
    path: Annotated[str, Field(description="file or folder")] = "",
    glob: Annotated[str, Field(description="only these files")] = "",
) -> Output:
    """Search file contents by regular expression."""
    if not pattern:
        raise ToolError("pattern is empty.")
    place, glob = split_pattern(call, path, glob)
    await call.reads(place)
    kind, *matches = await search(call, place, LINES, beneath(place.path, glob), pattern)
    lines = [match.replace("\n", ":", 1).replace("\n", "␤") for match in matches]
    text = f"No line matches {pattern} in {place.name}."
    if lines:
        text = bounded(call, place, lines, len(lines), "or more lines; narrow it with path or glob")
    if kind == "-F":
        text += "\n[pattern is not a regular expression, so it was searched as plain text]"
    return Output(text)


def split_pattern(call: Call, path: str, pattern: str) -> tuple[SandboxPath, str]:
    """Where to look, and the pattern beneath it: a pattern may begin with /repos/NAME/."""
    if not path and pattern.startswith("/"):
        parts = pattern.split("/")
        plain = next((n for n, p in enumerate(parts) if is_wild(p)), len(parts) - 1)
        path, pattern = "/".join(parts[:plain]), "./" + "/".join(parts[plain:])
    return call.sandbox.files.resolve(path), pattern


async def search(call: Call, place: SandboxPath, script: str, *arguments: str) -> list[str]:
    result = await call.sandbox.run_internal(
        ["/bin/bash", "-c", script, "search", place.top, place.path, *arguments], seconds=SECONDS
    )
    if result.exit_code == ABSENT:
        raise ToolError(f"There is no file or folder {place.name}.")
    return result.output.split("\0")[:-1] or [""]


def bounded(call: Call, place: SandboxPath, lines: list[str], count: int, more: str) -> str:
    """Lines with full paths, as many as the output may hold."""
    prefix = f"{place.top}/" if place.repo else ""
    left, shown = call.output_limit, []
    for line in lines[: max(MOST_FILES, MOST_LINES)]:
        left -= len(prefix) + len(line.encode()) + 1
        if left < 0:
            break
        shown.append(prefix + line)
    if len(shown) < count:
        shown.append(f"[{count - len(shown)} {more}]")
    return "\n".join(shown)
