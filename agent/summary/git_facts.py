"""Git's facts about a range of commits, and a short text of them in Markdown: without a model it is the whole
summary."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date

from agent.errors import AgentError, NothingToDo
from agent.language import translated
from agent.sandbox.output_buffer import clean
from agent.sandbox.sandbox import BASH, bash_script

FOLDERS, GROWN, TODOS, REFS = 12, 8, 8, 10  # at most so many of each are kept


Git = Callable[[Sequence[str]], Awaitable[bytes]]
"""Runs an argument list in the sandbox, read-only, and returns its whole output."""

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's name for no files at all
EMPTY_TREES = (EMPTY_TREE, "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321")


@dataclass(frozen=True, slots=True)
class CommitRange:
    """Commits from `base` (a commit or the empty tree) to `head`, both full hashes. `note` says how it was chosen."""

    base: str
    head: str
    note: str = ""


async def commit_range(git: Git, path: str, last: str = "", days: int = 7) -> CommitRange:
    """The range since the commit `last`, or of the last `days`; raises NothingToDo, AgentError where git cannot
    read the repository."""
    command = [*bash_script("summary/range.sh"), path, last, str(days)]
    output = (await git(command)).splitlines() or [b"unreadable"]
    lost = any(line.startswith(b"lost") for line in output)
    words = one_line(output[-1], 300).split()
    if words[0] == "unreadable":
        raise unreadable(words[1:])
    if words[0] == "empty":
        raise NothingToDo(translated("The repository has no commits yet."))
    head, base = words[1], words[2]
    if head == base:
        form = translated("Nothing was committed since the last summary.")
        if words[0] == "days":
            form = translated("Nothing was committed in the last {days} days.")
        raise NothingToDo(form.format(days=days))
    note = {
        "since": "",
        "forced": "The history was rewritten since the last summary; counted from where both meet.",
        "days": f"The last {days} days."
        if base not in EMPTY_TREES
        else "From the first commit on.",
    }[words[0]]
    return CommitRange(base, head, ("The last summarised commit is gone. " if lost else "") + note)


def unreadable(reason: Sequence[str]) -> AgentError:
    """The error with git's words, such as a format that it does not know or an object that is not there."""
    form = translated("Git cannot read that repository: {reason}")
    return AgentError(form.format(reason=" ".join(reason) or "incomplete output"))


async def subjects(git: Git, path: str, span: CommitRange) -> list[str]:
    """`hash author: subject` of the range's commits without merges, oldest first, each one line."""
    base = [] if span.base in EMPTY_TREES else [f"^{span.base}"]
    options = "-z --no-merges --no-show-signature --encoding=UTF-8 --format=%h%x20%aN:%x20%s -n2000".split()
    output = await first_bytes(git, path, ["log", *options, span.head, *base], 2 << 20)
    return [one_line(record, 500) for record in output.split(b"\0") if record][::-1]


async def selected_diff(git: Git, path: str, span: CommitRange, keep: int) -> str:
    """The beginning of the range's difference, at most `keep` bytes, without generated files."""
    generated = ("*.lock", "*.min.*", "package-lock.json", "*.svg")
    skip = [f":(top,exclude,glob)**/{name}" for name in generated]
    flags = ["-O/dev/null", "--no-color", "--no-ext-diff", "--no-textconv", "-U1", "-M"]
    command = ["diff", *flags, span.base, span.head, "--", ":/", *skip]
    return clean((await first_bytes(git, path, command, keep)).decode("utf-8", "ignore"))


async def first_bytes(git: Git, path: str, command: Sequence[str], keep: int) -> bytes:
    """The first `keep` bytes that a git command prints, without its warnings."""
    pipeline = f'/usr/bin/git -C "$@" 2>/dev/null | head -c {keep}'
    return await git([*BASH, pipeline, "git", path, *command])


def one_line(raw: bytes, most: int = 120) -> str:
    """A name or text of somebody else as one printable line of at most `most` characters."""
    text = raw[: 8 * most].decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:most]


MIRRORS = "/workspace/.fetched"


@dataclass(frozen=True, slots=True)
class RepoLocation:
    """Where to read a repository; `note` tells a person why that is not the newest of the origin."""

    path: str
    note: str = ""


async def fetch_mirror(git: Git, path: str, name: str) -> RepoLocation:
    """Fetch the origin of the repository at `path` into a mirror, which is returned where it contains the HEAD of
    `path`; else `path` itself."""
    mirror = f"{MIRRORS}/{name}.git"
    try:
        output = await git([*bash_script("summary/fetch.sh"), path, mirror])
    except AgentError as error:
        return RepoLocation(path, f"It was not fetched: {error}")
    result = one_line(output, 300)
    return RepoLocation(mirror) if result == "fetched" else RepoLocation(path, result)


