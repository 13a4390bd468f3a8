"""One command of a build: run to its end at low priority, its output kept in a log.

Compilers work for minutes, so none outlives its build: not an interruption of
it, and not the death of this process.
"""

import asyncio
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from backend import proc
from backend.build.recipe import CannotBuild
from backend.server.process import signal_at_parent_death

SILENT_SECONDS = 3600.0  # one CUDA file may take many minutes; a compiler silent for an hour hangs
GRACE_SECONDS = 5.0
ERROR = re.compile(r"\berror\b|ptxas fatal|No space", re.IGNORECASE)


async def run(
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    doing: str,
    on_line: Callable[[str], None] = lambda line: None,
) -> None:
    """CannotBuild with the command's first error when it fails, or when it hangs."""
    process = await asyncio.create_subprocess_exec(
        *("nice", "-n", "10", *command),
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=1 << 20,
        start_new_session=True,
        # TERM rather than KILL: ninja then ends its compilers.
        preexec_fn=signal_at_parent_death(os.getpid(), signal.SIGTERM),
    )
    try:
        await follow(process, log, on_line)
    except TimeoutError:
        raise CannotBuild(f"{command[0]} has said nothing for an hour; it was ended.") from None
    finally:
        await end_session(process)
    if process.returncode:
        error = first_error(log.read_text("utf-8", "replace").splitlines())
        why = f": {error}" if error else ""
        raise CannotBuild(f"It stopped while {doing}{why} (the whole log: {log})")


async def follow(
    process: asyncio.subprocess.Process, log: Path, on_line: Callable[[str], None]
) -> None:
    """Each line to the log and to `on_line`, until the process ends; TimeoutError after a long silence."""
    assert process.stdout
    line = b"\n"
    with log.open("wb", buffering=0) as file:  # unbuffered: people read it while this runs
        while line:
            async with asyncio.timeout(SILENT_SECONDS):
                line = await process.stdout.readline()
            file.write(line)
            if line:
                on_line(line.decode("utf-8", "replace"))
    await process.wait()


async def end_session(process: asyncio.subprocess.Process) -> None:
    """TERM, a bounded wait, KILL to all of the session: ninja gives each compiler a group of its own."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()
    for pid in proc.session(process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await process.wait()


def first_error(lines: Sequence[str]) -> str:
    """The first error in a log, as CMake, compilers, ptxas and pip write it."""
    for index, line in enumerate(lines):
        if line.startswith("CMake Error"):  # what it is stands below
            line = next((below for below in lines[index + 1 :] if below.strip()), line)
        elif not ERROR.search(line) or line.startswith("["):  # "[done/all] Building error.o"
            continue
        return line.strip()[:200].rstrip(".")
    return ""
