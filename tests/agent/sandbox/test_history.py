"""What turns changed in a workspace, and taking it back: byte for byte, whole or not at all, also after a kill."""

import os
import random
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ToolError
from agent.sandbox.files import WorkspaceTaints
from agent.sandbox.history import WorkspaceHistory, open_file, place_of
from agent.sandbox.openat2 import closing_fd

NAMES = (
    "a",
    "b.txt",
    "ü",
    "c d",
    "-x",
    "sub",
    "deep",
    b"\xff\xfe".decode("utf-8", "surrogateescape"),
)
MODES = (0o644, 0o600, 0o755, 0o444, 0o000, 0o777)

Tree = dict[str, tuple[str, int, bytes]]


OUTSIDE = "outside"  # a file beside the workspace that links point to


def history_in(folder: Path, limit_mib: int = 64) -> WorkspaceHistory:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return WorkspaceHistory(work, limit_mib, WorkspaceTaints(folder / "strangers.json"))


def tree(work: Path) -> Tree:
    """Kind, mode and content of all in a workspace."""
    found: Tree = {}
    for parent, folders, names in os.walk(work):
        for name in [*folders, *names]:
            path = Path(parent, name)
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            key = str(path.relative_to(work))
            if path.is_symlink():
                found[key] = "link", 0, os.fsencode(path.readlink())
            elif path.is_dir():
                found[key] = "folder", mode, b""
            else:
                found[key] = "file", mode, path.read_bytes()
    return found


def clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        for each in path.iterdir():
            clear(each)
        path.rmdir()
    else:
        path.unlink()


def change(work: Path, random: random.Random) -> None:
    """One random operation of a turn. Nothing is written through a link: the tests run as root, too."""
    folders = [work, *(p for p in work.rglob("*") if p.is_dir() and not p.is_symlink())]
    here = random.choice(folders) / random.choice(NAMES)
    there = random.choice(folders) / random.choice(NAMES)
    with suppress(OSError):
        match random.randrange(10):
            case 0 | 1 | 2:
                write(
                    here,
                    os.O_CREAT | os.O_TRUNC,
                    random.randbytes(random.choice((0, 1, 5, 4096, 70_000))),
                )
            case 3:
                write(here, 0, random.randbytes(1))  # in place, of the same size
            case 4:
                here.mkdir()
            case 5:
                here.symlink_to(
                    random.choice(("a", work.parent / OUTSIDE, "../..", "nowhere", "sub"))
                )
            case 6:
                if here.exists() and not here.is_symlink():
                    here.chmod(random.choice(MODES))
            case 7:
                clear(here)
            case 8:
                here.rename(there)
            case 9:
                there.hardlink_to(here)


def write(path: Path, flags: int, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | flags), "wb") as file:
        file.write(content)


def turn(history: WorkspaceHistory, name: str, random: random.Random) -> int:
    history.begin(name)
    for _ in range(random.randrange(1, 12)):
        change(history.workspace, random)
    return history.end(name)


def killed_in(steps: int, work: Callable[[], object]) -> bool:
    """Do something in a process that is killed at its nth step that touches files; whether it was."""
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
        return os.WIFSIGNALED(status)
    left = steps

    def count(event: str, _: object) -> None:
        nonlocal left
        if event.startswith(("os.", "open", "shutil", "fcntl")):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def random_turns(folder: Path, count: int) -> None:
    """Turns, each taken back at once or later in reverse order; every third undo is killed."""
    rand = random.Random(count)
    history = history_in(folder)
    (folder / OUTSIDE).write_text("as it was")
    before: list[tuple[int, Tree]] = []
    for n in range(count):
        tree_before = tree(history.workspace)
        number = turn(history, f"turn{n}", rand)
        after = tree(history.workspace)
        assert bool(number) == (after != tree_before), n
        if number:
            before.append((number, tree_before))
        known = {record.number for record in history.records()}
        before = [each for each in before if each[0] in known]
        if rand.random() < 0.3 or len(before) > 6:
            for number, was in reversed(before[-rand.randrange(1, 4) :]):
                before.pop()
                if rand.random() < 0.6:
                    now = tree(history.workspace)
                    died = killed_in(rand.randrange(1, 250), lambda: history.undo(number))  # noqa: B023
                    history = history_in(folder)
                    history.recover()
                    assert tree(history.workspace) in (was, now), (n, died)
                assert history.undo(number).done
                assert tree(history.workspace) == was, n
    assert (folder / OUTSIDE).read_text() == "as it was"


def test_random_turns_are_taken_back_byte_for_byte(tmp_path: Path) -> None:
    random_turns(tmp_path, 60)


@pytest.mark.slow
def test_three_hundred_random_turns_are_taken_back_byte_for_byte(tmp_path: Path) -> None:
    random_turns(tmp_path, 300)


def changed(history: WorkspaceHistory, name: str, work: Callable[[Path], object]) -> int:
    history.begin(name)
    work(history.workspace)
    return history.end(name)


