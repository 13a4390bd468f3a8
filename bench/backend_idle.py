"""What a backend costs while nothing happens: resident memory and processor time of our own process.

    python -m bench.backend_idle [--seconds 60] [--nvml PATH]

Targets: under 75 MB and under 1 % of a core.
"""

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from backend import proc
from backend.client import BackendClient
from backend.config import BackendConfig
from backend.service import serve_backend

MOST_MB, MOST_SHARE = 75.0, 0.01


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measure(seconds: float, model: str, nvml: str | None) -> tuple[float, float]:
    """(MB, share of a core) over `seconds` of a ready backend that nobody uses."""
    with tempfile.TemporaryDirectory(prefix="vi") as name:
        config = BackendConfig(Path(name), server="embedded", model=model, nvml=nvml)
        async with serve_backend(config) as backend, BackendClient(backend.socket) as client:
            async for _ in client.ready(60):
                pass
            before, began = cpu(), time.monotonic()
            await asyncio.sleep(seconds)
            share = (cpu() - before) / (time.monotonic() - began)
            megabytes = (proc.rss_mib(os.getpid()) or 0) * 1.048576
    return megabytes, share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--model", default=str(Path(__file__).parents[1] / "backend" / "embedded" / "pocket.gguf")
    )
    parser.add_argument("--nvml", help="a libnvidia-ml.so.1 in place of the system's")
    chosen = parser.parse_args()
    megabytes, share = asyncio.run(measure(chosen.seconds, chosen.model, chosen.nvml))
    print(
        f"backend, idle for {chosen.seconds:.0f} s: {megabytes:.1f} MB (target {MOST_MB:.0f}), {share:.2%} of a core (target {MOST_SHARE:.0%})"
    )
    sys.exit(0 if megabytes < MOST_MB and share < MOST_SHARE else 1)


if __name__ == "__main__":
    main()
