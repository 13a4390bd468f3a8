"""The limits of a chat's sandbox: how much disk its workspace uses, and the watch that ends a call which
uses too much.

A drop of the disk's free space is a cheap sign that something was written; the workspace is walked only
after a large one. A workspace over its limits can still be used, so that files can be deleted, but it may
not grow. During a call this sign and the resident memory of the process tree are read every 50 ms (memory
only where no cgroup counts it); the exact figures are measured only when a limit may be near.

/proc is read here and not by psutil, which finds a process tree by scanning all processes (7 ms each time,
against 0.1) and reports neither deleted files nor bytes written by ended children.
"""

import asyncio
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from agent.errors import ToolError
from agent.sandbox.bwrap_process import BwrapProcess
from agent.sandbox.openat2 import closing_fd

REPO_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Disk and files count per chat, everything else per call. A command gets `command_seconds` unless it asks
    for another time, up to five times as long. `undo_mib` is beside the workspace (agent.sandbox.history)."""

    memory_mib: int = 2048
    pids: int = 256
    disk_mib: int = 1024
    files: int = 50_000
    command_seconds: int = 120
    output_kib: int = 8
    undo_mib: int = 512


@dataclass(frozen=True, slots=True)
class HostRepo:
    """A repository of the host, at /repos/NAME in the sandbox; read-only unless `write`. Nobody but the owner
    writes to one that is `mine`; the text of any other is a stranger's."""

    name: str
    path: Path
    write: bool = False
    mine: bool = False
    fetch: bool = False  # what its origin has, before a summary

    def __post_init__(self) -> None:
        if not REPO_NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} cannot be the name of a repository")

    @property
    def source(self) -> str:
        """How a Taint names the repository as the source of a text."""
        return f"repository {self.name}"


CALLS_WITHOUT_WALK = 50
DEEPEST = 200  # levels of directories; each holds a descriptor while it is walked
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """What a folder takes on the disk; `bytes` are those allocated on the disk; `files` counts directories too."""

    bytes: int = 0
    files: int = 0
    deeper: bool = False  # directories deeper than DEEPEST were not counted


@dataclass(frozen=True, slots=True)
class FreeSpace:
    """Free bytes and files of a disk; some filesystems count no files."""

    bytes: int
    files: int


def free_space(path: Path) -> FreeSpace:
    now = os.statvfs(path)
    return FreeSpace(now.f_bfree * now.f_frsize, now.f_ffree)


