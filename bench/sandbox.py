"""What a sandbox costs a command: python -m bench.sandbox

Prints the median of 50 runs of `true`, without and with the sandbox, and of the
file tools; exit code 1 when the sandbox adds more than 25 ms.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent.sandbox.limits import SandboxLimits
from agent.sandbox.sandbox import open_sandboxes

RUNS = 50
MOST_MS = 25.0


async def main() -> int:
    with tempfile.TemporaryDirectory(prefix="vb") as folder:
        async with open_sandboxes(
            Path(folder), limits=SandboxLimits(), repos=[], zone="UTC", report=lambda: "name: x\n"
        ) as sandboxes:
            sandbox = await sandboxes.of("bench")
            bare, walled = await _beside(_bare, lambda: sandbox.run("true"))
            write, read = await _beside(
                lambda: sandbox.files.write("f", b"x" * 1024), _reader(sandbox.files.open)
            )
    print(f"true, unsandboxed: {bare:.1f} ms")
    print(f"true, sandboxed: {walled:.1f} ms")
    print(f"overhead: {walled - bare:.1f} ms (at most {MOST_MS:g} ms)")
    print(f"write_file of 1 KiB: {write:.2f} ms; read: {read:.2f} ms")
    return int(walled - bare > MOST_MS)


async def _bare() -> None:
    process = await asyncio.create_subprocess_exec("/bin/bash", "-c", "true")
    await process.wait()


def _reader(open_: Callable[[str], Awaitable[object]]) -> Callable[[], Awaitable[object]]:
    async def read() -> None:
        file = await open_("f")
        file.close()  # type: ignore[attr-defined]

    return read


async def _beside(*works: Callable[[], Awaitable[object]]) -> list[float]:
    """Medians in ms; run by turns, so that other load meets all alike."""
    took: list[list[float]] = [[] for _ in works]
    for run in range(RUNS + 1):
        for times, work in zip(took, works, strict=True):
            started = time.perf_counter()
            await work()
            if run:  # the first one starts what is started once
                times.append((time.perf_counter() - started) * 1000)
    return [statistics.median(times) for times in took]


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