def test_a_turn_that_changes_nothing_is_not_recorded(tmp_path: Path) -> None:
    history = history_in(tmp_path)
    (history.workspace / "a").write_text("one")
    assert changed(history, "t1", lambda work: (work / "a").touch()) == 0
    assert changed(history, "t2", lambda work: (work / ".voltaire").mkdir()) == 0
    assert history.end("t3") == 0
    assert history.records() == []


@pytest.mark.parametrize("at", range(1, 60, 6))
def test_a_killed_begin_or_end_of_a_turn_loses_nothing(tmp_path: Path, at: int) -> None:
    history = history_in(tmp_path)
    (history.workspace / "a").write_text("one")
    killed_in(at, lambda: history.begin("t1"))
    history = history_in(tmp_path)
    history.begin("t1")
    (history.workspace / "a").write_text("two")
    killed_in(at, lambda: history.end("t1"))
    history = history_in(tmp_path)
    history.begin("t1")  # resumed: what it does now is the same turn's
    (history.workspace / "b").write_text("three")
    number = history.end("t1")
    assert (number, history.end("t1")) == (1, 1)
    assert history.undo(number).done
    assert tree(history.workspace) == {"a": ("file", 0o644, b"one")}


def test_a_turn_that_was_given_up_is_listed_and_taken_back(tmp_path: Path) -> None:
    history = history_in(tmp_path)
    changed(history, "t1", lambda work: (work / "a").write_text("one"))
    history.begin("t2")
    (history.workspace / "a").write_text("two")
    history = history_in(tmp_path)  # after a kill; the turn is not resumed any more
    assert [each.turn for each in history.ended()] == ["t2", "t1"]
    assert history.undo(2).done
    assert (history.workspace / "a").read_text() == "one"
    history.begin("t3")
    (history.workspace / "a").write_text("three")
    assert [each.turn for each in history.ended()] == ["t2", "t1"], "one that runs goes on"
    assert history.end("t3") == 3


def test_what_changed_since_is_told_before_anything_is_touched(tmp_path: Path) -> None:
    history = history_in(tmp_path)
    (history.workspace / "kept").write_text("kept")

    def first(work: Path) -> None:
        (work / "new").mkdir()
        (work / "new" / "a").write_text("a")
        (work / "kept").unlink()

    number = changed(history, "t1", first)
    (history.workspace / "new" / "theirs").write_text("made later")
    (history.workspace / "new" / "a").write_text("b")
    now = tree(history.workspace)
    result = history.undo(number)
    assert (result.done, set(result.conflicts)) == (False, {"new/a", "new/theirs"})
    assert tree(history.workspace) == now
    assert history.undo(number, anyway=True).done
    assert tree(history.workspace) == {
        "kept": ("file", 0o644, b"kept"),
        "new": ("folder", 0o755, b""),
        "new/theirs": ("file", 0o644, b"made later"),
    }


def test_a_folder_that_a_later_turn_removed_is_made_again(tmp_path: Path) -> None:
    history = history_in(tmp_path)
    file = history.workspace / "folder" / "a"
    file.parent.mkdir()
    file.write_text("one")
    number = changed(history, "t1", lambda _: file.write_text("two"))
    changed(history, "t2", lambda _: clear(file.parent))
    assert not history.undo(number).done
    assert history.undo(number, anyway=True).done
    assert file.read_text() == "one"


def test_twice_is_once_and_a_running_turn_is_left_alone(tmp_path: Path) -> None:
    history = history_in(tmp_path)
    number = changed(history, "t1", lambda work: (work / "a").write_text("one"))
    assert history.undo(number).done
    (history.workspace / "a").write_text("mine")
    assert history.undo(number).done
    assert (history.workspace / "a").read_text() == "mine"
    history.begin("t2")
    with pytest.raises(ToolError):
        history.undo(number)


def test_a_link_in_place_of_a_folder_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("not theirs")
    history = history_in(tmp_path)
    (history.workspace / "folder").mkdir()
    (history.workspace / "folder" / "a").write_text("one")
    number = changed(history, "t1", lambda work: (work / "folder" / "a").write_text("two"))

    def swap(work: Path) -> None:
        clear(work / "folder")
        (work / "folder").symlink_to(outside)

    changed(history, "t2", swap)
    assert not history.undo(number).done
    assert history.undo(number, anyway=True).done
    assert tree(outside) == {"a": ("file", 0o644, b"not theirs")}
    assert tree(history.workspace)["folder/a"] == ("file", 0o644, b"one")
    with closing_fd(os.open(history.workspace, os.O_RDONLY)) as root:
        (history.workspace / "link").symlink_to(outside)
        with pytest.raises(OSError), place_of(root, "link/a"):
            pass
        with pytest.raises(OSError):
            open_file(root, "link")


def test_links_are_neither_read_nor_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    history = history_in(tmp_path)
    number = changed(history, "t1", lambda work: (work / "a").symlink_to(secret))
    copies = history.folder / "copies"
    assert [path for path in copies.iterdir() if b"secret" in path.read_bytes()] == []
    assert history.undo(number).done
    assert secret.read_text() == "secret"


