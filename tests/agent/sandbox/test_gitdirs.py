"""What the owner's git reads and runs, in a repository that commands may write to."""

import os
import shutil
import struct
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.errors import ToolError
from agent.sandbox.bubblewrap import verify_mounts
from agent.sandbox.bwrap_process import run_bwrap
from agent.sandbox.gitdirs import (
    SETTLED_NS,
    UnguardedError,
    disable_new,
    find_guard,
    submodule_paths,
)
from agent.sandbox.limits import HostRepo
from agent.tools.git import git_commit
from fakes.sandbox_box import Box, git, opened, repository
from fakes.words import saying

LOCAL = ("-c", "protocol.file.allow=always")
MONITOR = "git config core.fsmonitor 'touch {};'"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """With a submodule, one that is not checked out, and a repository that it knows nothing of."""
    library = repository(tmp_path / "library", {"b.txt": "one\n"})
    app = repository(tmp_path / "app", {"a.txt": "one\n", ".gitignore": "/own\n"})
    for name in ("vendor/lib", "bare"):
        git(app, *LOCAL, "submodule", "--quiet", "add", str(library), name)
    git(app, "commit", "-q", "-m", "submodules")
    git(app, "submodule", "--quiet", "deinit", "bare")
    repository(app / "own/tool", {"c.txt": "one\n"})
    return app


@pytest.fixture
async def box(app: Path, tmp_path: Path) -> AsyncIterator[Box]:
    repos = [HostRepo("app", app, write=True)]
    async with opened(tmp_path / "state", repos=repos) as sandboxes:
        yield Box(await sandboxes.of("cli"))


COMMANDS = (
    f"cd vendor/lib && rm .git && git init -q && {MONITOR}",
    f"cd vendor/lib && {MONITOR}",
    f"mv vendor/lib vendor/old; mkdir vendor/lib; cd vendor/lib && git init -q && {MONITOR}",
    f"mv vendor old; mkdir -p vendor/lib; cd vendor/lib && git init -q && {MONITOR}",
    f"cd bare && git init -q && {MONITOR}",
    f"mv bare old; mkdir bare; cd bare && git init -q && {MONITOR}",
    f"cd own/tool && {MONITOR}",
    f"mv own/tool/.git own/tool/old; cd own/tool && git init -q && {MONITOR}",
)


