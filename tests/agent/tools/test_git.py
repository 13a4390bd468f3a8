import os
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agent.sandbox.limits import HostRepo
from agent.tools.bash import bash
from agent.tools.files import write_file
from agent.tools.git import git_commit, git_diff, git_status
from agent.trust import Taint
from fakes.sandbox_box import Box, git, opened, repository
from fakes.words import saying


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Box]:
    """Two repositories, of another user where possible: /repos/site to read, /repos/app to write."""
    uid = 4321 if os.geteuid() == 0 else -1
    for name in ("site", "app"):
        repository(tmp_path / name, {"a.txt": "one\n"}, uid=uid)
    repos = [HostRepo("site", tmp_path / "site"), HostRepo("app", tmp_path / "app", write=True)]
    async with opened(tmp_path / "state", repos=repos) as sandboxes:
        yield Box(await sandboxes.of("cli"))


async def _project(box: Box) -> None:
    await box.use(
        bash,
        command="git init -q -b main p; cd p; printf '1\\n2\\n' > a; git add a; git commit -qm start; "
        "printf '1\\n3\\n' > a; echo new > b",
    )


async def test_status_and_changes_of_a_project_in_the_workspace(box: Box) -> None:
    await _project(box)
    assert await box.text(git_status, repo="p") == "branch main\n M a\n?? b"
    diff = await box.text(git_diff, repo="/workspace/p")
    assert "@@ -1,2 +1,2 @@\n 1\n-2\n+3\n" in diff and diff.endswith(":\nb")


async def test_changes_since_head_or_where_there_are_none_the_last_commit(box: Box) -> None:
    await _project(box)
    since = await box.text(git_diff, repo="p", revision="HEAD", path="a")
    assert since.endswith("-2\n+3") and "new file" not in since
    await box.use(git_commit, repo="p", message="Change a")
    last = await box.text(git_diff, repo="p", revision="HEAD")
    assert last == saying("Change a", "-2\n+3")
    assert "new file" in await box.text(git_diff, repo="p", revision="HEAD~1", path="a")


async def test_a_revision_of_a_repository_without_commits_is_a_sentence(box: Box) -> None:
    await box.use(bash, command="git init -q -b main p")
    for revision in ("HEAD", "main", "a..b"):
        assert await box.error(git_diff, repo="p", revision=revision) == saying("no commits yet")
    await box.use(bash, command="touch p/a")
    assert await box.text(git_diff, repo="p", revision="HEAD") == saying("a")


async def test_what_others_named_forges_no_line(box: Box) -> None:
    await box.use(
        bash,
        command=r"""
git init -q -b $'m\u2028M' p; cd p
printf 'one\n' > $'a\r M forged'; printf 'two\n' > old; git add -A
git commit --author=$'A\u2028diff --git a/x b/x <x@y>' -qm $'s\rcommit f0f0f0f'
git mv old $'b\u2028 M forged'; printf 'three\n' > $'c\n M forged'
printf 'four\r-five\u2028+six\r\n' > $'a\r M forged'
""",
    )
    status = (await box.text(git_status, repo="p")).split("\n")
    assert status == [
        "branch m␤M",
        " M a␤ M forged",
        "R  old -> b␤ M forged",
        "?? c? M forged",
    ]
    diff = (await box.text(git_diff, repo="p")).split("\n")
    assert [line for line in diff if line.startswith(("+f", "-", "+s"))][-2:] == [
        "-one",
        "+four␤-five␤+six",
    ]
    assert diff[-2:] == [saying("new files"), "c? M forged"]
    shown = (await box.text(git_diff, repo="p", revision="HEAD~0")).split("\n")
    assert shown[0].startswith("commit ") and "A␤diff --git a/x b/x" in shown[0]
    assert not any(line.startswith("commit f0f0f0f") for line in shown)


