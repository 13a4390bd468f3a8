"""list_files and grep: both search inside the sandbox, by search.sh, with the tools of every Linux, and skip what
.gitignore names.

Globs become extended regular expressions.
"""

import re
from typing import Annotated

from pydantic import Field

from agent.errors import ToolError
from agent.sandbox.files import SandboxPath
from agent.sandbox.sandbox import bash_script
from agent.tools.tool import Call, Output, tool

PIECE = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^]/]*\]|\{[^{}/]*\}|.", re.DOTALL)
WILDCARDS = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def beneath(folder: str, pattern: str) -> str:
    """An expression for paths in `folder` that match `pattern`, and for `folder` itself."""
    body = expression(pattern)
    return f"^{escaped(folder)}($|/{body}$)" if folder else f"^{body}$"


def expression(pattern: str) -> str:
    """A glob as an expression. Without a slash it matches the file's own name, at any depth.

    A leading `./` limits it to the folder itself. Without a wildcard it also matches all files in a directory.
    """
    pattern, here = re.subn(r"^(\./)+", "", pattern.strip())
    if pattern.endswith("/"):
        pattern += "**"
    if pattern in ("", ".", "**", "**/*"):
        return ".*"
    anywhere = "" if here or "/" in pattern.replace("**/", "") else "(.*/)?"
    below = "" if is_wild(pattern) else "(/.*)?"
    return f"{anywhere}{translated(pattern)}{below}"


def is_wild(pattern: str) -> bool:
    return any(sign in pattern for sign in "*?[{")


def escaped(text: str) -> str:
    return re.sub(r"[.^$+*?()|\[\]{}\\]", r"\\\g<0>", text)


def translated(pattern: str) -> str:
    return "".join(piece_expression(piece) for piece in PIECE.findall(pattern))


def piece_expression(piece: str) -> str:
    if piece in WILDCARDS:
        return WILDCARDS[piece]
    if len(piece) > 1 and piece[0] == "{":
        return f"({'|'.join(translated(choice) for choice in piece[1:-1].split(','))})"
    if len(piece) > 1 and piece[0] == "[":
        return "[^" + piece[2:] if piece[1] == "!" else piece
    return escaped(piece)


MOST_LINES = 300
SECONDS = 30
QUESTION_MARKS = str.maketrans("\n␤", "??")  # for line breaks in a name: a glob matches them
ABSENT = 44  # exit code of search.sh


@tool
async def list_files(
    call: Call, pattern: str, path: Annotated[str, Field(description="folder to search")] = ""
) -> Output:
    """List files that match a glob, newest first, such as *.py or src/**."""
    place, glob = split_pattern(call, path, pattern)
    await call.reads(place)
    count, *names = await search(call, place, "newest", beneath(place.path, glob))
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
    kind, *matches = await search(call, place, "lines", beneath(place.path, glob), pattern)
    lines = [match.replace("\n", ":", 1).replace("\n", "␤") for match in matches]
    text = f"No line matches {pattern} in {place.name}."
    if lines:
        text = bounded(call, place, lines, len(lines), "or more lines; narrow it with path or glob")
    if kind == "-F":
        text += "\n[pattern is not a regular expression, so it was searched as plain text]"
    return Output(text)


def split_pattern(call: Call, path: str, pattern: str) -> tuple[SandboxPath, str]:
    """The folder to search and the pattern beneath it: a pattern may begin with /repos/NAME/."""
    if not path and f"{pattern}/".startswith(("/", "~/")):
        parts = pattern.split("/")
        plain = next((n for n, p in enumerate(parts) if is_wild(p)), len(parts) - 1)
        plain = max(plain, 1)
        path, pattern = "/".join(parts[:plain]), "./" + "/".join(parts[plain:])
    return call.sandbox.files.resolve(path), pattern


async def search(call: Call, place: SandboxPath, command: str, *arguments: str) -> list[str]:
    argv = [*bash_script("tools/search.sh"), command, place.top, place.path, *arguments]
    repos = await call.repos_shown([place.repo])
    result = await call.sandbox.run_internal(argv, seconds=SECONDS, repos=repos)
    if result.exit_code == ABSENT:
        raise ToolError(f"There is no file or folder {place.name}.")
    return result.output.split("\0")[:-1] or [""]


def bounded(call: Call, place: SandboxPath, lines: list[str], count: int, more: str) -> str:
    """Lines with full paths, as many as fit into the output, and how many more there are."""
    prefix = f"{place.top}/" if place.repo else ""
    left, shown = call.output_limit, []
    for line in lines[:MOST_LINES]:
        left -= len(prefix) + len(line.encode()) + 1
        if left < 0:
            break
        shown.append(prefix + line)
    if len(shown) < count:
        shown.append(f"[{count - len(shown)} {more}]")
    return "\n".join(shown)
