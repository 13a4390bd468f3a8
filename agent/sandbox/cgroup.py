"""A cgroup for each call, where systemd delegates a subtree to us: the kernel limits its memory and processes.

Nothing is moved or made outside of a subtree with systemd's mark (Delegate=yes sets the attribute
user.delegate); without one, limits.py measures instead.
"""

import asyncio
import itertools
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent.sandbox.bubblewrap import mounts_of
from agent.sandbox.limits import MIB, SandboxLimits

MAIN_GROUP = "main"  # of this program: a group with children may not hold processes itself
CONTROLLERS = ("memory", "pids")
BWRAP_PROCESSES = 8  # bubblewrap's own processes
REMOVAL_SECONDS = 2.0

# Joins the group, whose cgroup.procs is $0, then becomes the command.
JOIN = ("/bin/sh", "-c", 'echo 0 > "$0" && exec "$@"')


@dataclass(frozen=True, slots=True)
class CallGroup:
    path: Path

    def launcher(self, program: str) -> Sequence[str]:
        return [*JOIN, str(self.path / "cgroup.procs"), program]

    def out_of_memory(self) -> bool:
        with suppress(OSError):
            events = (self.path / "memory.events").read_text().split()
            return int(events[events.index("oom_kill") + 1]) > 0
        return False

    async def remove(self) -> None:
        """Kill what runs in the group, and remove the group."""
        with suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")
        with suppress(TimeoutError):
            async with asyncio.timeout(REMOVAL_SECONDS):
                while self.path.exists():
                    with suppress(OSError):  # its processes are still ending
                        self.path.rmdir()
                        return
                    await asyncio.sleep(0.01)


@dataclass(slots=True)
class Cgroups:
    """The delegated subtree; `base` has a subgroup per call."""

    base: Path
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def make(self, limits: SandboxLimits) -> CallGroup:
        path = self.base / f"call-{os.getpid()}-{next(self._numbers)}"
        path.mkdir()
        values = {
            "memory.max": str(limits.memory_mib * MIB),
            "memory.swap.max": "0",
            "memory.oom.group": "1",
            "pids.max": str(limits.pids + BWRAP_PROCESSES),
            "cpu.weight": "20",
        }
        for name, value in values.items():
            if (path / name).exists():
                (path / name).write_text(value)
        return CallGroup(path)


def delegated() -> Cgroups | None:
    """The subtree that systemd gave this service; None where there is none."""
    try:
        own = own_cgroup()
        base = own.parent if own.name == MAIN_GROUP else own
        if os.getxattr(base, "user.delegate") != b"1":
            return None
        return prepare(base)
    except OSError:
        return None


def prepare(base: Path, needed: Sequence[str] = CONTROLLERS) -> Cgroups | None:
    """Prepare the subtree for groups of calls; None when it lacks a controller."""
    there = (base / "cgroup.controllers").read_text().split()
    if not set(needed) <= set(there):
        return None
    ours = base / MAIN_GROUP
    ours.mkdir(exist_ok=True)
    for pid in (base / "cgroup.procs").read_text().split():
        (ours / "cgroup.procs").write_text(pid)
    wanted = [name for name in (*needed, "cpu") if name in there]
    (base / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))
    return Cgroups(base)


def own_cgroup() -> Path:
    """The cgroup of this process in the unified hierarchy; FileNotFoundError without one."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    path = next((line[3:] for line in lines if line.startswith("0::")), "/")
    for point, mount in mounts_of("self").items():
        if mount.filesystem == "cgroup2":
            return Path(point) / path.lstrip("/")
    raise FileNotFoundError("there is no unified cgroup hierarchy")
