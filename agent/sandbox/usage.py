"""How much a workspace holds, measured by walking it."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DEEPEST = 200  # levels of directories; each holds a descriptor while it is walked
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Bytes as allocated on the disk; `files` counts directories too."""

    bytes: int = 0
    files: int = 0
    deeper: bool = False  # some directories lie deeper than DEEPEST and were not counted


def measured(directory: Path) -> DiskUsage:
    """What vanishes meanwhile is not counted; no link is followed."""
    fd = os.open(directory, _DIRECTORY)
    size = count = 0
    deeper = False
    for entry, level in _entries(fd, 1):
        count += 1
        links = max(entry.st_nlink, 1) if stat.S_ISREG(entry.st_mode) else 1
        size += entry.st_blocks * 512 // links
        deeper = deeper or level > DEEPEST
    return DiskUsage(size, count, deeper)


def _entries(fd: int, level: int) -> Iterator[tuple[os.stat_result, int]]:
    try:
        for name in os.listdir(fd):
            try:
                entry = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield entry, level
            if stat.S_ISDIR(entry.st_mode) and level <= DEEPEST:
                inner = _opened(fd, name)
                if inner is not None:
                    yield from _entries(inner, level + 1)
    finally:
        os.close(fd)


def _opened(parent: int, name: str) -> int | None:
    """A directory, also one that its owner made unreadable so as to hide what it holds."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except PermissionError:
        _unlock(parent, name)
    except OSError:
        return None
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except OSError:
        return None


def _unlock(parent: int, name: str) -> None:
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{fd}").chmod(0o700)
    finally:
        os.close(fd)