def test_what_is_kept_is_bounded_and_the_oldest_goes_first(tmp_path: Path) -> None:
    history = history_in(tmp_path, limit_mib=1)
    for n in range(6):
        number = changed(
            history, f"t{n}", lambda work: (work / "a").write_bytes(os.urandom(300_000))
        )
        assert number == n + 1
        assert sum(path.stat().st_size for path in (history.folder / "copies").iterdir()) <= 1 << 20
    assert [record.number for record in history.records()] == [6, 5]
    big = changed(history, "big", lambda work: (work / "b").write_bytes(os.urandom(2 << 20)))
    assert history.undo(big).done  # to remove it needs no copy
    (history.workspace / "b").write_bytes(os.urandom(2 << 20))
    lost = changed(history, "lost", lambda work: (work / "b").unlink())
    assert history.undo(lost).conflicts == {"b": "lost"}


@pytest.mark.parametrize("room", ["disk", "limit"])
def test_without_room_nothing_is_touched(tmp_path: Path, room: str) -> None:
    with small_disk(tmp_path) as disk:
        history = history_in(disk)
        (history.workspace / "a").write_bytes(os.urandom(700_000))
        (history.workspace / "folder").mkdir()
        (history.workspace / "folder" / "b").write_bytes(os.urandom(100_000))

        def replace_all(work: Path) -> None:
            clear(work / "folder")
            (work / "a").write_bytes(b"")
            (work / "new").mkdir()

        before = tree(history.workspace)
        number = changed(history, "t1", replace_all)
        now = tree(history.workspace)
        if room == "disk":
            filler = disk / "filler"
            with suppress(OSError), filler.open("wb") as file:
                while True:
                    file.write(bytes(4096))
                    file.flush()
            with pytest.raises(ToolError):
                history.undo(number)
            assert tree(history.workspace) == now
            filler.unlink()
        else:
            pid = os.fork()
            if not pid:
                resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
                try:
                    history.undo(number)
                except ToolError:
                    os._exit(7)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
            assert tree(history.workspace) == now
        assert history.undo(number).done
        assert tree(history.workspace) == before


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A filesystem of 4 MiB in memory."""
    disk = folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=False)
    if mounted.returncode:
        pytest.skip("this user may not mount")
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_step_that_fails_is_reversed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rand = random.Random(5)
    history = history_in(tmp_path)
    before, number = tree(history.workspace), 0
    while number < 2:
        before = tree(history.workspace)
        number = turn(history, f"t{rand.randrange(1 << 30)}", rand)
    now = tree(history.workspace)
    real, left = os.rename, 0

    def failing(*args: Any, **fds: Any) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise OSError(28, "No space left on device")
        real(*args, **fds)

    monkeypatch.setattr(os, "rename", failing)
    for steps in range(1, 6):
        left = steps
        with suppress(ToolError):
            history.undo(number)
            break
        left = 0
        assert tree(history.workspace) == now
    left = 0
    assert history.undo(number).done
    assert tree(history.workspace) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="this is an ordinary user already")
def test_an_ordinary_user_takes_back_what_is_closed_to_it() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chown(folder, 12345, 12345)
        pid = os.fork()
        if not pid:
            os.setgid(12345)
            os.setuid(12345)
            try:
                taken_back_when_closed(folder)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def taken_back_when_closed(folder: Path) -> None:
    history = history_in(folder)
    inner = history.workspace / "closed" / "inner"
    inner.mkdir(parents=True)
    (inner / "a").write_text("one")
    (inner / "a").chmod(0)
    inner.chmod(0o500)
    (history.workspace / "closed").chmod(0)

    def change_all(work: Path) -> None:
        (work / "closed").chmod(0o700)
        inner.chmod(0o700)
        (inner / "a").unlink()
        inner.rmdir()
        (work / "closed").rmdir()
        (work / "new" / "deep").mkdir(parents=True)
        (work / "new" / "deep").chmod(0)
        (work / "new").chmod(0o555)

    assert history.undo(changed(history, "t1", change_all)).done
    assert [path.name for path in history.workspace.iterdir()] == ["closed"]
    assert stat.S_IMODE((history.workspace / "closed").stat().st_mode) == 0
    (history.workspace / "closed").chmod(0o700)
    assert stat.S_IMODE(inner.stat().st_mode) == 0o500
    assert stat.S_IMODE((inner / "a").stat().st_mode) == 0
    (inner / "a").chmod(0o400)
    assert (inner / "a").read_text() == "one"


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_files_come_back(tmp_path: Path, count: int) -> None:
    history = history_in(tmp_path)
    for n in range(count):
        path = history.workspace / f"folder{n % 100}" / f"{n}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"file {n}")
    before = tree(history.workspace)
    began = time.perf_counter()
    history.begin("t1")
    first = time.perf_counter() - began
    history.end("t1")
    began = time.perf_counter()
    history.begin("t2")
    again = time.perf_counter() - began
    for each in list(history.workspace.iterdir()):
        clear(each)
    began = time.perf_counter()
    number = history.end("t2")
    end = time.perf_counter() - began
    began = time.perf_counter()
    assert history.undo(number).done
    print(f"first {first:.2f} s, again {again:.3f} s, end {end:.2f} s, undo {time.perf_counter() - began:.2f} s")  # fmt: skip
    assert tree(history.workspace) == before