async def test_a_commit_in_the_workspace_needs_nobody(box: Box) -> None:
    await _project(box)
    said = await box.text(git_commit, repo="p", message="Change a", files=["p/a"])
    assert re.fullmatch(
        r"\[main [0-9a-f]{7}\] Change a\n 1 file changed, 1 insertion\(\+\), 1 deletion\(-\)", said
    )
    assert await box.text(git_status, repo="p") == "branch main\n?? b"
    await box.use(git_commit, repo="p", message="-m is no option")
    assert await box.text(git_status, repo="p") == saying("branch main\n", "nothing to commit")
    assert await box.error(git_commit, repo="p", message="again") == saying("nothing to commit")
    log = await box.text(bash, command="cd p; git log --format='%s by %an'")
    assert log == "-m is no option by Voltaire\nChange a by Voltaire\nstart by Voltaire"
    assert box.asked == []


async def test_a_first_commit(box: Box) -> None:
    await box.use(bash, command="git init -q -b main p; echo x > p/x")
    assert await box.text(git_status, repo="p") == saying("branch main", "no commits", "\n?? x")
    assert "root-commit" in await box.text(git_commit, repo="p", message="first")


async def test_object_ids_of_64_digits(box: Box) -> None:
    await box.use(
        bash,
        command="git init -q -b main --object-format=sha256 p; cd p; echo 1 > a; git add a; git commit -qm one",
    )
    assert await box.text(git_status, repo="p") == saying("branch main\n", "nothing to commit")
    await box.use(bash, command="cd p; echo 2 > a; echo 3 > b")
    assert await box.text(git_status, repo="p") == "branch main\n M a\n?? b"
    assert (await box.text(git_diff, repo="p")).endswith("not in the diff:\nb")
    assert await box.text(git_commit, repo="p", message="Two") == saying("Two", "2 files changed")
    head = await box.text(bash, command="cd p; git rev-parse HEAD")
    assert len(head) == 64
    for revision in (head, head[:12], "HEAD", f"{head}^..{head}"):
        assert "-1\n+2" in await box.text(git_diff, repo="p", revision=revision)
    await box.use(bash, command="git init -q -b main --object-format=sha256 q; echo x > q/x")
    assert (await box.text(git_diff, repo="q")).endswith("not in the diff:\nx")
    assert "root-commit" in await box.text(git_commit, repo="q", message="first")


async def test_what_is_no_repository(host: Box) -> None:
    assert await host.error(git_status, repo=".") == saying("at /workspace", "site, app")
    assert await host.error(git_diff, repo="site", revision="nonsense") == (
        "fatal: bad revision 'nonsense'"
    )
    refused = await host.error(git_diff, repo="site", revision="--no-index")
    assert refused == saying("--no-index is not a revision", "A..B")
    assert await host.error(git_commit, repo="app", message=" ") == "message is empty."


async def test_a_repository_of_the_host_is_read(host: Box, tmp_path: Path) -> None:
    (tmp_path / "site/a.txt").write_text("two\n")
    assert await host.text(git_status, repo="site") == "branch main\n M a.txt"
    assert await host.text(git_status, repo="/repos/site") == "branch main\n M a.txt"
    assert (await host.text(git_diff, repo="site")).endswith("-one\n+two")
    assert "-one" not in await host.text(git_diff, repo="site", revision="main")
    refused = await host.error(git_commit, repo="site", message="m")
    assert refused == saying("/repos/site is read-only", "write = true")


