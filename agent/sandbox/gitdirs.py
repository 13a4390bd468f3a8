"""The git directories in a repository of the host, which commands may not change.

Settings in them name programs and hooks are programs, which the owner's next git
runs outside of every wall. That git also enters what its index calls a submodule,
and asks neither whether that was replaced nor to whom it belongs; a repository
inside that the index does not name it leaves alone (measured with git 2.39).
"""

import os
import stat
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

DEEPEST = 3  # levels below the top at which other repositories are looked for
MOST = 20_000  # directories that are looked into
MOST_NAMES = 200_000  # in one of them
MOST_INSIDE = 200  # repositories
MOST_BYTES = 256 << 20  # of an index
_GITLINK, _FOLDED = 0o160000, 0o040000
_MODE, _FLAGS, _NAME = 24, 60, 62  # offsets in an entry of an index with SHA-1


class UnguardedError(Exception):
    """What may not change cannot be kept; `str` says why."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Paths below the top: `kept` may not change; `pinned` directories, on the way, keep their names."""

    kept: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()


def guard(top: Path) -> Guard:
    """As things are now; UnguardedError where the repository must not be written to."""
    if (top / ".git").is_symlink():
        raise UnguardedError(f"{top}/.git is a symbolic link")
    own = (".git",) if (top / ".git").exists() else ()
    try:
        kept = tuple(_kept(top, path) for path in sorted(_repositories(top)))
    except (OSError, ValueError, IndexError, struct.error) as error:
        raise UnguardedError(f"{top}/.git cannot be read: {error}") from error
    ways = {str(way) for path in kept for way in PurePosixPath(path).parents}
    return Guard((*own, *kept), tuple(sorted(ways - {"."})))


def settings(top: Path, kept: Sequence[str]) -> list[str]:
    """What of `kept` stays even while a commit is made: a filter that the owner set may run what a
    command wrote."""
    whole = [path for path in kept if PurePosixPath(path).name != ".git"]
    folders = [path for path in kept if PurePosixPath(path).name == ".git"]
    folders += [module for path in folders for module in _modules(top, path)]
    named = [f"{path}/{name}" for path in folders for name in ("config", "hooks")]
    return whole + [path for path in named if (top / path).exists()]


def _modules(top: Path, path: str) -> Iterator[str]:
    for config in sorted((top / path / "modules").rglob("config")):
        if (config.parent / "HEAD").exists():
            yield str(config.parent.relative_to(top))


def _repositories(top: Path) -> set[str]:
    """Those that are found, and every submodule of them and of the top: git enters these in turn."""
    inside = set(_found(top))
    unread = ["", *inside]
    while unread:
        path = unread.pop()
        for link in _gitlinks(_real(top / path / ".git")):
            name = f"{path}/{link}".lstrip("/")
            if name not in inside:
                inside.add(name)
                unread.append(name)
        if len(inside) > MOST_INSIDE:
            raise UnguardedError(f"{top} holds more than {MOST_INSIDE} repositories")
    return inside


def _found(top: Path) -> Iterator[str]:
    """Directories with a .git, by levels, links not followed."""
    level, looked = [""], 0
    for depth in range(DEEPEST + 1):
        below: list[str] = []
        for path in level:
            looked += 1
            if looked > MOST:
                raise UnguardedError(f"{top} has more than {MOST} directories near its top")
            names, folders = _inside(top / path)
            if path and ".git" in names:
                yield path
            below += [f"{path}/{name}".lstrip("/") for name in folders if name != ".git"]
        level = below if depth < DEEPEST else []


def _inside(folder: Path) -> tuple[set[str], list[str]]:
    """All names and those of directories; what cannot be read holds nothing that git would find."""
    try:
        with os.scandir(folder) as entries:
            there = list(islice(entries, MOST_NAMES + 1))
    except OSError:
        return set(), []
    if len(there) > MOST_NAMES:
        raise UnguardedError(f"{folder} holds more than {MOST_NAMES} files")
    folders = [entry.name for entry in there if entry.is_dir(follow_symlinks=False)]
    return {entry.name for entry in there}, folders


def _kept(top: Path, path: str) -> str:
    """What of a repository inside may not change: its .git, or all of it where that is absent or a link."""
    steps = [top, *(top / way for way in reversed(PurePosixPath(path).parents)), top / path]
    if any(step.is_symlink() or not step.is_dir() for step in steps[1:]):
        raise UnguardedError(f"{top / path}, a submodule, is no directory")
    if len({step.stat().st_dev for step in steps}) > 1:
        raise UnguardedError(f"{top / path}, a repository, is on another filesystem")
    git = top / path / ".git"
    return f"{path}/.git" if git.exists() and not git.is_symlink() else path


def _real(git: Path) -> Path:
    """Of a worktree or submodule, .git is a file that says where."""
    if not git.is_file():
        return git
    return git.parent / os.fsdecode(_content(git).removeprefix(b"gitdir:").strip())


def _content(path: Path) -> bytes:
    """Empty where there is none. A command may have made it, to keep us waiting or to fill memory."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
            raise UnguardedError(f"{path} is no file of git")
        return file.read(MOST_BYTES)


def _gitlinks(git: Path) -> Iterator[str]:
    """Paths that the index calls submodules."""
    for index in (git / "index", *git.glob("sharedindex.*")):
        content = _content(index)
        # Few repositories have any, and this is quick.
        if struct.pack(">I", _GITLINK) in content or b"sdir\0\0\0\0" in content:
            yield from _links(content, git)


def _links(content: bytes, git: Path) -> Iterator[str]:
    version, count = struct.unpack_from(">4xII", content)
    wide = 12 * (b"objectformat = sha256" in _content(git / "config").lower())
    name, at = b"", 12
    for _ in range(count):
        (mode,) = struct.unpack_from(">I", content, at + _MODE)
        (flags,) = struct.unpack_from(">H", content, at + _FLAGS + wide)
        start = at + _NAME + wide + 2 * bool(flags & 0x4000)
        cut, start = _cut(content, start) if version == 4 else (len(name), start)
        end = content.index(b"\0", start)
        name = name[: len(name) - cut] + content[start:end]
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
        if mode == _FOLDED:
            raise UnguardedError(f"{git}/index is sparse")
        if mode == _GITLINK and name:
            yield _plain(os.fsdecode(name))


def _plain(name: str) -> str:
    if any(part in ("", ".", "..", ".git") for part in name.split("/")):
        raise UnguardedError(f"the index names a submodule {name!r}")
    return name


def _cut(content: bytes, at: int) -> tuple[int, int]:
    """How many bytes of the name before end this one does not share (version 4), and what follows."""
    byte = content[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = content[at]
        value = (value + 1 << 7) | byte & 0x7F
    return value, at + 1
