"""A switch of the profile waits for open turns, and new ones wait for it."""

import asyncio
from dataclasses import replace

from backend.client import BackendClient
from backend.config import BackendConfig
from backend.control.gpu_queue import GpuQueue
from backend.protocol import QueueState
from fakes.patience import SECONDS, soon
from tests.backend.conftest import running

WHY = "The model is being switched to small; messages wait."


async def test_an_open_turn_keeps_its_profile_until_it_ends(config: BackendConfig) -> None:
    folder = config.state_dir / "own"
    folder.mkdir()
    (folder / "small.toml").write_text(
        'title = "T"\ngpu = false\ncontext = 4096\n[model]\npath = "x"\n'
    )
    async with running(replace(config, profiles=folder)) as it, asyncio.timeout(SECONDS):
        await it.ready()
        async with it.client.turn("a"):
            switching = asyncio.create_task(_switch(it.client))
            await soon(lambda: it.backend.state.gpu_queue.reason == WHY)
            told: list[QueueState] = []
            late = asyncio.create_task(_turn(it.client, told))
            other = asyncio.create_task(_lane(it.client, "b"))
            await soon(lambda: told)
            async with it.client.acquire_gpu("a"):  # between two calls of the turn
                assert (await it.client.endpoint()).profile == "pocket"
            assert not switching.done() and not other.done() and not late.done()
        await switching
        assert await late == await other == "small"
        assert told == [QueueState(state="waiting", reason=WHY)]


async def _switch(client: BackendClient) -> None:
    async for _ in client.use_profile("small"):
        pass


async def _turn(client: BackendClient, told: list[QueueState]) -> str | None:
    async with client.turn("b", told.append):
        return (await client.endpoint()).profile


async def _lane(client: BackendClient, chat: str) -> str | None:
    async with client.acquire_gpu(chat):
        return (await client.endpoint()).profile


async def test_a_turn_that_never_ends_holds_a_switch_up_for_a_while_only() -> None:
    gpu_queue = GpuQueue()
    with gpu_queue.turn("a", lambda state: None):
        async with gpu_queue.between_turns("switch", WHY, patience=0.05):
            assert gpu_queue.reason == WHY
            async with asyncio.timeout(SECONDS):
                with gpu_queue.turn("b", lambda state: None) as late:
                    assert late not in gpu_queue.open_turns
    assert not gpu_queue.open_turns
    assert gpu_queue.reason is None


async def test_profiles_are_listed_with_what_is_here_first(config: BackendConfig) -> None:
    async with running(config) as it:
        cards = await it.client.profiles()
    here = [card.here for card in cards]
    assert here == sorted(here, reverse=True)
    gemma = next(card for card in cards if card.name == "gemma4-26b-a4b")
    assert (gemma.here, gemma.verified, gemma.decode_tok_s) == (False, False, 99.8)
    assert gemma.good.startswith("Fast and simple")