async def test_no_git_of_the_owner_runs_what_a_command_wrote(
    box: Box, app: Path, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    for command in COMMANDS:
        tried = await box.sandbox.run(f"cd /repos/app; {command.format(ran)}")
        assert tried.exit_code != 0, command
        for path in (app, app / "own/tool"):
            git(path, "status")
            git(path, "diff")
        assert not ran.exists(), command


async def test_without_the_guard_it_would_run(app: Path, tmp_path: Path) -> None:
    """A submodule that was replaced: the owner's `git status` above it runs its monitor."""
    lib, ran = app / "vendor/lib", tmp_path / "ran"
    (lib / ".git").unlink()
    repository(lib, {"b.txt": "two\n"})
    git(lib, "config", "core.fsmonitor", f"touch {ran};")
    git(app, "status")
    assert ran.exists()


async def test_all_else_can_be_changed(box: Box, app: Path) -> None:
    ran = await box.sandbox.run(
        "cd /repos/app && echo two > vendor/lib/b.txt && mkdir vendor/x && mv vendor/x own/y && "
        "rm own/tool/c.txt && git -C own/tool status --short"
    )
    assert (ran.exit_code, ran.output) == (0, " D c.txt\n")
    assert (app / "vendor/lib/b.txt").read_text() == "two\n"


async def test_a_repository_inside_is_committed_to_with_its_settings_closed(
    box: Box, app: Path
) -> None:
    tool = app / "own/tool"
    (tool / ".gitattributes").write_text("*.txt filter=x\n")
    git(tool, "config", "filter.x.clean", "sh ./clean.sh")
    (tool / "clean.sh").write_text(
        "for g in .git ../../.git; do echo hook > $g/hooks/post-checkout; echo '[x]' >> $g/config; done; cat"
    )
    config = (tool / ".git/config").read_text()
    await box.use(git_commit, repo="/repos/app/own/tool", message="more", files=["clean.sh"])
    (tool / "c.txt").write_text("two\n")
    await box.use(git_commit, repo="/repos/app/own/tool", message="changed")
    assert git(tool, "log", "--format=%s") == "changed\nmore\nfirst"
    assert (tool / ".git/config").read_text() == config
    assert not any((top / ".git/hooks/post-checkout").exists() for top in (app, tool))


async def test_no_commit_makes_a_submodule_of_what_a_command_made(box: Box, app: Path) -> None:
    made = "git init -q new; cd new; echo x > f; git add f; git commit -qm x"
    assert (await box.sandbox.run(f"cd /repos/app; {made}")).exit_code == 0
    refused = await box.error(git_commit, repo="app", message="m")
    assert refused == saying("nothing was committed", "repository of its own")
    assert (box.asked, git(app, "log", "-1", "--format=%s")) == ([], "submodules")


async def test_where_a_submodule_is_missing_nothing_is_written(box: Box, app: Path) -> None:
    (app / "bare").rmdir()
    ran = await box.sandbox.run("cd /repos/app && mkdir bare")
    assert (ran.exit_code, (app / "bare").exists()) == (1, False)


async def test_a_path_that_turns_into_a_link_while_it_is_mounted_stops_the_call(
    box: Box, app: Path
) -> None:
    config = box.sandbox.config
    guards = {"app": find_guard(app)}
    invocation = config.invocation(box.sandbox.workspace, ["/bin/true"], guards=guards)
    shutil.move(app / "own/tool", app / "own/old")
    (app / "own/tool").symlink_to("../vendor/lib")
    async with run_bwrap(config.user, invocation) as process:
        init = await process.started()
        assert init is not None
        with pytest.raises(ToolError, match="was changed in this moment, so nothing was run"):
            await verify_mounts(init, process.ended, invocation.nested_mounts)


@pytest.mark.parametrize("digest", ["sha1", "sha256"])
def test_submodules_are_read_from_every_form_of_index(tmp_path: Path, digest: str) -> None:
    top, library = tmp_path / "top", tmp_path / "library"
    for path in (top, library):
        path.mkdir()
        git(path, "init", "-q", f"--object-format={digest}")
        (path / "a b").write_text("one\n")
        for number in range(9):
            (path / f"{'x' * 20 * number}{number}").write_text("")
        git(path, "add", ".")
        git(path, "commit", "-q", "-m", "first")
    for name in ("v/lib", "zlib"):
        git(top, *LOCAL, "submodule", "--quiet", "add", str(library), name)
    (top / "later").touch()
    git(top, "add", "-N", "later")
    shutil.rmtree(top / "zlib")
    (top / "zlib").mkdir()
    modules = [".git", ".git/modules", ".git/modules/v", ".git/modules/v/lib", ".git/modules/zlib"]
    settings = [
        *(".git/config", ".git/hooks"),
        *(".git/modules/v/lib/config", ".git/modules/v/lib/hooks"),
        *(".git/modules/zlib/config", ".git/modules/zlib/hooks"),
        *("v/lib/.git", "zlib"),
    ]
    for version in ("2", "3", "4"):
        git(top, "update-index", "--index-version", version)
        found = find_guard(top)
        assert found.mounts(commit=False) == (["v", "v/lib"], [".git", "v/lib/.git", "zlib"])
        assert found.mounts(commit=True) == ([*modules, "v", "v/lib"], settings)


def test_a_broken_index_and_a_linked_git_cannot_be_guarded(app: Path) -> None:
    index = (app / ".git/index").read_bytes()
    (app / ".git/index").write_bytes(index[: index.index(b"vendor/lib") + 3])
    with pytest.raises(UnguardedError):
        find_guard(app)
    (app / ".git").rename(app / ".real")
    (app / ".git").symlink_to(".real")
    with pytest.raises(UnguardedError, match="is a symbolic link"):
        find_guard(app)


def test_a_worktree_has_its_index_elsewhere(app: Path, tmp_path: Path) -> None:
    git(app, "worktree", "add", "-q", str(tmp_path / "tree"))
    found = find_guard(tmp_path / "tree")
    assert found.mounts(commit=False) == (["vendor"], [".git", "bare", "vendor/lib"])


def test_submodules_of_submodules_are_guarded_too(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"f": "1"})
    middle = repository(tmp_path / "middle", {"f": "1"})
    git(middle, *LOCAL, "submodule", "--quiet", "add", str(inner), "a/b/c/d")
    git(middle, "commit", "-q", "-m", "inner")
    top = repository(tmp_path / "top", {"f": "1"})
    git(top, *LOCAL, "submodule", "--quiet", "add", str(middle), "m")
    git(top, *LOCAL, "submodule", "--quiet", "update", "--init", "--recursive")
    assert find_guard(top).mounts(commit=False) == (
        ["m", "m/a", "m/a/b", "m/a/b/c", "m/a/b/c/d"],
        [".git", "m/.git", "m/a/b/c/d/.git"],
    )


