"""Ends a call that uses too much memory or disk, where no cgroup does it.

Two signs are cheap and read every 50 ms: resident memory of the process tree, and free space
of the disk. Only when they say that a limit may be near is it measured exactly.

/proc is read here and not by psutil, which finds a tree by scanning all processes (7 ms for
each look, against 0.1) and knows neither deleted files nor bytes written by ended children.
"""

import asyncio
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from agent.sandbox.bwrap_process import BwrapProcess
from agent.sandbox.disk_quota import DiskQuota, free_space
from agent.sandbox.limits import MIB, SandboxLimits

INTERVAL = 0.05
PAGE = os.sysconf("SC_PAGE_SIZE")


async def watch_usage(process: BwrapProcess, quota: DiskQuota, *, memory: bool = True) -> None:
    """Runs until cancelled. `memory`: whether no cgroup counts it."""
    while (init := await process.started()) is None:
        if process.ended.done():
            return
    before, free_before = quota.used, free_space(quota.workspace).bytes
    most_memory, most_written = quota.limits.memory_mib * MIB, 2 * quota.limits.disk_mib * MIB
    while True:
        await asyncio.sleep(INTERVAL)
        pids = process_tree(init)
        if memory and resident(pids) > most_memory and proportional(pids) > most_memory:
            process.end(over_memory(quota.limits))
        if quota.disk_changed():
            await quota.measure()
            lost = free_before - free_space(quota.workspace).bytes
            if reason := quota.excess(deleted(pids, quota.workspace), before):
                process.end(f"Stopped. {reason}")
            elif lost > most_written and written(pids) > most_written:
                # Writing that shows in no file: mapped, deleted and closed.
                process.end(f"Stopped. It wrote more than {most_written // MIB} MiB.")


def over_memory(limits: SandboxLimits) -> str:
    return f"Stopped: it used more than {limits.memory_mib} MiB of memory."


def process_tree(init: int) -> list[int]:
    """The init and all that descends from it; orphans become its children."""
    found, unread = [], [init]
    while unread:
        found.append(unread.pop())
        try:
            threads = os.listdir(f"/proc/{found[-1]}/task")  # noqa: PTH208 - names are enough
        except OSError:
            continue
        for thread in threads:
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
    """Bytes that they gave to disks, their ended children's included."""
    return sum_lines(pids, "io", ("write_bytes:",))


def deleted(pids: Sequence[int], workspace: Path) -> int:
    """Bytes of files on the workspace's filesystem that have no name any more and that they hold open.

    Not told by st_dev: an overlay shows another one for files than for directories.
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


def sum_lines(pids: Sequence[int], name: str, starts: tuple[str, ...]) -> int:
    lines = (line for pid in pids for line in proc_text(pid, name).splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith(starts))


def proc_text(pid: int, name: str) -> str:
    """Empty when the process has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""
