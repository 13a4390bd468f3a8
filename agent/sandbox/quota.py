"""A workspace's share of the disk: what it holds, and whether more may be written.

Free space is a cheap sign that something was written; only when it moved far
enough is the workspace walked. One that is over its limits can still be used,
so that files can be deleted, but it may not grow.
"""

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path

from agent.errors import ToolError
from agent.sandbox.limits import MIB, SandboxLimits
from agent.sandbox.usage import DEEPEST, DiskUsage, measured

_TRUSTED_CALLS = 50  # without a walk


@dataclass(frozen=True, slots=True)
class Free:
    """What the disk has left, in bytes and files; some filesystems count no files."""

    bytes: int
    files: int


def free(path: Path) -> Free:
    now = os.statvfs(path)
    return Free(now.f_bfree * now.f_frsize, now.f_ffree)


@dataclass(slots=True)
class Quota:
    workspace: Path
    limits: SandboxLimits
    used: DiskUsage = field(default_factory=DiskUsage)
    _free: Free | None = None
    _calls: int = 0

    async def settle(self) -> None:
        """Know what the workspace holds before a call."""
        self._calls += 1
        if self.moved() or self._calls > _TRUSTED_CALLS:
            await self.measure()

    async def measure(self) -> None:
        self._free, self._calls = free(self.workspace), 0
        self.used = await asyncio.to_thread(measured, self.workspace)

    def moved(self) -> bool:
        """Whether the disk lost a quarter of what the workspace may still take."""
        now = free(self.workspace)
        if self._free is None:
            return True
        # From the highest mark: what was deleted since must not hide what is written.
        self._free = Free(max(self._free.bytes, now.bytes), max(self._free.files, now.files))
        left = max(self.limits.disk_mib * MIB - self.used.bytes, 4 * MIB)
        files = max(self.limits.files - self.used.files, 400)
        return self._free.bytes - now.bytes > left // 4 or self._free.files - now.files > files // 4

    def excess(self, beside: int = 0, than: DiskUsage | None = None) -> str:
        """One sentence when the workspace, and `beside` bytes, are over the limits.

        `than`: how much it held before the call; more than the limits is then
        allowed as long as it does not grow.
        """
        before = than or DiskUsage()
        size, count = self.limits.disk_mib * MIB, self.limits.files
        if self.used.bytes + beside > max(size, before.bytes + MIB):
            return f"The workspace may hold {self.limits.disk_mib} MiB. Delete files first."
        if self.used.files > max(count, before.files + 10):
            return f"The workspace may hold {count} files. Delete some first."
        if self.used.deeper and not before.deeper:
            return f"Directories may be nested {DEEPEST} deep. Delete the deeper ones first."
        return ""

    async def admit(self, size: int) -> None:
        """Before a file of `size` bytes is written; ToolError when there is no room."""
        await self.settle()
        if self.excess(size):
            await self.measure()
        if reason := self.excess(size):
            raise ToolError(reason)
        self.used = DiskUsage(self.used.bytes + size, self.used.files + 1, self.used.deeper)
