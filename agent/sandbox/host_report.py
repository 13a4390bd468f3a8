"""The text of /host.txt: a description of the machine for the model, fresh at each call and without secrets."""

import os
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from backend.protocol import Gpu, Status

GIB = 2**30
CHARTS = "python3 has matplotlib (Agg); savefig into /workspace, then send_file"
NO_CHARTS = "python3 has no matplotlib, until the owner runs: apt-get install python3-matplotlib"


@dataclass
class HostReport:
    """`status` is the backend's newest, set by whoever polls it; None: not known."""

    state: Path
    zone: str
    status: Status | None = None
    model: str = ""
    _name: str = field(default_factory=socket.gethostname)

    def text(self) -> str:
        now = datetime.now(ZoneInfo(self.zone))
        lines = [
            f"name: {self._name}",
            f"time: {now:%a %Y-%m-%d %H:%M} {self.zone}",
            f"uptime: {uptime()}",
            f"load: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores",
            f"memory: {memory()}",
            *disks(self.state),
        ]
        if self.status is None:
            lines.append("gpu: not known")
        else:
            lines += map(gpu_line, self.status.gpus) if self.status.gpus else ["gpu: none"]
            lines.append(f"model: {self.status.backend.model or self.model or 'not known'}")
            if self.status.speed.decode_tok_s is not None:
                speed, prefill = self.status.speed, ""
                if speed.prefill_tok_s:
                    prefill = f", reading {speed.prefill_tok_s:.0f} tokens/s"
                lines.append(f"speed: {speed.decode_tok_s:.0f} tokens/s{prefill}")
        lines.append(f"charts: {CHARTS if has_matplotlib() else NO_CHARTS}")
        return "\n".join(lines) + "\n"


def has_matplotlib(usr: Path = Path("/usr")) -> bool:
    """Whether the sandbox's python3 has it, from a package of Debian or by a system-wide pip."""
    found = shutil.which("python3", path=f"{usr}/local/bin:{usr}/bin")
    if found is None:
        return False
    python = Path(found)
    of_pip = usr / "local/lib" / python.resolve().name
    places = [of_pip / "site-packages"]  # of a Python in /usr/local
    if python.parent == usr / "bin":
        places = [usr / "lib/python3/dist-packages", of_pip / "dist-packages"]
    return any((place / "matplotlib").is_dir() for place in places)


def uptime() -> str:
    seconds = int(float(Path("/proc/uptime").read_text("utf-8").split()[0]))
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    parts = [(days, "day"), (hours, "hour"), (minutes, "minute")]
    return ", ".join(f"{n} {unit}{'' if n == 1 else 's'}" for n, unit in parts if n) or "0 minutes"


def memory_bytes() -> tuple[int, int]:
    """The machine's memory, and how much of it is available without swapping."""
    lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return kib["MemTotal"] << 10, kib["MemAvailable"] << 10


def memory() -> str:
    total, free = memory_bytes()
    return f"{gib(total)} total, {gib(total - free)} used, {gib(free)} available"


def disks(state: Path) -> Iterator[str]:
    """The system's disk, and that of the workspaces where it is another one."""
    places = {path.stat().st_dev: path for path in (state, Path("/"))}
    for path in reversed(places.values()):
        name = "disk /" if path == Path("/") else "disk of /workspace"
        use = shutil.disk_usage(path)
        percent = round(100 * use.used / (use.used + use.free))
        amounts = f"{gib(use.total)} total, {gib(use.used)} used, {gib(use.free)} free"
        yield f"{name}: {amounts} ({percent}%)"


def gpu_line(gpu: Gpu) -> str:
    values = [
        with_unit(gpu.temperature_c, "°C"),
        with_unit(gpu.memory_temperature_c, "°C memory"),
        with_unit(gpu.power_w, f"W of {gpu.power_limit_w:.0f} W" if gpu.power_limit_w else "W"),
        with_unit(gpu.utilization, "% busy"),
        f"{gpu.memory_used_mib:.0f} of {gpu.memory_total_mib:.0f} MiB used"
        if gpu.memory_used_mib is not None and gpu.memory_total_mib is not None
        else "",
        f"throttled: {', '.join(gpu.throttle)}" if gpu.throttle else "",
    ]
    return f"gpu {gpu.index}: {', '.join([gpu.name, *filter(None, values)])}"


def with_unit(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.0f} {unit}"


def gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
