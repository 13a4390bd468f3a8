"""Repositories of every form are summarised as others are, or git's reason is told."""

import hashlib
import os
import subprocess
import time
from pathlib import Path

import pytest

from agent.errors import AgentError, NothingToDo
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


CLONE = "git -C r config uploadpack.allowFilter true; git clone -q --no-checkout file://$PWD/r x"
FORMS = {  # how it is made beside r, and which folder is summarised
    "bare": ("git clone -q --bare r x", "x"),
    "mirror": ("git clone -q --mirror r x", "x"),
    "without blobs": (f"{CLONE} --filter=blob:none", "x"),
    "shared objects": ("git clone -q --shared r x", "x"),
    "bundle": ("git -C r bundle create -q ../b --all; git clone -q b x", "x"),
    "worktree": ("git -C r worktree add -q ../x -b main2", "x"),
    "worktree whose repository is bare": (
        "git clone -q --bare r b; git -C b worktree add -q ../x main",
        "x",
    ),
    "separate directory": ("git clone -q --separate-git-dir=g r x", "x"),
    "relative gitfile": ("mv r/.git r/real; echo 'gitdir: real' > r/.git", "r"),
    "linked HEAD": ("cd r/.git; rm HEAD; ln -s refs/heads/main HEAD", "r"),
    "packed": ("cd r; git repack -adbq; git multi-pack-index write; git pack-refs --all", "r"),
    "commit graph": ("git -C r commit-graph write --reachable --changed-paths", "r"),
    "broken commit graph": (
        "cd r; git commit-graph write --reachable; chmod u+w .git/objects/info/commit-graph; "
        "echo broken > .git/objects/info/commit-graph",
        "r",
    ),
    "sparse index": ("git -C r sparse-checkout set --cone --sparse-index src", "r"),
    "split index": ("git -C r update-index --split-index", "r"),
    "no index": ("rm r/.git/index", "r"),
    "no config": ("rm r/.git/config", "r"),
    "config of Windows": (
        "(printf '\\357\\273\\277'; sed 's/$/\\r/' r/.git/config) > c; mv c r/.git/config",
        "r",
    ),
    "an order of files that is missing": ("git -C r config diff.orderFile missing", "r"),
    "relative": ("git -C r config diff.relative true", "r"),
    "prefixes": ("git -C r config diff.noprefix true; git -C r config diff.srcPrefix X", "r"),
    "external": ("git -C r config diff.external false; git -C r config core.pager false", "r"),
    "colours": ("git -C r config color.ui always; git -C r config core.abbrev 4", "r"),
    "signatures": (
        "git -C r config log.showSignature true; git -C r config gpg.program false",
        "r",
    ),
    "monitor": ("git -C r config core.fsmonitor /bin/false", "r"),
    "format 1": (
        "cd r; git config core.repositoryformatversion 1; git config extensions.preciousObjects true",
        "r",
    ),
    "branch HEAD": ("git -C r update-ref refs/heads/HEAD HEAD~1", "r"),
    "locked": ("touch r/.git/index.lock r/.git/HEAD.lock", "r"),
    "a tag like its branch": ("git -C r tag main HEAD~1", "r"),
    "a folder in it": ("mkdir -p r/in/it", "r/in/it"),
    "its own directory": ("true", "r/.git"),
    "submodule": (
        "git init -q t; git -C t -c protocol.file.allow=always submodule add -q ../r s",
        "t/s",
    ),
    "worktree by a relative path": (
        "git -C r worktree add -q ../x -b main2; echo 'gitdir: ../r/.git/worktrees/x' > x/.git",
        "x",
    ),
    "without trees": (f"{CLONE} --filter=tree:0", "x"),
    "a branch like a commit": ("cd r; git branch $(git rev-parse HEAD) HEAD~1", "r"),
    "bisection": ("cd r; git bisect start HEAD HEAD~1", "r"),
}
NO_GIT = "not a git repository"
UNREADABLE = {  # how it is made of r, and git's words
    "unknown extension": (
        "git config core.repositoryformatversion 1; git config extensions.futureRefs tables",
        "futurerefs",
    ),
    "unknown version": ("git config core.repositoryformatversion 2", "version"),
    "broken config": ("echo '[core' >> .git/config", "bad config line"),
    "broken HEAD": ("echo broken > .git/HEAD", NO_GIT),
    "HEAD of zeros": ("printf '%040d' 0 > .git/refs/heads/main", "HEAD"),
    "emptied branch": (": > .git/refs/heads/main", "broken"),
    "no refs": ("git pack-refs --all; rm -r .git/refs", NO_GIT),
    "no objects": ("rm -r .git/objects", NO_GIT),
    "lost commit": ("rm -r .git/objects/*; mkdir .git/objects/pack", "bad object"),
    "lost alternates": (
        "mv .git/objects ../o; mkdir .git/objects{,/info}; echo /nowhere > .git/objects/info/alternates",
        "bad object",
    ),
    "moved gitfile": ("rm -r .git; echo 'gitdir: /nowhere/r.git' > .git", "/nowhere/r.git"),
    "dangling link": ("rm -r .git; ln -s /nowhere .git", NO_GIT),
    "working tree elsewhere": ("git config core.worktree ../../nowhere", "nowhere"),
    "no repository": ("rm -r .git", NO_GIT),
    "no folder": ("rm -r ../r", "No such file"),
    "lost content": ("rm .git/objects/$(git rev-parse HEAD:b | sed 's|..|&/|')", "unable to read"),
}