@dataclass(slots=True)
class DiskQuota:
    """A workspace's limits; `used` is what it held when last walked, plus what was admitted since."""

    workspace: Path
    limits: SandboxLimits
    used: DiskUsage = field(default_factory=DiskUsage)
    _free: FreeSpace | None = None
    _calls: int = 0

    async def refresh(self) -> None:
        """Measure the workspace before a call, if the disk changed or CALLS_WITHOUT_WALK have passed."""
        self._calls += 1
        if self.disk_changed() or self._calls > CALLS_WITHOUT_WALK:
            await self.measure()

    async def measure(self) -> None:
        self._free, self._calls = free_space(self.workspace), 0
        self.used = await asyncio.to_thread(disk_usage, self.workspace)

    def disk_changed(self) -> bool:
        """Whether the disk has lost a quarter of the space that the workspace may still take."""
        now = free_space(self.workspace)
        if self._free is None:
            return True
        # Against the highest mark: deletions must not hide what is written.
        self._free = FreeSpace(max(self._free.bytes, now.bytes), max(self._free.files, now.files))
        left = max(self.limits.disk_mib * MIB - self.used.bytes, 4 * MIB)
        files = max(self.limits.files - self.used.files, 400)
        return self._free.bytes - now.bytes > left // 4 or self._free.files - now.files > files // 4

    def excess(self, more: int = 0, before: DiskUsage | None = None) -> str:
        """One sentence when the workspace plus `more` bytes is over the limits; else empty.

        `before` is what it held before the call: it may be over the limits as long as it does not grow.
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
        """Call before a file of `size` bytes is written. Raises ToolError if it would exceed the limits."""
        await self.refresh()
        if self.excess(size):
            await self.measure()
        if reason := self.excess(size):
            raise ToolError(reason)
        self.used = DiskUsage(self.used.bytes + size, self.used.files + 1, self.used.deeper)


def disk_usage(directory: Path) -> DiskUsage:
    """Walk a directory. Entries that vanish meanwhile are not counted; links are not followed."""
    size = count = 0
    deeper = False
    for entry, level in walk(os.open(directory, DIRECTORY), 1):
        count += 1
        links = max(entry.st_nlink, 1) if stat.S_ISREG(entry.st_mode) else 1
        size += entry.st_blocks * 512 // links
        deeper = deeper or level > DEEPEST
    return DiskUsage(size, count, deeper)


def walk(fd: int, level: int) -> Iterator[tuple[os.stat_result, int]]:
    """Everything below an open directory, with its level. Closes the descriptor."""
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
    """A descriptor, also of a directory that was made unreadable to hide its content; None where it is gone."""
    try:
        try:
            return os.open(name, DIRECTORY, dir_fd=parent)
        except PermissionError:
            flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
            with closing_fd(os.open(name, flags, dir_fd=parent)) as fd:
                Path(f"/proc/self/fd/{fd}").chmod(0o700)
            return os.open(name, DIRECTORY, dir_fd=parent)
    except OSError:
        return None


INTERVAL = 0.05
PAGE = os.sysconf("SC_PAGE_SIZE")


async def watch_usage(
    process: BwrapProcess, quota: DiskQuota, *, memory: bool = True, interval: float = INTERVAL
) -> None:
    """End the call once it uses too much; runs until cancelled. `memory`: no cgroup counts it; `interval` is
    in seconds."""
    while (init := await process.started()) is None:
        if process.was_started:
            return
    before, free_before = quota.used, free_space(quota.workspace).bytes
    most_memory, most_written = quota.limits.memory_mib * MIB, 2 * quota.limits.disk_mib * MIB
    while True:
        await asyncio.sleep(interval)
        pids = process_tree(init)
        if memory and resident(pids) > most_memory and proportional(pids) > most_memory:
            process.end(over_memory(quota.limits))
        if quota.disk_changed():
            await quota.measure()
            lost = free_before - free_space(quota.workspace).bytes
            if reason := quota.excess(deleted(pids, quota.workspace), before):
                process.end(f"Stopped. {reason}")
            elif lost > most_written and written(pids) > most_written:
                # Written, but in no file any more: mapped, deleted and closed.
                process.end(f"Stopped. It wrote more than {most_written // MIB} MiB.")


def over_memory(limits: SandboxLimits) -> str:
    return f"Stopped: it used more than {limits.memory_mib} MiB of memory."


def process_tree(init: int) -> list[int]:
    """The pids of the init and all its descendants; orphans become its children."""
    found, unread = [], [init]
    while unread:
        found.append(unread.pop())
        for thread in names_of(f"/proc/{found[-1]}/task"):
            unread += map(int, proc_text(found[-1], f"task/{thread}/children").split())
    return found


def resident(pids: Sequence[int]) -> int:
    """Bytes in memory; pages that processes share count for each."""
    fields = (proc_text(pid, "statm").split() for pid in pids)
    return sum(int(of_pid[1]) for of_pid in fields if of_pid) * PAGE


def proportional(pids: Sequence[int]) -> int:
    """Bytes in memory and swap; each page counts once."""
    return sum_lines(pids, "smaps_rollup", ("Pss:", "SwapPss:")) * 1024


def written(pids: Sequence[int]) -> int:
    """Bytes written to disks, including those of ended children."""
    return sum_lines(pids, "io", ("write_bytes:",))


def deleted(pids: Sequence[int], workspace: Path) -> int:
    """Bytes of deleted files on the workspace's filesystem that these processes still hold open.

    st_dev would not tell the filesystem: an overlay has another one for files than for directories.
    """
    filesystem = os.statvfs(workspace).f_fsid
    sizes: dict[int, int] = {}
    for pid in pids:
        try:
            links = list(Path(f"/proc/{pid}/fd").iterdir())
        except OSError:
            continue
        for link in links:
            try:
                file = link.stat()
                unnamed = not file.st_nlink and stat.S_ISREG(file.st_mode)
                if unnamed and os.statvfs(link).f_fsid == filesystem:
                    sizes[file.st_ino] = file.st_blocks * 512
            except OSError:
                continue
    return sum(sizes.values())


MOST_DESCRIPTORS = 5000  # among which a connection is sought
PLAIN_PATH = re.compile(r"/[!-~]*")


def program_at(init: int, port: int) -> str:
    """The executable, by its path in the sandbox, whose TCP connection comes from that port; empty where
    it cannot be found, or has a path that might be misread."""
    tables = (proc_text(init, f"net/{name}").splitlines()[1:] for name in ("tcp", "tcp6"))
    rows = (line.split() for table in tables for line in table)
    sockets = [f"socket:[{row[9]}]" for row in rows if int(row[1].rpartition(":")[2], 16) == port]
    links = ((pid, link) for pid in process_tree(init) for link in names_of(f"/proc/{pid}/fd"))
    for pid, link in islice(links, MOST_DESCRIPTORS):
        with suppress(OSError):
            if str(Path(f"/proc/{pid}/fd/{link}").readlink()) in sockets:
                path = str(Path(f"/proc/{pid}/exe").readlink())
                return path if PLAIN_PATH.fullmatch(path) else ""
    return ""


def names_of(directory: str) -> list[str]:
    """The names in a directory of /proc; none if it is gone or unreadable."""
    try:
        return os.listdir(directory)  # noqa: PTH208 - names are enough
    except OSError:
        return []


def sum_lines(pids: Sequence[int], name: str, starts: tuple[str, ...]) -> int:
    lines = (line for pid in pids for line in proc_text(pid, name).splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith(starts))


def proc_text(pid: int, name: str) -> str:
    """Read a file of /proc; "" if the process has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""
