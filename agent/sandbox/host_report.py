"""/host.txt: the machine as the model is told of it, fresh at each call; no secrets."""

import os
import shutil
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from backend.protocol import Gpu, Status

GIB = 2**30


@dataclass
class HostReport:
    """`status` is the backend's newest word, put here by whoever asks it; None: not known."""

    state: Path
    zone: str
    status: Status | None = None
    model: str = ""
    _name: str = field(default_factory=socket.gethostname)

    def text(self) -> str:
        return "\n".join([*self._machine(), *self._backend()]) + "\n"

    def _machine(self) -> list[str]:
        now = datetime.now(ZoneInfo(self.zone))
        return [
            f"name: {self._name}",
            f"time: {now:%a %Y-%m-%d %H:%M} {self.zone}",
            f"uptime: {_uptime()}",
            f"load: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores",
            f"memory: {_memory()}",
            *_disks(self.state),
        ]

    def _backend(self) -> list[str]:
        if self.status is None:
            return ["gpu: not known"]
        gpus = [_gpu(gpu) for gpu in self.status.gpus] or ["gpu: none"]
        model = self.status.backend.model or self.model or "not known"
        return [*gpus, f"model: {model}", *_speed(self.status)]


def _uptime() -> str:
    seconds = int(float(Path("/proc/uptime").read_text("utf-8").split()[0]))
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    parts = [(days, "day"), (hours, "hour"), (minutes, "minute")]
    return ", ".join(f"{n} {unit}{'' if n == 1 else 's'}" for n, unit in parts if n) or "0 minutes"


def _memory() -> str:
    lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    total, free = kib["MemTotal"], kib["MemAvailable"]
    return (
        f"{_gib(total << 10)} total, {_gib(total - free << 10)} used, {_gib(free << 10)} available"
    )


def _disks(state: Path) -> list[str]:
    """The disk of the system, and that of the workspaces where it is another."""
    places = {path.stat().st_dev: path for path in (state, Path("/"))}
    return [_disk(path) for path in reversed(places.values())]


def _disk(path: Path) -> str:
    name = "disk /" if path == Path("/") else "disk of /workspace"
    use = shutil.disk_usage(path)
    percent = round(100 * use.used / (use.used + use.free))
    return f"{name}: {_gib(use.total)} total, {_gib(use.used)} used, {_gib(use.free)} free ({percent}%)"


def _gpu(gpu: Gpu) -> str:
    said = [
        _said(gpu.temperature_c, "°C"),
        _said(gpu.memory_temperature_c, "°C memory"),
        _said(gpu.power_w, f"W of {gpu.power_limit_w:.0f} W" if gpu.power_limit_w else "W"),
        _said(gpu.utilization, "% busy"),
        f"{gpu.memory_used_mib:.0f} of {gpu.memory_total_mib:.0f} MiB used"
        if gpu.memory_used_mib is not None and gpu.memory_total_mib is not None
        else "",
        f"throttled: {', '.join(gpu.throttle)}" if gpu.throttle else "",
    ]
    return f"gpu {gpu.index}: {', '.join([gpu.name, *filter(None, said)])}"


def _said(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:.0f} {unit}"


def _speed(status: Status) -> Sequence[str]:
    decode, prefill = status.speed.decode_tok_s, status.speed.prefill_tok_s
    if decode is None:
        return []
    reading = f", reading {prefill:.0f} tokens/s" if prefill else ""
    return [f"speed: {decode:.0f} tokens/s{reading}"]


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
