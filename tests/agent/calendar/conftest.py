import asyncio
import os
import resource
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from agent.calendar import accounts
from agent.calendar.accounts import Calendars
from fakes.noon import NOON
from fakes.radicale import Calendar, Radicale
from fakes.sandbox_box import Box, opened

ZONE = "Europe/Paris"


@pytest.fixture(scope="package")
def _radicale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Radicale]:
    server = Radicale(tmp_path_factory.mktemp("radicale"))
    yield server
    server.stop()


@pytest.fixture
async def radicale(_radicale: Radicale) -> Radicale:
    if not _radicale.running:
        await _radicale.start()
    return _radicale


@pytest.fixture
def home(radicale: Radicale) -> Calendar:
    """A calendar that is empty."""
    return radicale.calendar()


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests in forks of this process, which imports their packages once: a start of one's own takes half a second."""
    from agent.calendar import client

    monkeypatch.setattr(client, "MEMORY", resource.RLIM_INFINITY)  # this process's own counts too
    monkeypatch.setattr(accounts, "output_of", partial(output_of_fork, client.main))


async def output_of_fork(
    run: Callable[[], None], *_command: str, seconds: float, stdin: bytes
) -> tuple[int | None, bytes]:
    def child() -> None:
        code = 1
        try:
            os.closerange(3, 1 << 16)
            sys.stdin = os.fdopen(0, closefd=False)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            run()
            sys.stdout.flush()
            code = 0
        finally:
            os._exit(code)

    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, preexec_fn=child, stdin=pipe, stdout=pipe
    )
    output, _ = await asyncio.wait_for(process.communicate(stdin), seconds)
    return process.returncode, output


@pytest.fixture
async def box(tmp_path: Path, home: Calendar, forked: None) -> AsyncIterator[Box]:
    """A chat whose owner has configured it as `work`."""
    async with opened(tmp_path / "state") as sandboxes:
        calendars = Calendars({"work": home.account}, ZONE)
        yield Box(await sandboxes.of("cli"), calendars=calendars, granted={"calendar-read:work"})


@pytest.fixture
def box_at_noon(box: Box, home: Calendar) -> Box:
    box.calendars = Calendars({"work": home.account}, NOON)
    return box
