"""The program that uses sandboxes is killed with SIGKILL: nothing that it started is left."""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from fakes.patience import SECONDS, soon
from fakes.sandbox_box import processes_with, program_file

STARTS = """
import asyncio, sys
from agent.sandbox import privileges

async def main():
    user, out = getattr(privileges, sys.argv[1])(), int(sys.argv[2])
    await user.start(["/bin/sh", "-c", sys.argv[3]], fds=[], out=out, sources=[])
    await asyncio.Event().wait()

asyncio.run(main())
"""
RUNS = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from agent.sandbox.bubblewrap import Bubblewrap
from agent.sandbox.sandbox import Sandbox, open_sandboxes
from fakes.sandbox_box import LIMITS

async def main():
    async with open_sandboxes(
        Path(sys.argv[1]), limits=LIMITS, repos=(), zone="UTC", report=str
    ) as sandboxes:
        sandbox = await sandboxes.of("cli")
        held = replace(sandbox.config, bwrap=Bubblewrap(sys.argv[2]))
        await Sandbox(held, "cli", sandbox.workspace).run(["sleep", sys.argv[3]])

asyncio.run(main())
"""
USERS = ["CurrentUser", pytest.param("UnprivilegedUser", marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user"))]  # fmt: skip


@asynccontextmanager
async def program(
    text: str, *arguments: str, fds: Sequence[int] = ()
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", text, *arguments, pass_fds=fds, cwd=Path(__file__).parents[3]
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@pytest.mark.parametrize("user", USERS)
async def test_orphans_of_what_it_started_end_with_it(user: str) -> None:
    reader, writer = os.pipe()
    script = "trap '' TERM HUP; (setsid sleep 600 &); echo up; sleep 600 & sleep 600"
    async with program(STARTS, user, str(writer), script, fds=[writer]) as running:
        os.close(writer)
        with os.fdopen(reader, "rb") as output:
            assert await asyncio.to_thread(output.readline) == b"up\n"
            running.kill()
            async with asyncio.timeout(SECONDS):
                assert await asyncio.to_thread(output.read) == b""  # none holds its end any more


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not below pytest's own, which each session of it closes to others again."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


async def test_a_sandbox_whose_bubblewrap_has_just_begun_ends_with_it(folder: Path) -> None:
    """Its status finds no reader any more, at which bubblewrap dies beside a first process that nobody wakes."""
    gate, marker = folder / "gate", f"39{os.getpid()}"
    os.mkfifo(gate)
    gate.chmod(0o666)
    held = program_file(folder / "bwrap", f'read go < {gate}\nexec /usr/bin/bwrap "$@"')
    async with program(RUNS, str(folder / "state"), held, marker) as running:
        with os.fdopen(await asyncio.to_thread(os.open, gate, os.O_WRONLY), "wb", 0) as opened:
            running.kill()
            await running.wait()
            with suppress(BrokenPipeError):
                opened.write(b"go\n")
    try:
        await soon(lambda: not processes_with(marker))
    finally:
        for pid in processes_with(marker):
            os.kill(pid, signal.SIGKILL)
