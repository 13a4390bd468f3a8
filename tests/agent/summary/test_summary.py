"""Facts of a repository are git's own, for ordinary, empty, shallow, rewritten and odd ones."""

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.errors import NothingToDo
from agent.summary.git_facts import (
    EMPTY_TREE,
    CommitRange,
    FolderChange,
    RepoFacts,
    collect,
    commit_range,
    facts_text,
    selected_diff,
    subjects,
)
from agent.summary.repo_summaries import without_copied, without_unsupported, write_prose
from fakes.words import saying


async def git(argv: Sequence[str]) -> bytes:
    process = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE)
    out, _ = await process.communicate()
    return out


class Repository:
    """A real repository, its commits dated by hand."""

    def __init__(self, path: Path, object_format: str = "sha1") -> None:
        self.path = path
        self.empty = EMPTY_TREE
        path.mkdir()
        self("init", "-q", "-b", "main", f"--object-format={object_format}")

    def __call__(self, *argv: str, author: str = "Ada Lovelace", at: int = 0) -> str:
        when = f"{1_790_000_000 + at} +0000"
        who = {"NAME": author, "EMAIL": "a@example.org", "DATE": when}
        env = {
            f"GIT_{role}_{key}": value
            for role in ("AUTHOR", "COMMITTER")
            for key, value in who.items()
        }
        env |= {"PATH": "/usr/bin:/bin", "HOME": str(self.path), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *argv], cwd=self.path, env=env, check=True, capture_output=True
        )
        return done.stdout.decode("utf-8", "replace").strip()

    def commit(
        self, message: str, *, author: str = "Ada Lovelace", at: int = 0, **files: bytes | str
    ) -> str:
        for name, content in files.items():
            path = self.path / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self("add", "-A")
        self("commit", "-q", "--allow-empty", "-m", message, author=author, at=at)
        return self("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "r")


async def test_facts_of_a_range(repository: Repository) -> None:
    base = repository.commit("start", src__a_dot_py="one\n", README_dot_md="hi\n")
    repository.commit(
        "Add a feature", at=10, src__a_dot_py="one\ntwo\n# TODO: three\n", src__test_a_dot_py="t\n"
    )
    repository("tag", "v1", at=20)
    head = repository.commit(
        "Fix docs", author="Grace Hopper", at=90_000, docs__b_dot_md="1\n2\n3\n4\n"
    )
    span = await commit_range(git, str(repository.path), base)
    assert span == CommitRange(base, head)
    facts = await collect(git, str(repository.path), span)
    assert (facts.commits, facts.merges, facts.authors) == (2, 0, 2)
    assert facts.by_author == {"Ada Lovelace": 1, "Grace Hopper": 1}
    assert (facts.files, facts.added, facts.removed, facts.tests) == (3, 7, 0, 1)
    assert facts.folders == (FolderChange("docs/", 1, 4, 0), FolderChange("src/", 2, 3, 0))
    assert facts.grew == {"docs/b.md": 4, "src/a.py": 2, "src/test_a.py": 1}
    assert (facts.todos, facts.todo) == (1, (("src/a.py", "# TODO: three"),))
    assert (facts.tags, facts.branch, facts.shallow) == (("v1",), "main", False)
    assert sum(facts.by_day.values()) == 2 and len(facts.by_day) == 2
    assert [line.split(" ", 1)[1] for line in await subjects(git, str(repository.path), span)] == [
        "Ada Lovelace: Add a feature",
        "Grace Hopper: Fix docs",
    ]
    text = facts_text("website", span, facts)
    assert text.splitlines()[0] == saying("website", "2 commits", "main", head[:7])
    assert text == saying("3 files", "1 of them tests", "+7 −0")
    assert text == saying("\n1 TODO", "`# TODO: three`", "`src/a.py`")
    assert "+# TODO: three" in await selected_diff(git, str(repository.path), span, 4000)


async def test_nothing_new_and_nothing_there(repository: Repository) -> None:
    with pytest.raises(NothingToDo, match="has no commits yet"):
        await commit_range(git, str(repository.path))
    head = repository.commit("one")
    with pytest.raises(NothingToDo, match="since the last summary"):
        await commit_range(git, str(repository.path), head)
    with pytest.raises(NothingToDo, match="in the last 7 days"):
        await commit_range(git, str(repository.path))


async def test_first_commits_count_from_nothing(repository: Repository) -> None:
    head = repository.commit("one", a="1\n2\n")
    span = await commit_range(git, str(repository.path), days=9000)
    assert span == CommitRange(EMPTY_TREE, head, "From the first commit on.")
    facts = await collect(git, str(repository.path), span)
    assert (facts.commits, facts.files, facts.added) == (1, 1, 2)


async def test_rewritten_history_is_told(repository: Repository) -> None:
    meeting = repository.commit("one", a="1\n")
    last = repository.commit("two", at=1, a="1\n2\n")
    repository("reset", "-q", "--hard", meeting)
    head = repository.commit("other", at=2, b="x\n")
    span = await commit_range(git, str(repository.path), last)
    assert (span.base, span.head) == (meeting, head) and "rewritten" in span.note
    gone = await commit_range(git, str(repository.path), "0" * 40, days=9000)
    assert gone.note == saying("gone")


async def test_renames_merges_odd_names_and_bytes(repository: Repository) -> None:
    lines = "".join(f"line {n}\n" for n in range(50))
    base = repository.commit("one", src__old_dot_py=lines, latin=b"caf\xe9\n")
    repository("checkout", "-q", "-b", "side")
    repository.commit("side", author="Zo\u00eb", at=1, new_file="n\n")
    repository("checkout", "-q", "main")
    repository("mv", "src/old.py", "src/new.py")
    (repository.path / "we\u00efrd name.txt").write_text("x\n")
    repository.commit("caf\u00e9 \u2615", at=2)
    repository("merge", "-q", "--no-ff", "-m", "merge", "side", at=3)
    facts = await collect(
        git, str(repository.path), await commit_range(git, str(repository.path), base)
    )
    assert (facts.commits, facts.merges, facts.renamed) == (3, 1, 1)
    assert (facts.files, facts.added, facts.removed) == (3, 2, 0)
    assert facts.by_author["Zo\u00eb"] == 1
    assert "side" in facts.moved


async def test_a_shallow_clone_says_so(repository: Repository, tmp_path: Path) -> None:
    for n in range(3):
        repository.commit(f"c{n}", at=n, a=f"{n}\n")
    clone = tmp_path / "shallow"
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", f"file://{repository.path}", clone], check=True
    )
    span = await commit_range(git, str(clone), days=9000)
    facts = await collect(git, str(clone), span)
    assert facts.shallow and "shallow" in facts_text("x", span, facts)