@dataclass(frozen=True, slots=True)
class FolderChange:
    """Files changed below a top-level folder, and lines; "./" is the top level itself."""

    name: str
    files: int
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class RepoFacts:
    """Counts of commits and of the net difference of the range; lists are bounded, longest first."""

    commits: int = 0
    merges: int = 0
    shallow: bool = False
    branch: str = ""
    head: str = ""
    authors: int = 0
    by_author: Mapping[str, int] = field(default_factory=dict)
    by_day: Mapping[str, int] = field(default_factory=dict)
    files: int = 0
    added: int = 0
    removed: int = 0
    renamed: int = 0
    tests: int = 0
    folders: tuple[FolderChange, ...] = ()
    grew: Mapping[str, int] = field(default_factory=dict)
    todos: int = 0
    todo: tuple[tuple[str, str], ...] = ()
    moved: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


async def collect(git: Git, path: str, span: CommitRange) -> RepoFacts:
    """Git's facts about a range; AgentError where git could not read all of it."""
    output = await git([*bash_script("summary/collect.sh"), path, span.base, span.head])
    records: dict[str, list[bytes]] = {}
    for record in output.split(b"\0"):
        key, _, value = record.partition(b"\t")
        records.setdefault(key.decode("ascii", "replace"), []).append(value)
    try:
        return parse_facts(records)
    except (LookupError, ValueError) as error:
        raise unreadable([one_line(e, 300) for e in records.get("error", [])]) from error


def parse_facts(records: Mapping[str, list[bytes]]) -> RepoFacts:
    """The facts in collect.sh's records; LookupError or ValueError where one is missing or malformed."""

    def one(key: str) -> bytes:
        [value] = records[key]
        return value

    def refs(key: str) -> tuple[str, ...]:
        dated = (re.fullmatch(rb"(\d+) (.+)", value, re.S) for value in records.get(key, []))
        names = [one_line(ref[2]) for ref in dated if ref and int(ref[1]) > int(one("since"))]
        return tuple(n for n in names if n.rpartition("/")[2] != "HEAD")[:REFS]

    one("end")
    files = list(changed_files(records.get("file", [])))
    touched, added, removed = sums(files)
    if "totals" in records:
        touched, added, removed = total_sums(one("totals"))
    by_author: Counter[str] = Counter()
    for count, name in map(counted, records.get("author", [])):
        by_author[one_line(name)] += count
    by_folder: dict[bytes, list[FileChange]] = {}
    for file in files:
        top, slash, _ = file.path.partition(b"/")
        by_folder.setdefault(top + slash if slash else b"./", []).append(file)
    folders = [FolderChange(one_line(name), *sums(inside)) for name, inside in by_folder.items()]
    grew = sorted((file.removed - file.added, file.path) for file in files)
    return RepoFacts(
        commits=int(one("commits")),
        merges=int(one("merges")),
        shallow=one("shallow") == b"true",
        branch=one_line(one("branch")),
        head=one_line(one("head")),
        authors=int(one("authors")),
        by_author=dict(by_author),
        by_day=dict(days(records.get("day", []))),
        files=touched,
        added=added,
        removed=removed,
        renamed=sum(file.renamed for file in files),
        tests=sum(bool(TEST_PATH.search(file.path)) for file in files),
        folders=tuple(sorted(folders, key=lambda each: (-each.added, each.name))[:FOLDERS]),
        grew={one_line(path): -change for change, path in grew[:GROWN] if change < 0},
        todos=int(one("todos")),
        todo=tuple(todo_lines(records.get("todo", [])))[:TODOS],
        moved=refs("moved"),
        tags=refs("tag"),
    )


@dataclass(frozen=True, slots=True)
class FileChange:
    path: bytes
    added: int
    removed: int
    renamed: bool


TEST_PATH = re.compile(
    rb"(?:^|/)(?:tests?|specs?|__tests__)/|(?:^|/)test_[^/]*$|[._](?:test|spec)\.[a-z]+$"
)


def changed_files(values: Sequence[bytes]) -> Iterator[FileChange]:
    """Parse `git diff --numstat -z`: behind the numbers stands the path, or two records with the old and the new one."""
    rest = iter(values)
    for value in rest:
        added, removed, path = value.split(b"\t", 2)
        if renamed := not path:
            path = (next(rest, b""), next(rest, b""))[1]
        yield FileChange(path, lines(added), lines(removed), renamed)


def lines(number: bytes) -> int:
    """A number of lines, which is "-" for a binary file."""
    return 0 if number == b"-" else int(number)


def sums(changes: Sequence[FileChange]) -> tuple[int, int, int]:
    """Files, lines added, lines removed."""
    return len(changes), sum(c.added for c in changes), sum(c.removed for c in changes)


def total_sums(text: bytes) -> tuple[int, int, int]:
    """Parse ` 3 files changed, 7 insertions(+), 2 deletions(-)`, from which git leaves out what is zero."""
    found = [re.search(rb"(\d+) " + word, text) for word in (b"file", b"insertion", b"deletion")]
    touched, added, removed = (int(match[1]) if match else 0 for match in found)
    return touched, added, removed


