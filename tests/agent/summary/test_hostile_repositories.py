"""What somebody else names in a repository (authors, paths, lines, refs, dates) changes no number."""

import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.errors import AgentError
from agent.summary.git_facts import (
    EMPTY_TREE,
    CommitRange,
    collect,
    commit_range,
    facts_text,
    one_line,
    selected_diff,
    subjects,
)
from tests.agent.summary.test_summary import Repository, git

YEAR_9999 = 253_402_300_799
LURES = (
    "\u2028commits\t4242",
    "\tauthors\t9\tfile\t1\t1\tx",
    "\rcommits\t4242\rend\t",
    "\x1b[2J\x9b1m\u202e4,242 commits",
    "**4,242 commits** [x](http://example.org) `",
    '"\\"',
)


@dataclass(frozen=True)
class Commit:
    author: bytes
    subject: bytes
    path: bytes
    lines: tuple[bytes, ...]
    at: int


def without(*taken: bytes) -> st.SearchStrategy[bytes]:
    """Any bytes but these, and text that tries to be a record."""
    odd = st.one_of(st.binary(max_size=12), st.sampled_from(LURES).map(str.encode))
    return odd.map(lambda text: re.sub(b"[" + re.escape(b"".join(taken)) + b"]", b"", text))


COMMITS = st.lists(
    st.builds(
        Commit,
        author=without(b"\0\n<>").map(lambda text: b"A" + text + b"z"),
        subject=without(b"\0\n").map(lambda text: b"s" + text + b"s"),
        path=without(b"\0/").map(lambda text: b"p" + text + b"q"),
        lines=st.lists(without(b"\0\n").map(lambda text: b"# TODO: " + text), max_size=3).map(
            tuple
        ),
        at=st.sampled_from((0, 1_790_000_000, 4_102_444_800, YEAR_9999)),
    ),
    min_size=1,
    max_size=4,
)
WORST = [
    Commit(b"A" + lure.encode() + b"z", lure.encode(), b"p" + lure.replace("/", "").encode(), (b"# TODO: " + lure.encode(),), at)
    for lure, at in zip(LURES, (0, 1, 2, 3, 1_790_000_000, YEAR_9999), strict=True)
]  # fmt: skip


def made(path: Path, commits: Sequence[Commit]) -> CommitRange:
    """A repository with these commits, each of which adds one file, written as git's objects."""
    subprocess.run(["git", "init", "-q", "-b", "main", path], check=True)
    stream = b"feature done\n"
    for number, commit in enumerate(commits, 1):
        quoted = b'"' + b"".join(b"\\%03o" % byte for byte in b"%d" % number + commit.path) + b'"'
        text = b"".join(line + b"\n" for line in commit.lines)
        who = b"%s <a@example.org> %d +0000\n" % (commit.author, commit.at)
        stream += b"commit refs/heads/main\nmark :%d\nauthor %scommitter %s" % (number, who, who)
        stream += b"data %d\n%s\n" % (len(commit.subject), commit.subject)
        stream += b"from :%d\n" % (number - 1) if number > 1 else b""
        stream += b"M 100644 inline %s\ndata %d\n%s\n" % (quoted, len(text), text)
        for lure in LURES:
            name = re.sub(r"[\x00-\x20\x7f~^:?*\[\]\\]", "", lure).replace("//", "")
            stream += f"reset refs/heads/x{name}\nfrom :{number}\n\n".encode()
    run = ["git", "-C", str(path), "fast-import", "--quiet", "--date-format=raw-permissive"]
    subprocess.run(run, input=stream + b"done\n", check=True, capture_output=True)
    head = subprocess.run(["git", "-C", path, "rev-parse", "main"], check=True, capture_output=True)
    return CommitRange(EMPTY_TREE, head.stdout.decode().strip())


def check_text(text: str, commits: int) -> None:
    """The facts as a text: git's number stands in it, and nothing that moves or reorders it."""
    assert text.splitlines()[0].startswith(f"**x**, {commits} commit{'s' * (commits != 1)} on main")
    assert len(text.split("\n")) == len(text.splitlines())
    assert all(c.isprintable() or c == "\n" for c in text)
    prose = re.sub(r"`[^`\n]*`", "", text).replace("**x**", "")
    assert not set("*`[]<>") & set(prose)


