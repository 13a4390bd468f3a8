"""read_file, write_file, edit_file: text in the workspace and the repositories."""

import asyncio
import difflib
import posixpath
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import BinaryIO
from unicodedata import normalize

from agent.errors import ToolError
from agent.nearest import nearest
from agent.sandbox.bubblewrap import LISTING, WORKSPACE
from agent.sandbox.files import RECEIVED, Files
from agent.sandbox.output_buffer import STRAY_BREAKS, clean
from agent.shell.registry import listing
from agent.tools.tool import Call, Output, tool

MOST_BYTES = 8 << 20  # of a file that is read whole
MOST_CHANGES = 20  # changed lines that the model is told of
CONTEXT = 2  # lines around a change that are shown
MOST_COMPARED = 400  # lines; more are all shown as removed and added
MOST_SHOWN = 400  # lines of a change
LINE_CHARACTERS = 2000  # of each of these lines
MOST_SOUGHT = 20_000  # lines among which the nearest is sought
SHORT_TEXT = 2000  # characters
LINES_NAMED = 5  # at which a text occurs
MOST_REPLACED = 1 << 18  # characters
# Characters that are searched or split at once. No other thread runs meanwhile: the event loop waited 36 ms
# for each turn while 8 MiB were searched at once, and 1.6 ms with these pieces.
PIECE = 1 << 16
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
LINE_END = r"\r?\n"
NEAREST_SECONDS = 0.5  # in a thread
NEAR_CHARACTERS = 1000  # of each near line


@tool
async def read_file(call: Call, path: str, first: int = 1, last: int = 0) -> Output:
    """Read a text file, or its lines first to last."""
    if posixpath.normpath(path) == LISTING:
        text = listing(call.context)
    else:
        path = await in_received(call.sandbox.files, await as_spelled(call.sandbox.files, path))
        await call.reads(call.sandbox.files.place(path))
        if path.lower().endswith(PICTURES):
            return await see(call, path)
        text = await read_text(call.sandbox.files, path)
    return Output(await asyncio.to_thread(shown_lines, text, path, first, last, call.output_limit))


async def see(call: Call, path: str) -> Output:
    """A picture, shown to a model that sees."""
    from agent import pictures

    vision = await call.context.vision() if call.context.vision else None
    if vision is None:
        raise ToolError(
            f"{path} is a picture, and this model cannot see. Do not guess what it shows: say so. "
            "The person can change the model by /model."
        )
    with await call.sandbox.files.open(path) as file:
        content = await asyncio.to_thread(file.read, pictures.MOST_BYTES + 1)
    try:
        url = await pictures.shown(content, vision)
    except ToolError as error:
        raise ToolError(f"{path} cannot be shown: {error}.") from None
    return Output(f"{path} is a picture; it is shown below.", images=(url,))


@tool
async def write_file(call: Call, path: str, content: str, append: bool = False) -> Output:
    """Create a file, replace all of it, or with append add to its end."""
    path = await as_spelled(call.sandbox.files, path)
    place = call.sandbox.files.resolve(path)
    before = await ending_of(call, path) if append else ""
    content = ended_as(before, len(before), content)
    await call.writes(place, content)
    raw = (before + content).encode()
    new = await call.sandbox.files.write(path, raw)
    did = "created" if new else "added to the end of" if append else "replaced"
    return Output(f"{did} {place.name}, {len(raw)} bytes")


async def ending_of(call: Call, path: str) -> str:
    """A file's text, with a line break behind its last line; "" where there is none yet."""
    await call.reads(call.sandbox.files.place(path))
    try:
        file = await call.sandbox.files.open(path)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return ""
        raise
    text = await asyncio.to_thread(decoded, file, path)
    return text + ended_as(
        text, len(text), "\n" * (text[-1:] not in ("\n" if "\n" in text else "\r\n"))
    )


@tool
async def edit_file(call: Call, path: str, old: str, new: str) -> Output:
    """Change text inside a file: old, copied exactly and occurring once, becomes new."""
    path = await in_received(call.sandbox.files, await as_spelled(call.sandbox.files, path))
    await call.reads(call.sandbox.files.place(path))
    text = await read_text(call.sandbox.files, path)
    content, question, diff = await asyncio.to_thread(edited, text, old, new, path)
    await call.writes(call.sandbox.files.resolve(path), question)
    await call.sandbox.files.write(path, content)
    changed = [line for line in diff.split("\n")[2:] if line.startswith(("+", "-"))]
    if len(changed) > MOST_CHANGES:
        changed[MOST_CHANGES:] = [f"[... {len(changed) - MOST_CHANGES} more]"]
    return Output("\n".join([f"edited {path}", *changed]), shown=diff)


async def as_spelled(files: Files, path: str) -> str:
    """Return the path as its file is spelled: ü may be one character or, from a Mac, u and two points."""
    parent, name = posixpath.split(path)
    if name.isascii():
        return path
    with suppress(ToolError):
        same = [
            n for n in await files.names(parent) if normalize("NFC", n) == normalize("NFC", name)
        ]
        if same and name not in same:
            return posixpath.join(parent, same[0])
    return path