def counted(value: bytes) -> tuple[int, bytes]:
    """A line of `uniq -c`."""
    count, _, text = value.lstrip().partition(b" ")
    return int(count), text


def days(values: Sequence[bytes]) -> Iterator[tuple[str, int]]:
    for count, day in map(counted, values):
        with suppress(ValueError):  # a commit may claim a year that no calendar has
            yield date.fromisoformat(day.decode("ascii", "replace")).isoformat(), count


def todo_lines(values: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    """(path, line) of pairs of records: the header of a file's difference, and an added line behind ">"."""
    for header, line in zip(values[::2], values[1::2], strict=True):
        if not (header.startswith(b"+++ ") and line.startswith(b">")):
            raise ValueError("a TODO without its file")
        yield one_line(header[4:].strip(b'"\t')), one_line(line[1:])


MAX_BARS = 31
TODO_CHARACTERS = 60
BLOCKS = "▁▂▃▄▅▆▇█"


def facts_text(repo: str, span: CommitRange, facts: RepoFacts) -> str:
    """The facts in Markdown; every number is git's."""
    head = [
        f"**{repo}**, {plural(facts.commits, 'commit')} on {plain(facts.branch)} up to `{facts.head}`",
        span.note,
        "This clone is shallow: what lies before its edge is not counted." if facts.shallow else "",
        authors_line(facts),
        days_chart(facts),
    ]
    changes = "\n".join([changes_line(facts), *folder_lines(facts)])
    more = "\n".join(filter(None, [growth_line(facts), todos_line(facts), refs_lines(facts)]))
    return "\n\n".join(filter(None, ["\n".join(filter(None, head)), changes, more]))


def authors_line(facts: RepoFacts) -> str:
    named = [f"{plain(name)} ({count:,})" for name, count in list(facts.by_author.items())[:6]]
    more = facts.authors - len(named)
    tail = f" and {more:,} more" if more > 0 else ""
    merges = f"; {plural(facts.merges, 'merge')}" if facts.merges else ""
    return f"By {', '.join(named)}{tail}{merges}" if named else ""


def days_chart(facts: RepoFacts) -> str:
    """A bar for each day from the first commit to the last, or for several days where they are many."""
    days = {date.fromisoformat(day): count for day, count in facts.by_day.items()}
    if len(days) < 2:
        return ""
    first, last = min(days), max(days)
    step = -(-((last - first).days + 1) // MAX_BARS)
    counts = [0] * (((last - first).days) // step + 1)
    for day, count in days.items():
        counts[(day - first).days // step] += count
    every = "a day" if step == 1 else f"in {step} days"
    return f"`{bars(counts)}` commits {every}, {first:%d %b} to {last:%d %b}"


def bars(counts: Sequence[int]) -> str:
    most = max(counts)
    return "".join(BLOCKS[-(-n * len(BLOCKS) // most) - 1] if n else " " for n in counts)


def changes_line(facts: RepoFacts) -> str:
    if not facts.files:
        return "No file differs between the two ends."
    extra = [f"{facts.tests:,} of them tests" if facts.tests else "no tests"]
    extra += [f"{facts.renamed:,} renamed"] if facts.renamed else []
    files = f"{plural(facts.files, 'file')} changed ({', '.join(extra)})"
    return f"{files}, {line_counts(facts.added, facts.removed)} lines"


def folder_lines(facts: RepoFacts) -> Iterator[str]:
    for folder in facts.folders[:5]:
        name = "top level" if folder.name == "./" else code(folder.name)
        counts = line_counts(folder.added, folder.removed)
        yield f"- {name}: {plural(folder.files, 'file')}, {counts}"


def line_counts(added: int, removed: int) -> str:
    return f"+{added:,} −{removed:,}"


def growth_line(facts: RepoFacts) -> str:
    named = [f"{code(path)} +{lines:,}" for path, lines in list(facts.grew.items())[:3]]
    return f"Grew most: {', '.join(named)}" if named else ""


def todos_line(facts: RepoFacts) -> str:
    if not facts.todos:
        return ""
    path, line = facts.todo[0]
    shown = line if len(line) <= TODO_CHARACTERS else f"{line[: TODO_CHARACTERS - 1]}…"
    first = "such as " if facts.todos > 1 else ""
    return f"{plural(facts.todos, 'TODO')} added, {first}{code(shown)} in {code(path)}"


def refs_lines(facts: RepoFacts) -> str:
    tags = f"Tags: {', '.join(map(plain, facts.tags))}" if facts.tags else ""
    own = (facts.branch, f"origin/{facts.branch}")
    moved = [name for name in facts.moved if name not in own]
    branches = f"Other branches that moved: {', '.join(map(plain, moved))}" if moved else ""
    return "\n".join(filter(None, [tags, branches]))


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def plain(name: str) -> str:
    """A name that somebody else chose, without Markdown's special characters."""
    return "".join(c for c in name if c not in "*`[]<>~|\\")


def code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`"
