"""The range of commits to summarize, and its subjects and difference as material for the model.

The newest commits of the origin are fetched in the sandbox into a mirror beside the owner's clone, which is
not touched and lends no credentials: what is fetched is public, comes through the proxy from hosts that the
owner allows, and lies in the chat's workspace. So a repository's configuration can do no more than a
command in the sandbox can.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent.errors import AgentError, NothingToDo
from agent.language import translated
from agent.sandbox.output_buffer import clean
from agent.sandbox.sandbox import BASH, bash_script

Git = Callable[[Sequence[str]], Awaitable[bytes]]
"""Runs an argument list in the sandbox, read-only, and returns its whole output."""

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's name for no files at all
EMPTY_TREES = (
    EMPTY_TREE,
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
)  # SHA-256


@dataclass(frozen=True, slots=True)
class CommitRange:
    """From `base` (a commit or the empty tree) to `head`, both full hashes. `note` says how it was chosen."""

    base: str
    head: str
    note: str = ""

    @property
    def key(self) -> str:
        return f"{self.base[:16]}..{self.head[:16]}"


async def commit_range(git: Git, path: str, last: str = "", days: int = 7) -> CommitRange:
    """The range since the commit `last`, or of the last `days`; raises NothingToDo."""
    command = [*bash_script("summary/range.sh"), path, last, str(days)]
    output = (await git(command)).decode("ascii", "replace").splitlines()
    lost = any(line.startswith("lost") for line in output)
    words = (output[-1] if output else "missing").split()
    if words[0] in NOTHING:
        raise NothingToDo(translated(NOTHING[words[0]]))
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


NOTHING = {
    "missing": "There is no such folder.",
    "none": "That folder is not a git repository.",
    "empty": "The repository has no commits yet.",
}


async def subjects(git: Git, path: str, span: CommitRange) -> list[str]:
    """`hash author: subject` of the range's commits without merges, oldest first, each one line."""
    base = [] if span.base in EMPTY_TREES else [f"^{span.base}"]
    options = ["-z", "--no-merges", "--no-show-signature", "--format=%h %aN: %s", "-n2000"]
    output = await first_bytes(git, path, ["log", *options, span.head, *base], 2 << 20)
    return [one_line(record, 500) for record in output.split(b"\0") if record][::-1]


async def selected_diff(git: Git, path: str, span: CommitRange, keep: int) -> str:
    """The beginning of the range's difference, at most `keep` bytes, without generated files."""
    skip = [":(exclude,glob)**/*.lock", ":(exclude,glob)**/*.min.*", ":(exclude,glob)**/package-lock.json", ":(exclude,glob)**/*.svg"]  # fmt: skip
    flags = ["--no-color", "--no-ext-diff", "--no-textconv", "-U1", "-M"]
    command = ["diff", *flags, span.base, span.head, "--", ".", *skip]
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