async def in_received(files: Files, path: str) -> str:
    """The path of a file that came with a message, where only its name is given and no other file has that name."""
    place = files.place(path)
    if place is None or place.repo or "/" in place.path:
        return path
    with suppress(ToolError):
        if place.path in await files.names(RECEIVED) and place.path not in await files.names(""):
            return posixpath.join(RECEIVED, place.path)
    return path


async def read_text(files: Files, path: str) -> str:
    """The content of a text file; ToolError for anything else, with similar names where it does not exist.

    Of a made-up path (/home/user/notes/a.txt) the end counts that does exist (notes/a.txt), if that too is in
    the workspace: the call is marked for what it reads there alone.
    """
    try:
        file = await files.open(path)
    except ToolError as error:
        missing = isinstance(error.__cause__, FileNotFoundError)
        if missing and made_up(files, path) and path.count("/") > 1:
            rest = path[path.index("/", 1) :]
            with suppress(ToolError):
                if (place := files.place(rest)) is None or not place.repo:
                    return await read_text(files, rest)
        near = await near_names(files, path) if missing else ""
        raise ToolError(f"{error}{near}") from None
    return await asyncio.to_thread(decoded, file, path)


def made_up(files: Files, path: str) -> bool:
    """Whether an absolute path names no place that there is, and is therefore read as one in the workspace."""
    full = posixpath.normpath(path)
    place = files.place(path) if full.startswith("/") else None
    return place is not None and not place.repo and not f"{full}/".startswith(f"{WORKSPACE}/")


def decoded(file: BinaryIO, path: str) -> str:
    with file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ToolError(f"{path} has more than {MOST_BYTES >> 20} MiB. Use bash: head, tail, grep.")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolError(f"{path} is UTF-16 text. Use bash: iconv -f utf-16 -t utf-8.")
    if b"\0" in (head := raw[:8192]):
        from agent.documents.encodings import decoded as guessed  # not loaded by a plain turn

        if "\0" not in guessed(head)[0]:
            raise ToolError(f"{path} is UTF-16 text. Use bash: iconv -f utf-16le -t utf-8.")
        raise ToolError(f"{path} is a binary file. Use bash: file, strings, xxd.")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{path} is not UTF-8 text (byte {error.start}). Convert it with bash: iconv."
        ) from None


async def near_names(files: Files, path: str) -> str:
    """Names similar to a missing one, from its directory or, for a path of the workspace, else from there."""
    parent, name = posixpath.split(path.rstrip("/"))
    sought = files.place(path)
    # Names in the workspace may be a stranger's, and only a call that reads there is marked for them.
    of_workspace = ["", RECEIVED] if sought and not sought.repo else []
    for place in dict.fromkeys((parent, *of_workspace)):
        try:
            names = await files.names(place)
        except ToolError:
            continue
        folded = {each.casefold(): each for each in names}
        if near := await asyncio.to_thread(
            nearest, name.casefold(), list(folded), 3, 0.5, NEAREST_SECONDS
        ):
            paths = (posixpath.join(place, folded[each]) for each in near)
            return f" Near names are: {', '.join(paths)}."
    return ""


def split_lines(text: str, *, keepends: bool = False) -> list[str]:
    """Split a text into lines as grep, git and editors count them: a line feed ends each, nothing else does."""
    lines, at = list[str](), 0
    while at < len(text):
        end = text.find("\n", at + PIECE) + 1 or len(text)
        split = text[at:end].removesuffix("\n").split("\n")
        lines += [f"{line}\n" for line in split] if keepends else split
        at = end
    if keepends and text and not text.endswith("\n"):
        lines[-1] = lines[-1][:-1]
    return lines


def shown_lines(text: str, path: str, first: int, last: int, limit: int) -> str:
    """Lines `first` to `last`, as many as fit into `limit` bytes; ToolError where there are none.

    A short text is shown whole where its first line alone is asked for, or line 0: small models fill in both numbers.
    """
    lines = split_lines(text, keepends=True)
    if not lines:
        return f"{path} is empty."
    start, end = max(first, 1), last if last > 0 else len(lines)
    if (first < 1 or start == end == 1) and len(text) <= SHORT_TEXT:
        end = len(lines)
    if start > len(lines):
        raise ToolError(f"{path} has only {len(lines)} lines.")
    fitting = lines_within(lines[start - 1 : end], limit)
    shown = clean(STRAY_BREAKS.sub("␤", "".join(fitting))).rstrip("\n") or "(blank)"
    until = start + len(fitting) - 1
    if until < min(end, len(lines)):
        shown += f"\n[lines {start} to {until} of {len(lines)}; read on with first={until + 1}]"
    return shown


def lines_within(lines: list[str], limit: int) -> list[str]:
    """Return as many whole lines as fit into `limit` bytes, and at least a piece of the first."""
    used = 0
    for count, line in enumerate(lines):
        used += len(line.encode())
        if used > limit:
            return lines[:count] or [line.encode()[:limit].decode("utf-8", "ignore")]
    return lines


