"""One step of a build: a program run to its end at low priority, its output kept in a log.

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
PROVE_SECONDS = 120.0
GRACE_SECONDS = 5.0
_COMPLAINT = re.compile(r"\berror\b|ptxas fatal|No space", re.IGNORECASE)


async def run(
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    doing: str,
    hear: Callable[[str], None] = lambda line: None,
) -> None:
    """Run one step; CannotBuild with its first complaint when it fails. `hear` gets each line."""
    if await _followed(command, env, log, hear):
        found = complaint(log.read_text("utf-8", "replace").splitlines())
        why = f": {found}" if found else ""
        raise CannotBuild(f"It stopped while {doing}{why} (the whole log: {log})")


def complaint(lines: Sequence[str]) -> str:
    """What a step failed of: the first error in its log, as CMake, compilers, ptxas and pip write it."""
    for index, line in enumerate(lines):
        if line.startswith("CMake Error"):  # what it is stands below
            line = next((below for below in lines[index + 1 :] if below.strip()), line)
        elif not _COMPLAINT.search(line) or line.startswith("["):  # "[done/all] Building error.o"
            continue
        return line.strip()[:200].rstrip(".")
    return ""


async def answer(program: Path, flag: str, env: Mapping[str, str]) -> str:
    """What the new program says to a flag."""
    process = await _started([str(program), flag], env)
    try:
        said, _ = await asyncio.wait_for(process.communicate(), PROVE_SECONDS)
    except TimeoutError:
        raise CannotBuild(f"The new server does not answer {flag}.") from None
    finally:
        await _ended(process)
    if process.returncode:
        raise CannotBuild(f"The new server ended with code {process.returncode} on {flag}.")
    return said.decode("utf-8", "replace").strip()


async def _followed(
    command: Sequence[str], env: Mapping[str, str], log: Path, take: Callable[[str], None]
) -> int:
    """Run to the end, each line to `log` and to `take`; the exit code."""
    process = await _started(["nice", "-n", "10", *command], env)
    assert process.stdout
    try:
        with log.open("wb", buffering=0) as file:  # it is read while this runs
            while line := await asyncio.wait_for(process.stdout.readline(), SILENT_SECONDS):
                file.write(line)
                take(line.decode("utf-8", "replace"))
        return await process.wait()
    except TimeoutError:
        raise CannotBuild(f"{command[0]} has said nothing for an hour; it was ended.") from None
    finally:
        await _ended(process)


async def _started(command: Sequence[str], env: Mapping[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=1 << 20,
        start_new_session=True,
        # ninja, told of our end, ends its compilers
        preexec_fn=signal_at_parent_death(os.getpid(), signal.SIGTERM),
    )


async def _ended(process: asyncio.subprocess.Process) -> None:
    """TERM, a bounded wait, KILL to all of the session: ninja gives each compiler a group of its own."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    for pid in proc.session(process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    await process.wait()
