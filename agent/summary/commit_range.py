"""The range of commits to summarise, and its subjects and difference as material for the model."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from agent.sandbox.output_buffer import clean

Git = Callable[[Sequence[str]], Awaitable[bytes]]
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


@cache
def script(name: str) -> str:
    """A shell script of this folder."""
    return files("agent").joinpath(f"summary/{name}").read_text("utf-8")


RANGE_SCRIPT = """
exec 2>/dev/null
cd "$1" || { echo missing; exit 0; }
command git rev-parse --git-dir >/dev/null || { echo none; exit 0; }
head=$(command git rev-parse --quiet --verify 'HEAD^{commit}') || { echo empty; exit 0; }
last=$2 days=$3
if [ -n "$last" ]; then
    if ! command git cat-file -e "$last^{commit}"; then echo "lost $head"
    elif command git merge-base --is-ancestor "$last" "$head"; then echo "since $head $last"; exit 0
    else echo "forced $head $(command git merge-base "$last" "$head")"; exit 0; fi
fi
echo "days $head $(command git rev-list -1 --before="$days days ago" "$head")"
"""


async def commit_range(git: Git, path: str, last: str = "", days: int = 7) -> CommitRange:
    """The range since the commit `last` summarised, or of the last `days`; raises NothingToSummarize."""
    arguments = [*BASH, RANGE_SCRIPT, "range", path, last, str(days)]
    output = (await git(arguments)).decode("ascii", "replace").splitlines()
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


async def subjects(git: Git, path: str, span: CommitRange, most: int = 2000) -> list[str]:
    """`hash author: subject` of the range's commits without merges, oldest first, each one line."""
    base = [] if span.base == EMPTY_TREE else [f"^{span.base}"]
    form = "--format=%h %aN: %s"
    command = [
        "log",
        "-z",
        "--no-merges",
        "--no-show-signature",
        form,
        f"-n{most}",
        span.head,
        *base,
    ]
    output = await first_bytes(git, path, command, 2 << 20)
    return [one_line(record, 500) for record in output.split(b"\0") if record][::-1]


async def selected_diff(git: Git, path: str, span: CommitRange, keep: int) -> str:
    """The beginning of the range's difference in code, at most `keep` bytes, without what is generated."""
    skip = [":(exclude,glob)**/*.lock", ":(exclude,glob)**/*.min.*", ":(exclude,glob)**/package-lock.json", ":(exclude,glob)**/*.svg"]  # fmt: skip
    flags = ["--no-color", "--no-ext-diff", "--no-textconv", "-U1", "-M"]
    command = ["diff", *flags, span.base, span.head, "--", ".", *skip]
    return clean((await first_bytes(git, path, command, keep)).decode("utf-8", "ignore"))


async def first_bytes(git: Git, path: str, command: Sequence[str], keep: int) -> bytes:
    """The first `keep` bytes that a git command prints, without its warnings."""
    pipeline = f'/usr/bin/git -C "$@" 2>/dev/null | head -c {keep}'
    return await git([*BASH, pipeline, "git", path, *command])


def one_line(raw: bytes, most: int = 120) -> str:
    """What somebody else named, as one printable line of at most `most` characters."""
    text = raw[: 8 * most].decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:most]