async def test_a_commit_to_the_host_is_shown_and_asked(host: Box, tmp_path: Path) -> None:
    await host.use(bash, command="echo two > /repos/app/a.txt; echo n > /repos/app/n.txt")
    said = await host.text(git_commit, repo="app", message="Two", files=["/repos/app/a.txt"])
    assert said.endswith("Two\n 1 file changed, 1 insertion(+), 1 deletion(-)")
    ((what, scope),) = host.asked
    assert what.partition("\n\n")[0] == saying("app: Two") and "\n\n a.txt | 2 +-\n" in what
    assert what.endswith("@@ -1 +1 @@\n-one\n+two\n")
    assert scope == "commit:app"
    assert git(tmp_path / "app", "log", "--format=%s %an") == "Two Voltaire\nfirst o"
    assert git(tmp_path / "app", "status", "--short") == "?? n.txt"
    owner = (tmp_path / "app").stat().st_uid
    assert {p.lstat().st_uid for p in (tmp_path / "app").rglob("*")} == {owner}


async def test_bash_and_files_cannot_change_the_git_of_the_host(host: Box, tmp_path: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "app").rglob("*")}
    for command in (
        "echo x > .git/hooks/post-checkout",
        "git config core.fsmonitor x",
        "rm -rf .git",
        "mv .git old",
        "ln .git/config c",
        "git commit -q --allow-empty -m x",
        "mount -o remount,rw .git",
    ):
        ran = await host.sandbox.run(f"cd /repos/app && {command}")
        assert ran.exit_code != 0, command
    for path in ("/repos/app/.git/hooks/x", "/repos/app/.git", "/repos/app/sub/.git/config"):
        refused = await host.error(write_file, path=path, content="x")
        assert refused == saying(f"{path} is read-only", "git_commit")
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "app").rglob("*")} == before
    assert (
        await host.sandbox.run("cd /repos/app && echo two > a.txt && git status -s")
    ).output == (" M a.txt\n")


async def test_a_commit_by_bash_is_told_the_way(host: Box) -> None:
    said = await host.text(bash, command="cd /repos/app && git commit -qm x --allow-empty")
    assert said.splitlines()[-2:] == [saying("read-only", "git_commit"), "exit code: 128"]


async def test_a_repository_whose_git_is_a_link_is_not_written_to(tmp_path: Path) -> None:
    repository(tmp_path / "app", {"a.txt": "one\n"})
    (tmp_path / "app/.git").rename(tmp_path / "app/.real")
    (tmp_path / "app/.git").symlink_to(".real")
    repos = [HostRepo("app", tmp_path / "app", write=True)]
    async with opened(tmp_path / "state", repos=repos) as sandboxes:
        ran = await (await sandboxes.of("cli")).run("echo x > /repos/app/.real/hooks/x")
    assert (ran.exit_code, list((tmp_path / "app/.real/hooks").glob("x"))) == (1, [])


async def test_a_denied_commit_leaves_no_trace(host: Box, tmp_path: Path) -> None:
    host.allows = False
    await host.use(bash, command="echo two > /repos/app/a.txt")
    before = sorted(p.name for p in (tmp_path / "app/.git").rglob("*"))
    assert await host.error(git_commit, repo="app", message="Two") == "The owner said no."
    assert sorted(p.name for p in (tmp_path / "app/.git").rglob("*")) == before
    assert git(tmp_path / "app", "log", "--format=%s") == "first"


