from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agent.calendar.accounts import Calendars
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
async def box(tmp_path: Path, home: Calendar) -> AsyncIterator[Box]:
    """A chat whose owner has configured it as `work`."""
    async with opened(tmp_path / "state") as sandboxes:
        yield Box(await sandboxes.of("cli"), calendars=Calendars({"work": home.account}, ZONE))
