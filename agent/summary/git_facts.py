"""The range of commits to summarise, and git's facts of it: numbers that need no model."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

Git = Callable[[Sequence[str]], Awaitable[str]]
"""Runs an argument list in the sandbox, read-only, and gives its whole output."""

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's name for no files at all
BASH = ("/bin/bash", "--noprofile", "--norc", "-c")


class NothingToSummarize(Exception):
    """`str` says why in one sentence."""


@dataclass(frozen=True, slots=True)
class CommitRange:
    """From `base` (a commit or the empty tree) to `head`, both full hashes. `note` says how it was chosen."""

    base: str
    head: str
    note: str = ""

    @property
    def key(self) -> str:
        return f"{self.base[:16]}..{self.head[:16]}"


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


@cache
def script(name: str) -> str:
    """A shell script of this folder."""
    return files("agent").joinpath(f"summary/{name}").read_text("utf-8")


RANGE_SCRIPT = """
cd "$1" 2>/dev/null || { echo missing; exit 0; }
command git rev-parse --git-dir >/dev/null 2>&1 || { echo none; exit 0; }
head=$(command git rev-parse --quiet --verify 'HEAD^{commit}') || { echo empty; exit 0; }
last=$2 days=$3
if [ -n "$last" ]; then
    if ! command git cat-file -e "$last^{commit}" 2>/dev/null; then echo "lost $head"
    elif command git merge-base --is-ancestor "$last" "$head"; then echo "since $head $last"; exit 0
    else echo "forced $head $(command git merge-base "$last" "$head")"; exit 0; fi
fi
echo "days $head $(command git rev-list -1 --before="$days days ago" "$head")"
"""


async def commit_range(git: Git, path: str, last: str = "", days: int = 7) -> CommitRange:
    """The range since the commit `last` summarised, or of the last `days`; raises NothingToSummarize."""
    output = (await git([*BASH, RANGE_SCRIPT, "range", path, last, str(days)])).splitlines()
    lost = any(line.startswith("lost") for line in output)
    words = (output[-1] if output else "missing").split()
    if words[0] in NOTHING:
        raise NothingToSummarize(NOTHING[words[0]])
    head, base = words[1], words[2] if len(words) > 2 else EMPTY_TREE
    if head == base:
        since = f"in the last {days} days" if words[0] == "days" else "since the last summary"
        raise NothingToSummarize(f"Nothing was committed {since}.")
    note = {
        "since": "",
        "forced": "The history was rewritten since the last summary; counted from where both meet.",
        "days": f"The last {days} days." if base != EMPTY_TREE else "From the first commit on.",
    }[words[0]]
    return CommitRange(base, head, ("The last summarised commit is gone. " if lost else "") + note)


NOTHING = {
    "missing": "There is no such folder.",
    "none": "That folder is not a git repository.",
    "empty": "The repository has no commits yet.",
}


async def collect(git: Git, path: str, span: CommitRange) -> RepoFacts:
    """Git's facts of a range."""
    output = await git([*BASH, script("collect.sh"), "collect", path, span.base, span.head])
    rows: dict[str, list[list[str]]] = {}
    for line in output.splitlines():
        key, *values = line.split("\t")
        rows.setdefault(key, []).append(values)
    return parse_facts(rows)


def parse_facts(rows: Mapping[str, list[list[str]]]) -> RepoFacts:
    def one(key: str) -> str:
        return rows.get(key, [[""]])[0][0]

    def number(key: str) -> int:
        return int(one(key) or 0)

    def counts(key: str) -> dict[str, int]:
        return {name: int(count) for name, count in rows.get(key, [])}

    touched, added, removed, renamed = map(int, rows.get("files", [["0", "0", "0", "0"]])[0])
    return RepoFacts(
        commits=number("commits"),
        merges=number("merges"),
        shallow=one("shallow") == "true",
        branch=one("branch"),
        head=one("head"),
        authors=number("authors"),
        by_author=counts("author"),
        by_day=counts("day"),
        files=touched,
        added=added,
        removed=removed,
        renamed=renamed,
        tests=number("tests"),
        folders=tuple(
            FolderChange(n, int(f), int(a), int(r)) for n, f, a, r in rows.get("folder", [])
        ),
        grew=counts("grew"),
        todos=number("todos"),
        todo=tuple((path, line) for path, line in rows.get("todo", [])),
        moved=tuple(row[0] for row in rows.get("moved", [])),
        tags=tuple(row[0] for row in rows.get("tag", [])),
    )


async def subjects(git: Git, path: str, span: CommitRange, most: int = 2000) -> list[str]:
    """`hash author: subject` of the range's commits without merges, oldest first."""
    base = [] if span.base == EMPTY_TREE else [f"^{span.base}"]
    form = "--format=%h %aN: %s"
    output = await git(
        ["/usr/bin/git", "-C", path, "log", "--no-merges", form, f"-n{most}", span.head, *base]
    )
    return output.splitlines()[::-1]


async def selected_diff(git: Git, path: str, span: CommitRange, keep: int) -> str:
    """The beginning of the range's difference in code, at most `keep` bytes, without what is generated."""
    skip = [":(exclude,glob)**/*.lock", ":(exclude,glob)**/*.min.*", ":(exclude,glob)**/package-lock.json", ":(exclude,glob)**/*.svg"]  # fmt: skip
    flags = ["--no-ext-diff", "--no-textconv", "-U1", "-M"]
    command = ["/usr/bin/git", "-C", path, "diff", *flags, span.base, span.head, "--", ".", *skip]
    output = await git([*BASH, f'"$@" | head -c {keep}', "diff", *command])
    return output.encode()[:keep].decode("utf-8", "ignore")