async def test_what_changed_after_the_approval_is_not_committed(host: Box, tmp_path: Path) -> None:
    (tmp_path / "app/a.txt").write_text("shown\n")

    async def approve(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
        assert "+shown" in what
        (tmp_path / "app/a.txt").write_text("other\n")

    host.approve = approve
    refused = await host.error(git_commit, repo="app", message="m")
    assert refused == saying("nothing was committed", "approved")
    assert git(tmp_path / "app", "log", "--format=%s") == "first"


async def test_an_owner_is_shown_what_is_hidden_in_a_commit(host: Box, tmp_path: Path) -> None:
    """Direction marks and escapes are in the file, so they are in the question."""
    (tmp_path / "app/a.txt").write_text("one \u202ebad\x1b[8m\u200b\n" + "x\n" * 5000)
    await host.use(git_commit, repo="app", message="m")
    ((what, _),) = host.asked
    assert "+one \u202ebad\x1b[8m\u200b\n" in what
    assert what.count("+x\n") == 5000  # a question sends as a file what it cannot show


@pytest.mark.parametrize("attributes", ["*.txt -diff", "*.txt binary"])
async def test_no_attribute_hides_the_text_of_a_commit(
    host: Box, tmp_path: Path, attributes: str
) -> None:
    (tmp_path / "app/.gitattributes").write_text(f"{attributes}\n")
    (tmp_path / "app/a.txt").write_text("two\n")
    (tmp_path / "app/new name.txt").write_text("three\n")
    (tmp_path / "app/b.bin").write_bytes(b"\0\1")
    await host.use(git_commit, repo="app", message="m")
    ((what, _),) = host.asked
    assert "\n-one\n+two\n" in what and "\n+three\n" in what
    assert "Binary files /dev/null and b/b.bin differ" in what
    assert "\0" not in what
    blob = git(tmp_path / "app", "rev-parse", "HEAD:b.bin")
    assert f"..{blob}" in what  # all of it stands for what is not shown


async def test_no_setting_hides_a_repository_in_a_commit(host: Box, tmp_path: Path) -> None:
    (tmp_path / "app/.gitmodules").write_text(
        '[submodule "x"]\n\tpath = x\n\turl = ./x\n\tignore = all\n'
    )
    await host.use(
        bash,
        command="cd /repos/app; git init -q x; echo y > x/y; git -C x add y; git -C x commit -qm one",
    )
    assert "a repository of its own" in await host.error(git_commit, repo="app", message="m")


async def test_of_a_made_up_repository_the_names_of_those_there_are_told(box: Box) -> None:
    assert "There is none" in await box.error(git_status, repo="/home/user/repo")
    await box.use(bash, command="git init -q 'my site'; git init -q deep/er")
    told = await box.error(git_status, repo="/home/user/repo")
    assert told.endswith("There are: deep/er, my site.")


WARNED = (  # what git warns of, or what another program of git would need
    "echo broken > .git/objects/info/commit-graph",
    "git rev-parse HEAD > .git/info/grafts",
    "git update-ref refs/heads/HEAD HEAD",
    "git update-index --force-untracked-cache",
    "git config diff.orderFile missing",
    "git config diff.renames nonsense; git config diff.renames true; git tag main",
    "git config core.fsmonitor /missing",
    "touch .git/index.lock",
    "git config diff.external /missing; git config core.pager /missing",
    "git config color.ui always",
)


@pytest.mark.parametrize("command", WARNED)
async def test_a_warning_is_neither_a_branch_nor_a_change(box: Box, command: str) -> None:
    made = "git init -q -b main p; cd p; echo one > a; git add a; git commit -qm start"
    await box.use(bash, command=f"{made}; {command}")
    assert await box.text(git_status, repo="p") == saying("branch main\nnothing to commit")
    assert (await box.text(git_diff, repo="p", revision="HEAD")).startswith("commit ")
    assert await box.text(git_diff, repo="p") == "no changes"


async def test_a_repository_without_a_working_tree_has_commits(box: Box) -> None:
    await _project(box)
    await box.use(bash, command="git clone -q --bare p b")
    for revision in ("", "HEAD", "main"):
        assert "+1\n+2" in await box.text(git_diff, repo="b", revision=revision)
    assert "work tree" in await box.error(git_status, repo="b")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("git config core.repositoryformatversion 7", "version"),
        ("echo '[' >> .git/config", "bad config line"),
        ("git config core.worktree ../../gone", "gone"),
        ("mv .git ../g; echo gitdir: /gone/g > .git", "/gone/g"),
        ("rm -r .git/refs", "not a git repository"),
    ],
)
async def test_why_git_does_not_take_it_for_a_repository(
    box: Box, command: str, reason: str
) -> None:
    await box.use(bash, command=f"git init -q p; cd p; {command}")
    assert reason in await box.error(git_status, repo="p")
