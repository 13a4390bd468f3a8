"""The text of /host.txt: a description of the machine for the model, fresh at each call and without secrets."""

import os
import re
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from backend.protocol import Gpu, Phrase, Status

GIB = 2**30
WEEKDAYS = (
    *(Phrase("Mon"), Phrase("Tue"), Phrase("Wed"), Phrase("Thu"), Phrase("Fri")),
    *(Phrase("Sat"), Phrase("Sun")),
)
CHARTS = "python3 has matplotlib (Agg); savefig into /workspace, then send_file"
NO_CHARTS = "python3 has no matplotlib, until the owner runs: apt-get install python3-matplotlib"


@dataclass
class HostReport:
    """What the sandbox is told of the machine (/host.txt). `status` is the backend's newest; None: unknown."""

    state: Path
    zone: str
    status: Status | None = None
    model: str = ""
    _name: str = field(default_factory=socket.gethostname)

    def text(self) -> str:
        return "\n".join(self.lines()) + "\n"

    def lines(self) -> list[Phrase]:
        now = datetime.now(ZoneInfo(self.zone))
        at = f"{now:%Y-%m-%d %H:%M} {self.zone}"
        load, cores = os.getloadavg()[0], os.cpu_count() or 1
        lines = [
            Phrase("name: {name}", name=self._name),
            Phrase("time: {weekday} {at}", weekday=WEEKDAYS[now.weekday()], at=at),
            Phrase("uptime: {span}", span=uptime()),
            Phrase("processor: {name}, {count} cores", name=processor(), count=cores),
            Phrase("load: {load} on {count} cores", load=load, count=cores),
            memory(),
            *disks(self.state),
        ]
        if self.status is None:
            lines.append(Phrase("gpu: not known"))
        else:
            lines += map(gpu_line, self.status.gpus) if self.status.gpus else [Phrase("gpu: none")]
            model = self.status.backend.model or self.model
            unknown = Phrase("model: not known")
            lines.append(Phrase("model: {name}", name=model) if model else unknown)
            speed = self.status.speed
            if speed.decode_tok_s is not None:
                form = "speed: {speed} tokens/s"
                if speed.prefill_tok_s:
                    form = "speed: {speed} tokens/s, reading {prefill} tokens/s"
                written, read = round(speed.decode_tok_s), round(speed.prefill_tok_s or 0)
                lines.append(Phrase(form, speed=written, prefill=read))
        lines.append(Phrase(f"charts: {CHARTS if has_matplotlib() else NO_CHARTS}"))
        return lines


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


def processor() -> str:
    """Its name, as the kernel tells it; where it does not, the machine's architecture."""
    told = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    named = re.search(r"^model name\s*: *(.+)$", told, re.MULTILINE)
    return named[1] if named else os.uname().machine


def uptime() -> list[Phrase]:
    seconds = int(float(Path("/proc/uptime").read_text("utf-8").split()[0]))
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    parts = [
        Phrase("{count} day" if days == 1 else "{count} days", count=days),
        Phrase("{count} hour" if hours == 1 else "{count} hours", count=hours),
        Phrase("{count} minute" if minutes == 1 else "{count} minutes", count=minutes),
    ]
    return [part for part in parts if part.fields["count"]] or parts[-1:]


def memory_bytes() -> tuple[int, int]:
    """The machine's memory, and how much of it is available without swapping."""
    lines = Path("/proc/meminfo").read_text("utf-8").splitlines()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return kib["MemTotal"] << 10, kib["MemAvailable"] << 10


def memory() -> Phrase:
    total, free = memory_bytes()
    form = "memory: {total} total, {used} used, {free} available"
    return Phrase(form, total=gib(total), used=gib(total - free), free=gib(free))


def disks(state: Path) -> Iterator[Phrase]:
    """The system's disk, and that of the workspaces where it is another one."""
    places = {path.stat().st_dev: path for path in (state, Path("/"))}
    for path in reversed(places.values()):
        form = "disk of /workspace: {total} total, {used} used, {free} free ({percent}%)"
        if path == Path("/"):
            form = "disk /: {total} total, {used} used, {free} free ({percent}%)"
        use = shutil.disk_usage(path)
        sizes = {"total": gib(use.total), "used": gib(use.used), "free": gib(use.free)}
        yield Phrase(form, **sizes, percent=round(100 * use.used / (use.used + use.free)))


def gpu_line(gpu: Gpu) -> Phrase:
    facts = [Phrase(gpu.name)]
    if gpu.temperature_c is not None:
        facts.append(Phrase(f"{gpu.temperature_c:.0f} °C"))
    if gpu.memory_temperature_c is not None:
        facts.append(Phrase("{degrees} °C memory", degrees=round(gpu.memory_temperature_c)))
    if gpu.power_w is not None:
        watts = Phrase(f"{gpu.power_w:.0f} W")
        if limit := gpu.power_limit_w:
            form = "{watts} W of {limit} W"
            watts = Phrase(form, watts=round(gpu.power_w), limit=round(limit))
        facts.append(watts)
    if gpu.utilization is not None:
        facts.append(Phrase("{share} % busy", share=round(gpu.utilization)))
    if gpu.memory_used_mib is not None and gpu.memory_total_mib is not None:
        used, total = round(gpu.memory_used_mib), round(gpu.memory_total_mib)
        facts.append(Phrase("{used} of {total} MiB used", used=used, total=total))
    if gpu.throttle:
        facts.append(Phrase("throttled: {why}", why=[Phrase(why) for why in gpu.throttle]))
    return Phrase("gpu {index}: {facts}", index=gpu.index, facts=facts)


def gib(size: int) -> Phrase:
    return Phrase("{size} GiB", size=size / GIB)