def edited(text: str, old: str, new: str, path: str) -> tuple[bytes, str, str]:
    """The file with `new` in place of `old`, the change as an owner is shown it, and its diff."""
    at, old, new = matching_text(text, old, new, path)
    lines = (
        line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]}…"
        for line in islice(changed_lines(text, at, old, new), MOST_SHOWN)
    )
    diff = clean(STRAY_BREAKS.sub("␤", "\n".join([f"--- a/{path}", f"+++ b/{path}", *lines, ""])))
    content = text[:at] + new + text[at + len(old) :]
    return content.encode(), f"{old}\n\n↓\n\n{new}", diff.removesuffix("\n")


def occurrences(text: str, old: str) -> Iterator[int]:
    """Yield the positions of `old` in the text, which do not overlap."""
    at = 0
    while at < len(text):
        found = text.find(old, at, at + PIECE + len(old) - 1)
        if found >= 0:
            yield found
        at = at + PIECE if found < 0 else found + len(old)


def matching_text(text: str, old: str, new: str, path: str) -> tuple[int, str, str]:
    """The position of `old`, and both texts with the file's line ends; ToolError unless `old` occurs once."""
    if not old:
        raise ToolError(
            "old is empty. Copy the lines to replace exactly; write_file makes a new file."
        )
    if old == new:
        raise ToolError("old and new are the same, so nothing would change.")
    if len(old) > MOST_REPLACED:
        raise ToolError(
            f"old has more than {MOST_REPLACED} characters. Copy the lines around the change alone; "
            "write_file replaces a whole file."
        )
    for form in dict.fromkeys((old, *(re.sub(LINE_END, end, old) for end in ("\r\n", "\n", "\r")))):
        places = occurrences(text, form)
        if found := list(islice(places, LINES_NAMED)):
            old = form
            break
    if not found and "\r\n" in text:  # of lines that end in both ways
        either = re.compile(LINE_END.join(map(re.escape, re.split(LINE_END, old))))
        matches = [*islice(either.finditer(text), LINES_NAMED)]
        if matches:
            found, old = [match.start() for match in matches], matches[0][0]
    if not found:
        raise ToolError(not_found(text, old, path))
    if len(found) > 1:
        count = len(found) + sum(1 for _ in places)
        lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in found)
        raise ToolError(
            f"old occurs {count} times in {path}, at lines {lines}. "
            "Copy more of the lines around the one you mean."
        )
    at = found[0]
    if old.startswith("\n") and text[at - 1 : at] == "\r":  # the rest of a line end
        at, old = at - 1, f"\r{old}"
    return at, old, ended_as(text, at, new)


def ended_as(text: str, at: int, new: str) -> str:
    """`new` with the line ends of the line at that character, or else of the one before it."""
    if (end := text.find("\n", at)) < 0 and (end := text.rfind("\n", 0, at)) < 0:
        return re.sub(LINE_END, "\r", new) if "\r" in text else new
    return re.sub(LINE_END, "\r\n" if text[end - 1 : end] == "\r" else "\n", new)


def changed_lines(text: str, at: int, old: str, new: str) -> Iterator[str]:
    """Hunks of a unified diff of the lines around `old`, which begins `at` that character.

    The rest of the file is the same and is not compared: difflib is quadratic.
    """
    begin, end = at, at + len(old)
    for _ in range(CONTEXT + 1):
        begin = max(text.rfind("\n", 0, begin), 0)
        end = text.find("\n", end) + 1 or len(text)
    begin += text[begin : begin + 1] == "\n" and begin < at
    before = split_lines(text[begin:end])
    after = split_lines(text[begin:at] + new + text[at + len(old) : end])
    skipped = text.count("\n", 0, begin)
    if max(len(before), len(after)) > MOST_COMPARED:
        yield f"@@ -{skipped + 1},{len(before)} +{skipped + 1},{len(after)} @@"
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    for line in islice(difflib.unified_diff(before, after, lineterm="", n=CONTEXT), 2, None):
        if line.startswith("@@"):
            line = re.sub(r"(?<=[-+])\d+", lambda m: str(int(m[0]) + skipped), line)
        yield line


def not_found(text: str, old: str, path: str) -> str:
    """The error for an `old` that does not occur, with the lines most like it."""
    lines = [line.rstrip("\r") for line in text.split("\n", MOST_SOUGHT)[:MOST_SOUGHT]]
    sought = [line.rstrip("\r") for line in old.strip("\n").split("\n")]
    if old == posixpath.basename(path):
        return f"edit_file changes what stands in {path}, not its name. Rename it with bash: mv."
    best = nearest(sought[0], lines, 1, 0.4, NEAREST_SECONDS)
    if not best:
        return f"old does not occur in {path}. Read the file and copy the lines exactly."
    start = lines.index(best[0])
    near = "\n".join(line[:NEAR_CHARACTERS] for line in lines[start : start + min(len(sought), 12)])
    return f"old does not occur in {path}. The nearest lines, from line {start + 1}, are:\n{near}"
