"""Processes and memory as /proc and cgroups show them. Functions return None if the process is gone.

Not psutil: it adds a tenth of a second to each start, and has no session, OOM kill count or boot id.
"""

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
CGROUP = Path("/sys/fs/cgroup")  # in a container its own, with its limits
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat, starting with the third (state, ppid, ...)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def state(pid: int) -> str | None:
    """R, S, D, T (stopped), t (traced), Z."""
    fields = stat_fields(pid)
    return fields[0] if fields else None


def started(pid: int) -> int | None:
    """Start time in ticks since boot; together with the pid it identifies a process."""
    fields = stat_fields(pid)
    return int(fields[19]) if fields else None


def cpu_seconds(pid: int) -> float | None:
    """User and system time of all threads so far."""
    fields = stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) * TICK_SECONDS if fields else None


def rss_mib(pid: int) -> float | None:
    fields = stat_fields(pid)
    return int(fields[21]) * PAGE_MIB if fields else None


def read_bytes(pid: int) -> int | None:
    """Bytes read from storage or the page cache so far."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text("utf-8").splitlines()
    except OSError:
        return None
    return sum(int(line.split()[1]) for line in lines if line.startswith(("rchar", "read_bytes")))


def maps(pid: int, library: str) -> bool:
    """Whether a process has loaded a library whose path contains this."""
    try:
        return library in Path(f"/proc/{pid}/maps").read_text("utf-8", "replace")
    except OSError:
        return False


def cores() -> int:
    """The cores that this process may use, no more than a container has the time of; two hardware threads of one core
    count once."""
    found = set()
    for cpu in os.sched_getaffinity(0):
        try:
            path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
            found.add(path.read_text("ascii"))
        except OSError:
            found.add(str(cpu))
    with suppress(OSError, ValueError):  # no cgroup, or "max"
        micros, period = map(int, (CGROUP / "cpu.max").read_text("utf-8").split())
        return min(len(found), max(1, round(micros / period)))
    return len(found)


def session(leader: int) -> list[int]:
    """The pids in the session that `leader` created, even if `leader` itself has ended."""
    found = []
    for path in Path("/proc").iterdir():
        with suppress(ValueError, OSError):  # not a process, or one that has just ended
            if os.getsid(int(path.name)) == leader:
                found.append(int(path.name))
    return found


@cache
def boot() -> str:
    """The id of the current boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()


def oom_kills() -> int:
    """The number of processes that the kernel's OOM killer has ended since boot."""
    lines = Path("/proc/vmstat").read_text("utf-8").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


def total_mib() -> float:
    """All of the host's memory."""
    lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemTotal:")) / 1024


def suspended_seconds() -> float:
    """How long the machine has slept since boot: the monotonic clock stands still meanwhile."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


def available_mib() -> float:
    """MiB of host memory available without swapping, at most what the container's limit leaves; cached files count
    as available."""
    lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
    host = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) / 1024
    try:
        limit = int((CGROUP / "memory.max").read_text("utf-8"))
        used = int((CGROUP / "memory.current").read_text("utf-8"))
        for line in (CGROUP / "memory.stat").read_text("utf-8").splitlines():
            used -= int(line.split()[1]) * line.startswith(("inactive_file ", "active_file "))
    except (OSError, ValueError):  # no cgroup, or "max"
        return host
    return min(host, (limit - used) / (1 << 20))


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output and standard error together."""
        return (self.stdout + self.stderr).decode("utf-8", "replace")


async def output_of(
    command: Sequence[str],
    *,
    seconds: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> ProgramOutput:
    """Run a program to its end; its process group is killed when this returns or is cancelled.

    Raises TimeoutError when it takes longer than `seconds`, OSError when it cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        env=env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            stdout, stderr = await process.communicate(stdin)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    assert process.returncode is not None
    return ProgramOutput(process.returncode, stdout, stderr)
