"""Two commands beside each other: the one that found a backend outlives the one that started it."""

from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from backend.client import BackendClient, default_socket
from backend.config import BackendConfig
from backend.service import serve_backend
from bot.cli.connect import failover
from fakes.model_scripted import ModelServer, says
from fakes.patience import SECONDS


async def test_a_backend_that_ended_is_succeeded_for_as_long_as_the_command_lasts(
    tmp_path: Path,
) -> None:
    async with ModelServer(says("Hello.")) as server, AsyncExitStack() as first:
        config = BackendConfig(tmp_path, kind="external", urls=(server.url,))
        await first.enter_async_context(serve_backend(config))
        async with BackendClient(default_socket(tmp_path)) as client:
            async with failover(client, partial(serve_backend, config), seconds=0.2):
                await first.aclose()
                assert not await client.answers()
                assert await client.answers_within(SECONDS)
                assert [stand.state async for stand in client.ready(SECONDS)] == ["ready"]
            assert not await client.answers()


async def test_a_backend_that_comes_back_stays_the_one(tmp_path: Path) -> None:
    async with ModelServer(says("Hello.")) as server, AsyncExitStack() as first:
        config = BackendConfig(tmp_path, kind="external", urls=(server.url,))
        await first.enter_async_context(serve_backend(config))
        async with BackendClient(default_socket(tmp_path)) as client:
            async with failover(client, partial(serve_backend, config), seconds=SECONDS):
                await first.aclose()
                again = await first.enter_async_context(serve_backend(config))
                assert await client.answers()
            assert again.state.status.current.kind == "external" and await client.answers()
