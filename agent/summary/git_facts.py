"""Git's facts of a range of commits: numbers that need no model."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date

from agent.errors import AgentError
from agent.summary.commit_range import BASH, CommitRange, Git, one_line, script

FOLDERS, GROWN, TODOS, REFS = 12, 8, 8, 10  # at most so many of each are kept


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
    """Git's facts of a range; AgentError where git could not give all of them."""
    output = await git([*BASH, script("collect.sh"), "collect", path, span.base, span.head])
    records: dict[str, list[bytes]] = {}
    for record in output.split(b"\0"):
        key, _, value = record.partition(b"\t")
        records.setdefault(key.decode("ascii", "replace"), []).append(value)
    try:
        return parse_facts(records)
    except (LookupError, ValueError) as error:
        raise AgentError(
            "Git could not read all of these commits; is the repository intact?"
        ) from error


def parse_facts(records: Mapping[str, list[bytes]]) -> RepoFacts:
    """collect.sh's records; LookupError or ValueError where one is missing or has another form."""

    def one(key: str) -> bytes:
        [value] = records[key]
        return value

    def refs(key: str) -> tuple[str, ...]:
        dated = (re.fullmatch(rb"(\d+) (.+)", value, re.S) for value in records.get(key, []))
        names = [one_line(ref[2]) for ref in dated if ref and int(ref[1]) > int(one("since"))]
        return tuple(n for n in names if n.rpartition("/")[2] not in ("HEAD", "origin"))[:REFS]

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
    """`git diff --numstat -z`: after the numbers the path, or two records with the old and new one."""
    rest = iter(values)
    for value in rest:
        added, removed, path = value.split(b"\t", 2)
        if renamed := not path:
            path = (next(rest, b""), next(rest, b""))[1]
        yield FileChange(path, lines(added), lines(removed), renamed)


def lines(number: bytes) -> int:
    """A binary file has "-" for its lines."""
    return 0 if number == b"-" else int(number)


def sums(changes: Sequence[FileChange]) -> tuple[int, int, int]:
    """Files, lines added, lines removed."""
    return len(changes), sum(c.added for c in changes), sum(c.removed for c in changes)


def total_sums(text: bytes) -> tuple[int, int, int]:
    """` 3 files changed, 7 insertions(+), 2 deletions(-)`: what is zero is left out."""
    found = [re.search(rb"(\d+) " + word, text) for word in (b"file", b"insertion", b"deletion")]
    touched, added, removed = (int(match[1]) if match else 0 for match in found)
    return touched, added, removed


def counted(value: bytes) -> tuple[int, bytes]:
    """A line of `uniq -c`."""
    count, _, text = value.lstrip().partition(b" ")
    return int(count), text


def days(values: Sequence[bytes]) -> Iterator[tuple[str, int]]:
    for count, day in map(counted, values):
        with suppress(ValueError):  # a commit may claim any year, also one that no calendar has
            yield date.fromisoformat(day.decode("ascii", "replace")).isoformat(), count


def todo_lines(values: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    """(path, line): the header of the file's difference, and the line behind the mark of what is added."""
    for header, line in zip(values[::2], values[1::2], strict=True):
        if not (header.startswith(b"+++ ") and line.startswith(b">")):
            raise ValueError("a TODO without its file")
        yield one_line(header[4:].strip(b'"\t')), one_line(line[1:])