def shell(folder: Path, command: str) -> None:
    """Run it without the settings of whoever runs the tests."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["/bin/bash", "-ec", command], cwd=folder, env=env, check=True, capture_output=True)  # fmt: skip


def two_commits(path: Path, object_format: str = "sha1") -> Repository:
    made = Repository(path, object_format)
    made.commit("One", a="1\n")
    made.commit("Two", at=10, a="1\n2\n", b="3\n")
    return made


SHA256 = (
    "bare", "mirror", "shared objects", "bundle", "worktree", "separate directory", "packed", "commit graph",
    "split index", "relative", "a folder in it", "a tag like its branch",
)  # fmt: skip


@pytest.mark.parametrize(
    ("form", "object_format"), [*((f, "sha1") for f in FORMS), *((f, "sha256") for f in SHA256)]
)
async def test_every_form_of_repository(tmp_path: Path, form: str, object_format: str) -> None:
    two_commits(tmp_path / "r", object_format)
    command, folder = FORMS[form]
    shell(tmp_path, command)
    path = str(tmp_path / folder)
    span = await commit_range(git, path, days=9000)
    facts = await collect(git, path, span)
    assert (facts.files, facts.added, facts.removed) == (2, 3, 0)
    assert facts.branch in ("main", "main2")
    assert [line.split(": ")[1] for line in await subjects(git, path, span)][:2] == ["One", "Two"]
    assert "+3" in await selected_diff(git, path, span, 4000)


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "ISO-8859-15", "CP1252", "UTF-16LE", "UTF-8"])
async def test_commits_in_another_encoding_are_read(tmp_path: Path, encoding: str) -> None:
    made = two_commits(tmp_path / "r")
    author = "-c user.name=Zoë -c user.email=z@x"
    commit = f"git -c i18n.commitEncoding=UTF-8 {author} commit -q --allow-empty -m Café"
    shell(made.path, f"{commit}; git config i18n.commitEncoding {encoding}")
    path = str(made.path)
    span = await commit_range(git, path, days=9000)
    assert "Zoë: Café" in (await subjects(git, path, span))[-1]
    assert (await collect(git, path, span)).by_author["Zoë"] == 1


@pytest.mark.parametrize("form", UNREADABLE)
async def test_what_git_cannot_read_is_told_in_its_words(tmp_path: Path, form: str) -> None:
    made = two_commits(tmp_path / "r")
    command, words = UNREADABLE[form]
    shell(made.path, command)
    with pytest.raises(AgentError, match=f"Git cannot read that repository: .*{words}"):
        await collect(git, str(made.path), await commit_range(git, str(made.path), days=9000))


def commits(*days: int) -> str:
    """Commands for a commit of each age, from the oldest; each is called by its age."""
    return "".join(
        f"GIT_COMMITTER_DATE='@{int(time.time()) - day * 86400} +0000' git commit -q --allow-empty -m {day}\n"
        for day in days
    )


MERGE = "GIT_COMMITTER_DATE=@$(($(date +%s) - {age} * 86400)) git merge -q --no-ff -m merged{age} side\n"
DATED = {  # the commits, and which of them are the last week's
    "as they should be": (commits(30, 3, 1), "3 1"),
    "the newest of 1970": (commits(30, 3, 20000), "3 20000"),
    "one of 1970 within": (commits(30, 3, 20000, 1), "3 20000 1"),
    "a clock a week behind": (commits(30, 3, 8), "3 8"),
    "a month behind": (commits(30, 3, 40, 1), "3 40 1"),
    "the first is the newest": (commits(3, 30, 2), "3 30 2"),
    "two clocks in turn": (commits(30, 5, 20000, 4, 20000), "5 20000 4 20000"),
    "only the first is recent": (commits(1, 9, 9), "1 9 9"),
    "years ahead, then behind": (commits(30, -4000, 30), "-4000 30"),
    "a year behind": (commits(400, 6, 366, 365), "6 366 365"),
    "all of 1970": (commits(20000, 20000), ""),
    "all old": (commits(30, 20), ""),
    "an older branch, merged": (
        f"{commits(30)}git branch side\n{commits(12)}git checkout -q side\n{commits(9)}git checkout -q main\n"
        + MERGE.format(age=1),
        "9",
    ),
    "an older branch, merged by a wrong clock": (
        f"{commits(30)}git branch side\n{commits(12)}git checkout -q side\n{commits(5)}git checkout -q main\n"
        + MERGE.format(age=8)
        + commits(2),
        "2",
    ),
}


@pytest.mark.parametrize(("made", "recent"), DATED.values(), ids=DATED)
async def test_wrong_clocks_hide_no_commit(tmp_path: Path, made: str, recent: str) -> None:
    path = Repository(tmp_path / "r").path
    identity = "git config user.name A; git config user.email a@b\n"
    shell(path, identity + made)
    if not recent:
        with pytest.raises(NothingToDo):
            await commit_range(git, str(path))
        return
    span = await commit_range(git, str(path))
    found = await subjects(git, str(path), span)
    assert [line.split(": ")[1] for line in found] == recent.split()