async def test_prose_is_written_in_stages() -> None:
    asked: list[str] = []

    async def ask(question: str) -> str:
        asked.append(question)
        return f"- point {len(asked)}"

    commits = [f"abc{n} Ada: change number {n}" for n in range(100)]
    assert await write_prose(ask, "r", commits, 1000) == "- point 4"
    assert len(asked) == len(set(asked)) == 4 and all(len(q) < 1600 for q in asked)
    assert "- point 1\n- point 2\n- point 3" in asked[3]


@pytest.mark.parametrize(
    ("sentence", "kept"),
    [
        ("There were 12 commits.", True),
        ("It grew by 1,400 lines.", True),
        ("Twelve commits came from Ada Lovelace.", True),
        ("Three files changed.", True),
        ("It moved to 2.5.1.", True),
        ("Ada removed 40 files of a cache.", True),  # a commit says so
        ("Ninety went.", True),  # counts nothing that is known
        ("There were 3 commits.", False),  # that is the number of files
        ("Four files changed.", False),
        ("It has 77 tests.", False),
        ("It costs 99.", False),
        ("As John Smith wrote, fine.", False),
        ("John Smith wrote it.", False),
        ("As Ada Lovelace wrote, fine.", True),
        ("The Telegram part changed.", True),
    ],
)
def test_sentences_with_invented_counts_or_people_are_left_out(sentence: str, kept: bool) -> None:
    facts = RepoFacts(commits=12, files=3, added=1400)
    material = "abc Ada Lovelace: bump to 2.5.1\ndef Ada Lovelace: Remove 40 files of a cache"
    assert without_unsupported(sentence, facts, material) == (
        sentence if kept else "",
        int(not kept),
    )


def test_a_sentence_stands_once() -> None:
    text = "- Login keeps its session. Mail waits.\n  * Login keeps its session. Search is quick."
    kept = "- Login keeps its session. Mail waits.\nSearch is quick."
    assert without_unsupported(text, RepoFacts(), "") == (kept, 1)


def test_what_is_left_keeps_its_lines() -> None:
    text = "It was fine. It has 77 tests.\n\n- Ada moved on.\n- 8 authors left.\n- Good."
    assert without_unsupported(text, RepoFacts(), "") == (
        "It was fine.\n\n- Ada moved on.\n- Good.",
        2,
    )


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("It moved.\n\n```text\n+++ b/x\n", "It moved."),  # a fence that never closes
        ("```\ncode\n```\nIt moved.", "It moved."),
        ("diff --git a/x b/x\n+++ b/x\n+line\nIt moved.", "It moved."),
        ("- It moved.\n+ It grew.", "- It moved.\n+ It grew."),
        ("~~~\nall of it", ""),
    ],
)
def test_what_was_only_copied_is_no_prose(text: str, kept: str) -> None:
    assert without_copied(text) == kept
