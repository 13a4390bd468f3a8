"""Programs that are run to their end, for their output."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass


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
