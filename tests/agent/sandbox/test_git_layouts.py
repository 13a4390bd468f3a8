"""Every layout that git recognises: a command changes nothing that the owner's next git would run."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ToolError
from agent.sandbox import gitdirs
from agent.sandbox.gitdirs import UnguardedError
from agent.sandbox.limits import HostRepo
from agent.tools.bash import bash
from agent.tools.files import write_file
from agent.tools.git import git_commit
from fakes.patience import soon
from fakes.sandbox_box import Box, git, opened, repository


def bare_beside(top: Path) -> None:
    """`.git` is a file that leads to .bare, which has tree/ as a working tree. Paths are relative: a
    sandbox sees the repository at another place."""
    made = repository(top.with_name("made"), {"a.txt": "one\n"})
    top.mkdir()
    git(top, "clone", "-q", "--bare", str(made), ".bare")
    (top / ".git").write_text("gitdir: ./.bare\n")
    git(top, "worktree", "add", "-q", "tree", "-b", "other")
    (top / "tree/.git").write_text("gitdir: ../.bare/worktrees/tree\n")


def bare_top(top: Path) -> None:
    """The repository itself is bare, with a working tree in it."""
    made = repository(top.with_name("made"), {"a.txt": "one\n"})
    git(top.parent, "clone", "-q", "--bare", str(made), str(top))
    git(top, "worktree", "add", "-q", "tree", "-b", "other")
    (top / "tree/.git").write_text("gitdir: ../worktrees/tree\n")


def nested_bare(top: Path) -> None:
    repository(top, {"a.txt": "one\n", "tree/b.txt": "one\n"})
    git(top, "init", "-q", "--bare", "deep/er/and/deep/er/.mirror")


def separate(top: Path) -> None:
    """Settings of a git directory elsewhere in the tree, by commondir."""
    repository(top, {"a.txt": "one\n", "tree/b.txt": "one\n"})
    (top / ".git").rename(top / "common")
    (top / "own").mkdir()
    (top / "common/HEAD").rename(top / "own/HEAD")
    (top / "common/index").rename(top / "own/index")
    (top / "own/commondir").write_text("../common\n")
    (top / ".git").write_text("gitdir: own\n")


def plain(top: Path) -> None:
    repository(top, {"a.txt": "one\n", "tree/b.txt": "one\n"})


def submodule(top: Path) -> None:
    """Its git directory lies in that of the repository, and names its working tree by core.worktree."""
    made = repository(top.with_name("made"), {"b.txt": "one\n"})
    repository(top, {"a.txt": "one\n"})
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(made), "tree")
    git(top, "commit", "-q", "-m", "with a submodule")


def borrowed(top: Path) -> None:
    """A repository in it has its objects from another one in it, by alternates."""
    repository(top, {"a.txt": "one\n"})
    git(top, "clone", "-q", "--shared", ".", "tree")
    (top / "tree/.git/objects/info/alternates").write_text("../../../.git/objects\n")


LAYOUTS = {
    each.__name__: each
    for each in (bare_beside, bare_top, nested_bare, separate, plain, submodule, borrowed)
}

# As text of a config: the settings that make `git status` run a program.
EVIL = "printf '[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = .\\nfsmonitor = touch RAN;\\n'"
MAKE = f"git init -q --bare x && {EVIL} > x/config"


def owner_looks(top: Path, ran: Path) -> None:
    """`git status` and `git diff` by hand, in every folder there is."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    environment |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory"}
    environment |= {"GIT_CONFIG_VALUE_0": "*"}
    for folder, _, _ in os.walk(top):
        if "/objects" in folder or "/hooks" in folder:
            continue
        for words in (["status"], ["diff"], ["--git-dir=.", "--work-tree=/tmp/none", "status"]):
            subprocess.run(
                ["git", *words], cwd=folder, env=environment, capture_output=True, check=False
            )
        assert not ran.exists(), folder