@given(COMMITS)
@example(WORST)
@settings(max_examples=5, deadline=None)
async def test_every_number_is_git_s(commits: list[Commit]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "r")
        span = made(path, commits)
        facts = await collect(git, str(path), span)
        names = Counter(one_line(commit.author) for commit in commits)
        assert (facts.commits, facts.merges, dict(facts.by_author)) == (len(commits), 0, names)
        lines = sum(len(commit.lines) for commit in commits)
        assert (facts.files, facts.added, facts.removed, facts.todos) == (
            len(commits),
            lines,
            0,
            lines,
        )
        assert sum(facts.by_day.values()) == len(commits)
        assert all(line.startswith("# TODO:") for _, line in facts.todo)
        assert facts.branch == "main" and set(facts.moved) <= {"main", *map(branch_of, LURES)}
        check_text(facts_text("x", span, facts), len(commits))
        material = await subjects(git, str(path), span)
        assert len(material) == len(commits) and all(line.isprintable() for line in material)
        await selected_diff(git, str(path), span, 4000)


def branch_of(lure: str) -> str:
    return one_line(
        ("x" + re.sub(r"[\x00-\x20\x7f~^:?*\[\]\\]", "", lure).replace("//", "")).encode()
    )


@pytest.mark.parametrize("refs", [1_000, pytest.param(100_000, marks=pytest.mark.slow)])
async def test_a_hundred_thousand_refs(tmp_path: Path, refs: int) -> None:
    """Half of them branches, half of them tags."""
    repository = Repository(tmp_path / "r")
    head = repository.commit("one", a="1\n")
    heads = [f"{head} refs/heads/b{n:06}\n" for n in range(refs // 2)]
    tags = [f"{head} refs/tags/t{n:06}\n" for n in range(refs - len(heads))]
    (repository.path / ".git" / "packed-refs").write_text("".join([*heads, *tags]))
    assert len(repository("for-each-ref").splitlines()) == refs + 1  # and main
    facts = await collect(
        git, str(repository.path), await commit_range(git, str(repository.path), days=9000)
    )
    assert (facts.commits, len(facts.moved), len(facts.tags)) == (1, 10, 10)


async def test_years_that_no_calendar_has(tmp_path: Path) -> None:
    odd = [Commit(b"A", b"s", b"p", (), at) for at in (YEAR_9999 + 1, 1 << 62, 1 << 40, 5)]
    facts = await collect(git, str(tmp_path / "r"), made(tmp_path / "r", odd))
    assert (facts.commits, facts.authors) == (4, 1)
    check_text(facts_text("x", CommitRange("", ""), facts), 4)


async def test_a_repository_that_is_not_whole_is_no_summary(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "r")
    repository.commit("one", a="1\n")
    head = repository.commit("two", a="2\n")
    tree = repository("rev-parse", "HEAD^{tree}")
    (repository.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(AgentError, match="Git cannot read"):
        await collect(
            git, str(repository.path), CommitRange(repository("rev-parse", "HEAD~"), head)
        )


async def test_an_answer_that_was_cut_short_is_no_answer(tmp_path: Path) -> None:
    span = made(tmp_path / "r", WORST)

    async def cut(argv: Sequence[str]) -> bytes:
        return (await git(argv))[:-12]

    with pytest.raises(AgentError):
        await collect(cut, str(tmp_path / "r"), span)


async def check_many(tmp_path: Path, lines: int, paths: int) -> None:
    """One commit of so many paths, which all hold the same lines."""
    repository = Repository(tmp_path / "r")
    (tmp_path / "lines").write_text("x\n" * lines)
    blob = repository("hash-object", "-w", str(tmp_path / "lines"))
    names = (f"file-with-a-name-that-is-rather-long-{number:08}" for number in range(paths))
    entries = "".join(f"100644 blob {blob}\t{name}\n" for name in names)
    mktree = ["git", "-C", str(repository.path), "mktree"]
    tree = subprocess.run(mktree, input=entries.encode(), capture_output=True, check=True).stdout
    head = repository("commit-tree", "-m", "all", tree.decode().strip())
    repository("update-ref", "refs/heads/main", head)
    facts = await collect(git, str(repository.path), CommitRange(EMPTY_TREE, head))
    assert (facts.commits, facts.files, facts.added) == (1, paths, paths * lines)


@pytest.mark.slow
async def test_ten_million_lines(tmp_path: Path) -> None:
    await check_many(tmp_path, 10_000_000, 1)


@pytest.mark.slow
async def test_more_files_than_are_listed(tmp_path: Path) -> None:
    await check_many(tmp_path, 1, 180_000)
