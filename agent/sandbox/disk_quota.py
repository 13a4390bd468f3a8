"""A workspace's share of the disk: what it holds, and whether more may be written.

A change of the disk's free space is a cheap sign that something was written; only when it
is large enough is the workspace walked. One that is over its limits can still be used,
so that files can be deleted, but it may not grow.
"""

import asyncio
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agent.errors import ToolError
from agent.sandbox.limits import MIB, SandboxLimits

CALLS_WITHOUT_WALK = 50
DEEPEST = 200  # levels of directories; each holds a descriptor while it is walked
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Bytes as allocated on the disk; `files` counts directories too."""

    bytes: int = 0
    files: int = 0
    deeper: bool = False  # some directories lie deeper than DEEPEST and were not counted


@dataclass(frozen=True, slots=True)
class FreeSpace:
    """What the disk has left, in bytes and files; some filesystems count no files."""

    bytes: int
    files: int


def free_space(path: Path) -> FreeSpace:
    now = os.statvfs(path)
    return FreeSpace(now.f_bfree * now.f_frsize, now.f_ffree)


@dataclass(slots=True)
class DiskQuota:
    """`used` is what the workspace held when it was last walked, and what was admitted since."""

    workspace: Path
    limits: SandboxLimits
    used: DiskUsage = field(default_factory=DiskUsage)
    _free: FreeSpace | None = None
    _calls: int = 0

    async def refresh(self) -> None:
        """Know what the workspace holds before a call."""
        self._calls += 1
        if self.disk_changed() or self._calls > CALLS_WITHOUT_WALK:
            await self.measure()

    async def measure(self) -> None:
        self._free, self._calls = free_space(self.workspace), 0
        self.used = await asyncio.to_thread(disk_usage, self.workspace)

    def disk_changed(self) -> bool:
        """Whether the disk lost a quarter of what the workspace may still take."""
        now = free_space(self.workspace)
        if self._free is None:
            return True
        # From the highest mark: what was deleted since must not hide what is written.
        self._free = FreeSpace(max(self._free.bytes, now.bytes), max(self._free.files, now.files))
        left = max(self.limits.disk_mib * MIB - self.used.bytes, 4 * MIB)
        files = max(self.limits.files - self.used.files, 400)
        return self._free.bytes - now.bytes > left // 4 or self._free.files - now.files > files // 4

    def excess(self, more: int = 0, before: DiskUsage | None = None) -> str:
        """One sentence when the workspace, and `more` bytes, are over the limits; else empty.

        `before`: how much it held before the call; more than the limits is then
        allowed as long as it does not grow.
        """
        before = before or DiskUsage()
        size, count = self.limits.disk_mib * MIB, self.limits.files
        if self.used.bytes + more > max(size, before.bytes + MIB):
            return f"The workspace may hold {self.limits.disk_mib} MiB. Delete files first."
        if self.used.files > max(count, before.files + 10):
            return f"The workspace may hold {count} files. Delete some first."
        if self.used.deeper and not before.deeper:
            return f"Directories may be nested {DEEPEST} deep. Delete the deeper ones first."
        return ""

    async def admit(self, size: int) -> None:
        """Before a file of `size` bytes is written; ToolError when it would be over the limits."""
        await self.refresh()
        if self.excess(size):
            await self.measure()
        if reason := self.excess(size):
            raise ToolError(reason)
        self.used = DiskUsage(self.used.bytes + size, self.used.files + 1, self.used.deeper)


def disk_usage(directory: Path) -> DiskUsage:
    """Walk a directory. What vanishes meanwhile is not counted; no link is followed."""
    size = count = 0
    deeper = False
    for entry, level in walk(os.open(directory, DIRECTORY), 1):
        count += 1
        links = max(entry.st_nlink, 1) if stat.S_ISREG(entry.st_mode) else 1
        size += entry.st_blocks * 512 // links
        deeper = deeper or level > DEEPEST
    return DiskUsage(size, count, deeper)


def walk(fd: int, level: int) -> Iterator[tuple[os.stat_result, int]]:
    """Everything below an open directory, which is closed at the end, with its level."""
    try:
        for name in os.listdir(fd):
            try:
                entry = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield entry, level
            if stat.S_ISDIR(entry.st_mode) and level <= DEEPEST:
                inner = open_directory(fd, name)
                if inner is not None:
                    yield from walk(inner, level + 1)
    finally:
        os.close(fd)


def open_directory(parent: int, name: str) -> int | None:
    """Also one that its owner made unreadable so as to hide what it holds."""
    try:
        try:
            return os.open(name, DIRECTORY, dir_fd=parent)
        except PermissionError:
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            try:
                Path(f"/proc/self/fd/{fd}").chmod(0o700)
            finally:
                os.close(fd)
            return os.open(name, DIRECTORY, dir_fd=parent)
    except OSError:
        return None