def test_an_index_that_a_command_made_leads_nowhere(app: Path) -> None:
    (app / "new").mkdir()
    git(app / "new", "init", "-q")
    for name in ("../secret", "/secret", "x/../../secret", "x/.git"):
        link = b"\0" * 24 + struct.pack(">I", 0o160000) + b"\0" * 32 + struct.pack(">H", len(name))
        entry = (link + name.encode()).ljust((len(link + name.encode()) + 8) // 8 * 8, b"\0")
        (app / "new/.git/index").write_bytes(b"DIRC" + struct.pack(">II", 2, 1) + entry)
        with pytest.raises(UnguardedError, match="the index names a submodule"):
            find_guard(app)


def test_an_index_that_is_no_file_does_not_keep_us_waiting(app: Path) -> None:
    (app / "new").mkdir()
    git(app / "new", "init", "-q")
    os.mkfifo(app / "new/.git/index")
    with pytest.raises(UnguardedError, match="is no file of git"):
        find_guard(app)


def test_a_directory_that_did_not_change_is_read_once(tmp_path: Path) -> None:
    app = repository(tmp_path / "app", {"deep/er/a.txt": "one\n", "b/c.txt": "two\n"})
    for folder in (app, *(path for path in app.rglob("*") if path.is_dir())):
        settled(folder)
    guard = find_guard(app)
    assert {"", "deep", "deep/er", "b"} <= guard.unchanging.keys()
    again = find_guard(app, guard)
    assert again == guard
    assert all(again.unchanging[path] is guard.unchanging[path] for path in guard.unchanging)
    repository(app / "b/new", {"d.txt": "three\n"})
    made = find_guard(app, guard)
    assert "b/new/.git" in made.closed and made.unchanging["deep"] is guard.unchanging["deep"]
    (app / "b/new/.git/config").write_text("[core]\n\tfsmonitor = touch x\n")
    assert disable_new(app, guard) == ["b/new/.git/HEAD"]


def settled(folder: Path) -> None:
    """Wait until its last change is so old that a next one shows."""
    while time.time_ns() - folder.stat().st_ctime_ns <= SETTLED_NS:
        time.sleep(0.05)


def test_the_object_format_is_read_as_git_reads_it(tmp_path: Path) -> None:
    """In a repository and in a working tree of it."""
    top, library = tmp_path / "top", tmp_path / "library"
    for path in (top, library):
        path.mkdir()
        git(path, "init", "-q", "--object-format=sha256")
        (path / "a").write_text("one\n")
        git(path, "add", ".")
        git(path, "commit", "-q", "-m", "first")
    git(top, *LOCAL, "submodule", "--quiet", "add", str(library), "zlib")
    git(top, "commit", "-q", "-m", "second")
    git(top, "worktree", "add", "-q", str(tmp_path / "beside"))
    config = top / ".git/config"
    text = config.read_text()
    for written in (
        "\tobjectformat = sha256",
        "\tobjectFormat = sha256",
        "objectformat=sha256",
        '\tobjectformat = "sha256"',
        "\tobjectformat\t=\tsha256 ; since 2.29",
        "\tobjectformat = sha256 # here",
        "  OBJECTFORMAT = sha256",
    ):
        config.write_text(text.replace("\tobjectformat = sha256", written))
        for where in (top / ".git", top / ".git/worktrees/beside"):
            assert list(submodule_paths(where)) == ["zlib"], written
