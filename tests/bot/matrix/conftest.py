"""One real homeserver for all tests of a process; new accounts for each test."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from fakes.homeserver_proxy import HomeserverProxy, homeserver_proxy
from fakes.matrix_person import MatrixPerson, matrix_person
from fakes.matrix_running import MatrixScenario
from fakes.synapse import PYTHON, Synapse, running_synapse


@pytest.fixture(scope="session")
def running_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synapse]:
    assert PYTHON.exists(), "make .cache/synapse/.stamp installs the homeserver for tests"
    with running_synapse(tmp_path_factory.mktemp("synapse")) as server:
        yield server


@pytest.fixture
async def server(running_server: Synapse) -> Synapse:
    await running_server.answers()
    return running_server


@pytest.fixture
async def olga(server: Synapse, tmp_path: Path) -> AsyncIterator[MatrixPerson]:
    """The bot's owner."""
    async with matrix_person(server.url, await server.account("olga"), tmp_path / "olga") as person:
        yield person


@pytest.fixture
async def scenario(server: Synapse, olga: MatrixPerson, tmp_path: Path) -> MatrixScenario:
    account = await server.account("voltaire")
    folder = tmp_path / "bot"
    folder.mkdir()
    return MatrixScenario(url=server.url, folder=folder, account=account, owner=olga.id)


@pytest.fixture(autouse=True)
def no_live_view(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a turn without tools: on a busy machine it would come between what a test counts or breaks."""
    monkeypatch.setattr("bot.matrix.live.QUIET_SECONDS", 3600.0)


@pytest.fixture
async def life() -> AsyncIterator[AsyncExitStack]:
    """Whatever else a test begins ends with it."""
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def proxy(server: Synapse, scenario: MatrixScenario, life: AsyncExitStack) -> HomeserverProxy:
    """Between the bot and the homeserver."""
    between = await life.enter_async_context(homeserver_proxy(server.url))
    scenario.url = between.url
    return between
