"""list_files and grep: both search inside the sandbox, by search.sh, with the tools of every Linux, and skip what
.gitignore names.

Globs become extended regular expressions.
"""

import re
from contextlib import suppress
from dataclasses import replace
from typing import Annotated
from unicodedata import normalize

from pydantic import Field

from agent.errors import ToolError
from agent.sandbox.bubblewrap import REPOS, WORKSPACE
from agent.sandbox.files import Files, SandboxPath, unquoted
from agent.sandbox.sandbox import bash_script
from agent.tools.files import SHORT_TEXT, in_received, read_text, shown_lines
from agent.tools.memory import elsewhere
from agent.tools.tool import Call, Output, tool

ALL_THERE = "All that stands there:"
PIECE = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^]/]*\]|\{[^{}/]*\}|.", re.DOTALL)
WILDCARDS = {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def beneath(folder: str, pattern: str) -> str:
    """An expression for paths in `folder` that match `pattern`, and for `folder` itself. The pattern may name the
    folder once more."""
    body = expression(pattern)
    if folder and pattern.startswith(f"{folder}/"):
        return f"^({escaped(folder)}/)?{body}$"
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
    return "".join(map(piece_expression, PIECE.findall(normalize("NFC", pattern))))


def piece_expression(piece: str) -> str:
    """A piece of a glob as an expression; a name may have the brackets themselves, as app/[id]/page.tsx has."""
    if piece in WILDCARDS:
        return WILDCARDS[piece]
    if len(piece) > 1 and piece[0] == "{":
        choices = (translated(choice) for choice in piece[1:-1].split(","))
        return f"({'|'.join(choices)}|{escaped(piece)})"
    if len(piece) > 1 and piece[0] == "[" and "[" not in piece[1:]:
        return f"({re.sub(r'^.!', '[^', piece)}|{escaped(piece)})"
    return escaped(piece) if piece.isascii() else f"({piece}|{normalize('NFD', piece)})"


MOST_LINES = 300
OTHERS = 20  # files that are named where none matches
SECONDS = 30
# Folders of the sandbox itself, which bash alone sees.
SYSTEM = re.compile(r"/(?:bin|boot|dev|etc|lib|lib64|proc|run|sbin|sys|usr|var)(?:/|$)")
QUESTION_MARKS = str.maketrans("\n␤", "??")  # for line breaks in a name: a glob matches them
ABSENT = 44  # exit code of search.sh


class AbsentPath(ToolError):
    """A path that is not there; `str` names the path."""


@tool
async def list_files(
    call: Call,
    pattern: Annotated[str, Field(description="glob")],
    path: Annotated[str, Field(description="folder to search")] = "",
) -> Output:
    """List the files whose names match a glob, newest first."""
    place, glob = await split_pattern(call, path, pattern)
    await call.reads(place)
    count, *names = await search(call, place, "newest", beneath(place.path, glob))
    told = ""
    if not names:
        told = f"No file matches {pattern} in {place.name}."
        count, *names = await search(call, place, "newest", beneath(place.path, ""))
        if not names:
            return Output(told, found=False)
        told = f"{told} There are others: "
    files = [(int(size), name) for size, name in (entry.split("\t", 1) for entry in names)]
    biggest = max(files)[0] if len(files) == int(count) > 2 else -1
    if sum(size == biggest for size, _ in files) > 1:
        biggest = -1
    lines = [sized(place, *file, biggest) for file in files[: OTHERS if told else None]]
    shown = bounded(call, lines, int(count), "files more; use a narrower pattern")
    return Output(f"{told}{counted(int(count), 'file')}:\n{shown}")


def sized(place: SandboxPath, size: int, name: str, biggest: int) -> str:
    """A file's line; small models find the biggest of a list, or an empty one, only where it is named."""
    told = "bytes, the biggest" if size == biggest else "bytes" if size else "bytes, empty"
    return f"{in_full(place, name.translate(QUESTION_MARKS))} ({size} {told})"


@tool
async def grep(
    call: Call,
    pattern: str,
    path: Annotated[str, Field(description="file or folder")] = "",
    glob: Annotated[str, Field(description="only these files")] = "",
) -> Output:
    """Search inside files for a regular expression."""
    if not pattern:
        raise ToolError("pattern is empty.")
    path = await in_received(call.sandbox.files, path)
    try:
        found = await grep_in(call, pattern, path, glob)
    except AbsentPath as absent:
        found = await grep_in(call, pattern, "", "")
        if found.found:
            return replace(found, text=f"{absent} In other files:\n{found.text}")
        if more := await elsewhere(call, plain_words(pattern)):
            return Output(f"{absent} {more}")
        raise
    everywhere = path.strip("/") in ("", ".", WORKSPACE.strip("/"))
    if not found.found and everywhere and (more := await elsewhere(call, plain_words(pattern))):
        return Output(f"{found.text}\n{more}")
    if not (found.found or everywhere):
        with suppress(ToolError):  # no text file
            if len(text := await read_text(call.sandbox.files, path)) <= SHORT_TEXT:
                shown = shown_lines(text, path, 1, 0, call.output_limit)
                return Output(f"{found.text} {ALL_THERE}\n{shown}")
    return found


def plain_words(pattern: str) -> str:
    """The words of a regular expression, without its special characters."""
    return " ".join(re.findall(r"\w+", re.sub(r"\\[A-Za-z]", " ", pattern)))


BASIC = re.compile(r"\\([<>])|\\([|(){}+?])|([|(){}+?])|\\.")


def extended(sign: re.Match[str]) -> str:
    r"""A sign of a basic expression (a\|b) in an extended one."""
    return r"\b" if sign[1] else sign[2] or (f"\\{sign[3]}" if sign[3] else sign[0])


async def grep_in(call: Call, pattern: str, path: str, glob: str) -> Output:
    """The matching lines below a path. Raises AbsentPath where there is nothing at it."""
    place, glob = await split_pattern(call, path, glob)
    await call.reads(place)
    wider = [(glob, pattern, ""), (glob, f"(?i){pattern}", "In another case, ")]
    if "\\" in pattern:
        wider.insert(1, (glob, BASIC.sub(extended, pattern), "As a basic expression, "))
    if glob:
        wider.append(("", f"(?i){pattern}", f"No line in {glob}; in other files "))
    for files, sought, told in wider:  # noqa: B007 - the last one's is told
        kind, *matches = await search(call, place, "lines", beneath(place.path, files), sought)
        if matches:
            break
    lines = [match.replace("\n", ":", 1).replace("\n", "␤") for match in matches]
    text = f"No line matches {pattern} in {place.name}."
    if lines:
        lines = [in_full(place, line) for line in lines]
        shown = bounded(call, lines, len(lines), "or more lines; narrow it with path or glob")
        more = " or more" if len(lines) > MOST_LINES else ""
        text = f"{told}{counted(min(len(lines), MOST_LINES), 'line')}{more}:\n{shown}"
    if kind == "-F":
        text += "\n[pattern is not a regular expression, so it was searched as plain text]"
    return Output(text, found=bool(lines))


async def split_pattern(call: Call, path: str, pattern: str) -> tuple[SandboxPath, str]:
    """The folder to search and the pattern beneath it: a pattern may begin with /repos/NAME/, and stand as the path."""
    if "*" in path:
        path, pattern = "", path
    pattern = unquoted(pattern)
    if not path and pattern.startswith("/"):
        parts = pattern.split("/")
        plain = next((n for n, p in enumerate(parts) if is_wild(p)), len(parts) - 1)
        plain = max(plain, 1)
        path, pattern = "/".join(parts[:plain]), "./" + "/".join(parts[plain:])
    return await existing(call.sandbox.files, path), pattern


async def existing(files: Files, path: str) -> SandboxPath:
    """The folder; of a made-up one outside (/home/user/notes) the end that does exist (notes), at last the workspace."""
    asked, place = path, files.resolve(path, reading=True)
    while path.startswith("/") and not f"{path}/".startswith((f"{WORKSPACE}/", f"{REPOS}/")):
        try:
            await files.names(path)
        except ToolError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                break
            path = path[path.find("/", 1) :] if "/" in path[1:] else ""
            place = files.resolve(path, reading=True)
        else:
            break
    if not path and SYSTEM.match(asked):
        raise ToolError(f"{asked} is not in {WORKSPACE}. Use bash: ls, grep.")
    return place


async def search(call: Call, place: SandboxPath, command: str, *arguments: str) -> list[str]:
    argv = [*bash_script("tools/search.sh"), command, place.top, place.path, *arguments]
    repos = await call.repos_shown([place.repo])
    result = await call.sandbox.run_internal(argv, seconds=SECONDS, repos=repos)
    if result.exit_code == ABSENT:
        raise AbsentPath(f"There is no file or folder {place.name}.")
    return result.output.split("\0")[:-1] or [""]


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def in_full(place: SandboxPath, line: str) -> str:
    """A line that begins with a path: a path in a repository of the host is given in full."""
    return f"{place.top}/{line}" if place.repo else line


def bounded(call: Call, lines: list[str], count: int, more: str) -> str:
    """Keep as many lines as fit into the output, and say how many more there are."""
    left, shown = call.output_limit, []
    for line in lines[:MOST_LINES]:
        left -= len(line.encode()) + 1
        if left < 0:
            break
        shown.append(line)
    if len(shown) < count:
        shown.append(f"[{count - len(shown)} {more}]")
    return "\n".join(shown)