@pytest.fixture(params=LAYOUTS)
def top(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "app"
    LAYOUTS[request.param](path)
    return path


async def run(top: Path, tmp_path: Path, command: str) -> str:
    """What bash says to the model."""
    async with opened(tmp_path / "state", repos=[HostRepo("app", top, write=True)]) as sandboxes:
        box = Box(await sandboxes.of("cli"))
        command = command.replace("RAN", str(tmp_path / "ran"))
        return await box.text(bash, command=f"cd /repos/app; {command}")


COMMANDS = [
    # What is there is changed or replaced.
    f"for f in $(find . -name config); do {EVIL} > $f; done",
    "for d in $(find . -name refs); do mkdir -p ${{d%refs}}hooks; done; "
    "for h in $(find . -name hooks); do printf '#!/bin/sh\\ntouch RAN\\n' > $h/post-index-change; "
    "chmod +x $h/post-index-change; done",
    f"for d in $(find . -name refs); do mv ${{d%refs}} x; mkdir -p $d; {MAKE}; done",
    f"{MAKE}; for d in $(find . -name refs); do realpath --relative-to=${{d%refs}} x > ${{d%refs}}commondir; done",
    f"{MAKE}; for d in . tree; do rm -f $d/.git; echo gitdir: $(realpath --relative-to=$d x) > $d/.git; done",
    f"cd tree && {MAKE}; cp -r x/* .; mv .git y; cp -r x .git",
    # Something is made.
    f"cd tree; {MAKE}",
    f"cd tree; {MAKE}; mkdir new; mv x new/.git",
    f"cd tree; {MAKE}; mkdir new; echo gitdir: ../x > new/.git",
    f"cd tree; {MAKE}; mkdir new; ln -s ../x new/.git",
    f"cd tree; {MAKE}; mkdir new; echo ref: refs/heads/x > new/HEAD; echo ../x > new/commondir",
    f"cd tree; {MAKE}; mkdir -p a/b/c/d/e/f/g; mv x a/b/c/d/e/f/g; chmod 000 a/b/c a",
    f"cd tree; {MAKE}; chmod 500 x",
    f"cd /workspace; {MAKE}; w=$(grep ' /workspace ' /proc/self/mountinfo | cut -d' ' -f4); "
    "cd /repos/app/tree; mkdir new; echo gitdir: $w/x > new/.git; mkdir l; ln -s $w/x l/.git",
    "cd tree; git init -q x; printf '#!/bin/sh\\ntouch RAN\\n' > x/.git/hooks/post-index-change; "
    "chmod +x x/.git/hooks/post-index-change; echo y > x/y; git -C x add y",
    "cd tree; git init -q x; git -C x config include.path ../y; "
    "printf '[core]\\nfsmonitor = touch RAN;\\n' > x/y",
    f"cd tree; git init -q x; {EVIL} > y; rm x/.git/config; ln y x/.git/config",
    f"cd tree; git init -q x; {EVIL} > y; ln -sf ../../y x/.git/config",
]


def pairs(layouts: Sequence[str], scripts: Sequence[str]) -> list[Any]:
    """Each script in each layout; `make test` has every other script in one layout of its own."""
    return [
        pytest.param(
            layout,
            script,
            id=f"{layout}-{number}",
            marks=() if number % 2 == 0 and place == number % len(layouts) else pytest.mark.slow,
        )
        for number, script in enumerate(scripts)
        for place, layout in enumerate(layouts)
    ]


@pytest.mark.parametrize(("top", "command"), pairs([*LAYOUTS], COMMANDS), indirect=["top"])
async def test_the_owners_git_runs_nothing_of_a_command(
    top: Path, tmp_path: Path, command: str
) -> None:
    await run(top, tmp_path, command.replace("{{", "{").replace("}}", "}"))
    owner_looks(top, tmp_path / "ran")


def test_without_the_guard_it_would(top: Path, tmp_path: Path) -> None:
    made = subprocess.run(
        ["/bin/bash", "-c", f"cd tree && {MAKE}".replace("RAN", str(tmp_path / "ran"))],
        cwd=top,
        check=False,
    )
    assert made.returncode == 0 or not (top / "tree").is_dir()
    if (top / "tree").is_dir():
        with pytest.raises(AssertionError):
            owner_looks(top, tmp_path / "ran")


async def test_all_but_git_directories_can_be_changed_and_committed(
    top: Path, tmp_path: Path
) -> None:
    change = "cd /repos/app; echo two > tree/new.txt; mkdir tree/d; mv tree/d tree/e; ls tree/e"
    async with opened(tmp_path / "state", repos=[HostRepo("app", top, write=True)]) as sandboxes:
        box = Box(await sandboxes.of("cli"))
        assert await box.text(bash, command=change) == "(done, no output)"
        await box.use(git_commit, repo="/repos/app/tree", message="more")
        for head in list(top.rglob("HEAD")):
            for path in ("config", "hooks/x", "refs/heads/x", "new/commondir"):
                name = f"/repos/app/{head.parent.relative_to(top)}/{path}"
                assert "is read-only" in await box.error(write_file, path=name, content="x")
    assert (top / "tree/new.txt").read_text() == "two\n"
    assert git(top / "tree", "log", "-1", "--format=%s") == "more"


async def test_what_was_taken_away_or_disabled_is_said_and_can_be_removed(tmp_path: Path) -> None:
    top = tmp_path / "app"
    plain(top)
    said = await run(top, tmp_path, f"{MAKE}; mkdir new; mv x new/.git; {MAKE}; echo done")
    assert said.startswith("done\n") and "/repos/app/x/HEAD" in said and "new/.git/HEAD" in said
    assert await run(top, tmp_path, "rm -r new") == "(done, no output)"


async def test_a_repository_without_settings_of_its_own_may_be_made(tmp_path: Path) -> None:
    top = tmp_path / "app"
    plain(top)
    said = await run(
        top,
        tmp_path,
        "git init -q x; cd x; git remote add o https://example.org/x.git; echo y > y; git add y; "
        "git commit -qm one; cd ..; git clone -q x y 2>&1; git init -q --separate-git-dir=z w; echo gitdir: ../z > w/.git",
    )
    assert said == "(done, no output)"
    assert git(top / "y", "log", "--format=%s") == "one"
    assert git(top / "w", "status", "--short") == ""


async def test_a_working_tree_that_the_owner_adds_meanwhile_stays(tmp_path: Path) -> None:
    top = tmp_path / "app"
    plain(top)
    async with opened(tmp_path / "state", repos=[HostRepo("app", top, write=True)]) as sandboxes:
        sandbox = await sandboxes.of("cli")
        waiting = "touch begun; until [ -e go ]; do sleep 0.05; done"
        running = asyncio.create_task(sandbox.run(waiting))
        await soon(lambda: (sandbox.workspace / "begun").exists())
        git(top, "worktree", "add", "-q", "mine")
        (sandbox.workspace / "go").touch()
        assert (await running).reason == ""
    assert git(top / "mine", "status", "--short") == ""


async def test_a_command_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    top = tmp_path / "app"
    plain(top)
    async with opened(tmp_path / "state", repos=[HostRepo("app", top, write=True)]) as sandboxes:
        sandbox = await sandboxes.of("cli")
        command = f"cd /repos/app; {MAKE}; touch /workspace/begun; sleep 600"
        running = asyncio.create_task(sandbox.run(command.replace("RAN", str(tmp_path / "ran"))))
        await soon(lambda: (sandbox.workspace / "begun").exists())
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    owner_looks(top, tmp_path / "ran")


WHILE_COMMITTED = [
    "git init -q --bare /tmp/x; printf '[core]\\nfsmonitor = touch RAN;\\n' >> /tmp/x/config; "
    "rm -rf $top/x; cp -r /tmp/x $top/x; for g in GITS; do realpath --relative-to=$g $top/x > $g/commondir; done",
    "for g in GITS; do mv $g $g.old; cp -r $g.old $g; printf '[core]\\nfsmonitor = touch RAN;\\n' >> $g/config; done",
    "for g in GITS; do mkdir -p $g/hooks; printf '#!/bin/sh\\ntouch RAN\\n' > $g/hooks/post-index-change; "
    "chmod +x $g/hooks/post-index-change; done",
    "for g in GITS; do mkdir -p $g/modules; git init -q --bare $g/modules/x; "
    "printf '[core]\\nbare = false\\nfsmonitor = touch RAN;\\n' >> $g/modules/x/config; mkdir -p $top/tree/y; "
    "echo gitdir: $(realpath --relative-to=$top/tree/y $g/modules/x) > $top/tree/y/.git; done",
]


@pytest.mark.parametrize(
    ("layout", "script"),
    pairs(["plain", "bare_beside", "separate", "bare_top"], WHILE_COMMITTED),
)
async def test_a_filter_of_the_owner_makes_no_settings_while_it_is_committed(
    tmp_path: Path, layout: str, script: str
) -> None:
    top = tmp_path / "app"
    LAYOUTS[layout](top)
    tree = top if layout in ("plain", "separate") else top / "tree"
    git(tree, "config", "filter.x.clean", "sh ./clean.sh")
    git_directories = " ".join(
        f"/repos/app/{p.parent.relative_to(top)}"
        for p in top.rglob("HEAD")
        if p.parent.name != "logs"
    )
    shutil.rmtree(next(top.rglob("hooks")), ignore_errors=True)
    (tree / "clean.sh").write_text(
        "unset $(git rev-parse --local-env-vars); top=/repos/app; ( "
        + script.replace("GITS", git_directories).replace("RAN", str(tmp_path / "ran"))
        + " ) >/dev/null 2>&1; cat"
    )
    (tree / ".gitattributes").write_text("*.new filter=x\n")
    (tree / "f.new").write_text("new\n")
    async with opened(tmp_path / "state", repos=[HostRepo("app", top, write=True)]) as sandboxes:
        box = Box(await sandboxes.of("cli"))
        repo = f"/repos/app/{tree.relative_to(top)}"
        try:
            await box.use(git_commit, repo=repo, message="new")
        except ToolError as error:
            assert "fatal" in str(error) or "error" in str(error)
    git(tree, "config", "--unset", "filter.x.clean")
    owner_looks(top, tmp_path / "ran")


async def test_file_tools_make_no_git_directory_in_steps(tmp_path: Path) -> None:
    """Nor beside a folder .git that is no git directory, past which git looks at the folder itself."""
    top = tmp_path / "app"
    plain(top)
    evil = f"[core]\nbare = false\nworktree = .\nfsmonitor = touch {tmp_path / 'ran'};\n"
    files = {"config": evil, "objects/x": "", "refs/x": "", "HEAD": "ref: refs/heads/x\n"}
    async with opened(tmp_path / "state", repos=[HostRepo("app", top, write=True)]) as sandboxes:
        box = Box(await sandboxes.of("cli"))
        for number, beside in enumerate(("", ".git", ".git/refs")):
            for order in (list(files), list(reversed(files))):
                folder = f"/repos/app/{number}{order[0]}"
                if beside:
                    await box.use(bash, command=f"mkdir -p {folder}/{beside}")
                made = [await _tried(box, f"{folder}/{name}", files[name]) for name in order]
                assert False in made
    owner_looks(top, tmp_path / "ran")


async def _tried(box: Box, path: str, content: str) -> bool:
    try:
        await box.use(write_file, path=path, content=content)
    except ToolError:
        return False
    return True


@pytest.mark.parametrize(
    ("file", "text"),
    [(".git", "gitdir: link/.bare\n"), (".bare/commondir", "../link/.bare\n")],
)
def test_a_way_through_a_link_cannot_be_guarded(tmp_path: Path, file: str, text: str) -> None:
    top = tmp_path / "app"
    bare_beside(top)
    (top / "link").symlink_to(".")
    (top / file).write_text(text)
    with pytest.raises(UnguardedError, match="is a symbolic link"):
        gitdirs.find_guard(top)


def test_shared_objects_in_the_tree_are_closed(tmp_path: Path) -> None:
    top = tmp_path / "app"
    plain(top)
    shutil.copytree(top / ".git/objects", top / "pool")
    (top / ".git/objects/info").mkdir(exist_ok=True)
    (top / ".git/objects/info/alternates").write_text("../../pool\n")
    assert "pool" in gitdirs.find_guard(top).closed


async def test_too_large_a_tree_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "app"
    plain(top)
    monkeypatch.setattr(gitdirs, "MOST_DIRECTORIES", 1)
    assert "Read-only" in await run(top, tmp_path, "touch x")
