"""read_file, write_file, edit_file: text in the workspace and the repositories."""

import difflib
import posixpath
from itertools import islice

from agent.errors import ToolError
from agent.sandbox.files import Files
from agent.sandbox.output_buffer import clean
from agent.tools.tool import Call, Output, tool

LARGEST = 8 << 20  # bytes of a file that is read whole


@tool
async def read_file(call: Call, path: str, first: int = 1, last: int = 0) -> Output:
    """Read a text file, or its lines first to last."""
    text = await _text(call, path)
    lines = text.splitlines(keepends=True)
    if not lines:
        return Output(f"{path} is empty.")
    start, end = max(first, 1), last if last > 0 else len(lines)
    if start > len(lines):
        raise ToolError(f"{path} has only {len(lines)} lines.")
    shown = _fitting(lines[start - 1 : end], call.context.sandbox.output_limit(call.output_bytes))
    text = clean("".join(shown)).rstrip("\n") or "(blank)"
    until = start + len(shown) - 1
    if until < min(end, len(lines)):
        text += f"\n[lines {start} to {until} of {len(lines)}; read on with first={until + 1}]"
    return Output(text, foreign=await call.context.sandbox.files.has_foreign_text())


@tool
async def write_file(call: Call, path: str, content: str) -> Output:
    """Create or replace a file."""
    raw = content.encode()
    new = await call.context.sandbox.files.write(path, raw)
    name = call.context.sandbox.files.resolve(path).name
    return Output(f"{'created' if new else 'replaced'} {name}, {len(raw)} bytes")


@tool
async def edit_file(call: Call, path: str, old: str, new: str) -> Output:
    """Replace old by new in a file. old must be copied exactly and occur once."""
    before = await _text(call, path)
    after = _replaced(before, old, new, path)
    await call.context.sandbox.files.write(path, after.encode())
    diff = _diff(before, after, path)
    return Output(f"edited {path}\n{_changes(diff)}", shown=diff)


async def _text(call: Call, path: str) -> str:
    files = call.context.sandbox.files
    try:
        file = await files.open(path)
    except ToolError as error:
        near = await _nearest(files, path) if _is_missing(error) else ""
        raise ToolError(f"{error}{near}") from None
    with file:
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise ToolError(f"{path} has more than {LARGEST >> 20} MiB. Use bash: head, tail, grep.")
    if b"\0" in raw[:8192]:
        raise ToolError(f"{path} is a binary file. Use bash: file, strings, xxd.")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{path} is not UTF-8 text (byte {error.start}). Convert it with bash: iconv."
        ) from None


def _is_missing(error: ToolError) -> bool:
    return isinstance(error.__cause__, FileNotFoundError)


async def _nearest(files: Files, path: str) -> str:
    """Names like the one that was not there, from its directory or else the workspace."""
    parent, name = posixpath.split(path.rstrip("/"))
    for place in dict.fromkeys((parent, "")):
        try:
            names = await files.names(place)
        except ToolError:
            continue
        folded = {each.casefold(): each for each in names}
        if near := difflib.get_close_matches(name.casefold(), folded, 3, 0.5):
            paths = (posixpath.join(place, folded[each]) for each in near)
            return f" Near names are: {', '.join(paths)}."
    return ""


def _fitting(lines: list[str], room: int) -> list[str]:
    """As many whole lines as fit, and at least a piece of the first."""
    used = 0
    for count, line in enumerate(lines):
        used += len(line.encode())
        if used > room:
            return lines[:count] or [line.encode()[:room].decode("utf-8", "ignore")]
    return lines


def _replaced(text: str, old: str, new: str, path: str) -> str:
    if not old:
        raise ToolError(
            "old is empty. Copy the lines to replace exactly; write_file makes a new file."
        )
    if old == new:
        raise ToolError("old and new are the same, so nothing would change.")
    if old not in text and "\r\n" in text:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    count = text.count(old)
    if count == 1:
        return text.replace(old, new)
    if count:
        raise ToolError(_ambiguous(text, old, count, path))
    raise ToolError(_absent(text, old, path))


def _ambiguous(text: str, old: str, count: int, path: str) -> str:
    places, at = [], -1
    for _ in range(min(count, 5)):
        at = text.index(old, at + 1)
        places.append(str(text.count("\n", 0, at) + 1))
    return (
        f"old occurs {count} times in {path}, at lines {', '.join(places)}. "
        "Copy more of the lines around the one you mean."
    )


def _absent(text: str, old: str, path: str) -> str:
    lines, sought = text.splitlines(), old.strip("\n").splitlines() or [old]
    best = difflib.get_close_matches(sought[0], lines[:20_000], 1, 0.4)
    if not best:
        return f"old does not occur in {path}. Read the file and copy the lines exactly."
    start = lines.index(best[0])
    near = "\n".join(lines[start : start + min(len(sought), 12)])
    return f"old does not occur in {path}. The nearest lines, from line {start + 1}, are:\n{near}"


def _diff(before: str, after: str, path: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{path}", f"b/{path}", lineterm="", n=2
    )
    return clean("\n".join(islice(lines, 400)))


def _changes(diff: str) -> str:
    """What the model is told: the changed lines alone, a few of them."""
    changed = [line for line in diff.splitlines()[2:] if line.startswith(("+", "-"))]
    more = [f"[... {len(changed) - 20} more]"] if len(changed) > 20 else []
    return "\n".join(changed[:20] + more)
