"""Repositories whose object ids have 64 hexadecimal digits are summarised as others are."""

import hashlib
from pathlib import Path

import pytest

from agent.errors import NothingToDo
from agent.summary.git_facts import (
    EMPTY_TREES,
    CommitRange,
    collect,
    commit_range,
    facts_text,
    selected_diff,
    subjects,
)
from tests.agent.summary.test_summary import Repository, git


@pytest.fixture(params=["sha1", "sha256"])
def repository(tmp_path: Path, request: pytest.FixtureRequest) -> Repository:
    made = Repository(tmp_path / "r", object_format=request.param)
    made.empty = EMPTY_TREES[request.param == "sha256"]
    return made


def test_the_empty_trees_are_gits() -> None:
    assert tuple(digest(b"tree 0\0").hexdigest() for digest in (hashlib.sha1, hashlib.sha256)) == EMPTY_TREES  # fmt: skip


async def test_a_first_summary(repository: Repository) -> None:
    repository.commit("One", a="1\n")
    head = repository.commit("Two", at=10, a="1\n2\n", b="3\n")
    path = str(repository.path)
    span = await commit_range(git, path, days=9000)
    assert span == CommitRange(repository.empty, head, "From the first commit on.")
    facts = await collect(git, path, span)
    assert (facts.commits, facts.files, facts.added, facts.removed) == (2, 2, 3, 0)
    assert "2 commits" in facts_text("r", span, facts)
    assert [line.split(": ")[1] for line in await subjects(git, path, span)] == ["One", "Two"]
    diff = await selected_diff(git, path, span, 4000)
    assert "+++ b/a" in diff and "+++ b/b" in diff


async def test_since_the_last_summary(repository: Repository) -> None:
    base = repository.commit("One", a="1\n")
    with pytest.raises(NothingToDo):
        await commit_range(git, str(repository.path), base)
    head = repository.commit("Two", at=10, a="2\n")
    span = await commit_range(git, str(repository.path), base)
    assert span == CommitRange(base, head)
    assert (await collect(git, str(repository.path), span)).removed == 1
    assert len(await subjects(git, str(repository.path), span)) == 1
