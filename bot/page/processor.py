"""Load, memory and temperature of a machine without a GPU. What is unknown is None."""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from agent.sandbox.host_report import memory_bytes

ZONES = Path("/sys/class/thermal")
MODEL = Path("/proc/cpuinfo")  # platform.processor() is empty on Debian
MIB = 2**20


def processor_load() -> dict[str, Any]:
    total, free = memory_bytes()
    return {
        "name": model_name(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "memory_used_mib": (total - free) / MIB,
        "memory_total_mib": total / MIB,
        "temperature_c": hottest(),
    }


@cache
def model_name() -> str | None:
    with suppress(OSError):
        for line in MODEL.read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return None


def hottest() -> float | None:
    """The hottest of the machine's thermal zones."""
    found = []
    for zone in ZONES.glob("thermal_zone*/temp"):
        with suppress(OSError, ValueError):
            found.append(int(zone.read_text("utf-8")) / 1000)
    return max(found, default=None)
