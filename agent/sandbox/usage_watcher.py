"""Ends a call that uses too much memory or disk, where no cgroup does it.

Two signs are cheap and looked at every 50 ms: resident memory of the process
tree, and free space of the disk. Only when they say that a limit may be near is
it measured exactly.
"""

import asyncio

from agent.sandbox.bwrap_process import BwrapProcess
from agent.sandbox.limits import MIB, SandboxLimits
from agent.sandbox.processes import deleted, proportional, resident, tree, written
from agent.sandbox.quota import Quota, free
from agent.sandbox.usage import DiskUsage

INTERVAL = 0.05


async def watch(bubble: BwrapProcess, quota: Quota, *, memory: bool = True) -> None:
    """Runs until cancelled. `memory`: whether it is ours to watch."""
    await bubble.met.wait()
    before, at_start = quota.used, free(quota.workspace).bytes
    while bubble.init_pid is not None:
        await asyncio.sleep(INTERVAL)
        pids = list(tree(bubble.init_pid))
        if memory and _over(pids, quota.limits.memory_mib * MIB):
            bubble.end(over_memory(quota.limits))
        if quota.moved() and (reason := await _excess(quota, pids, before, at_start)):
            bubble.end(f"Stopped. {reason}")


def over_memory(limits: SandboxLimits) -> str:
    return f"Stopped: it used more than {limits.memory_mib} MiB of memory."


def _over(pids: list[int], most: int) -> bool:
    return resident(pids) > most and proportional(pids) > most


async def _excess(quota: Quota, pids: list[int], before: DiskUsage, at_start: int) -> str:
    await quota.measure()
    nameless = deleted(pids, quota.workspace)
    return quota.excess(nameless, before) or _hidden(quota, pids, at_start)


def _hidden(quota: Quota, pids: list[int], at_start: int) -> str:
    """Writing that shows in no file: mapped, deleted and closed."""
    most = 2 * quota.limits.disk_mib * MIB
    if at_start - free(quota.workspace).bytes > most and written(pids) > most:
        return f"It wrote more than {most // MIB} MiB."
    return ""
