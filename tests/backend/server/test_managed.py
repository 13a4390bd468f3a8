"""A switch of the profile waits for open turns, new ones wait for it, and the old profile comes back."""

import asyncio
from dataclasses import replace

import pytest

from backend.client import BackendClient, BackendRefused
from backend.config import BackendConfig
from backend.protocol import QueueState
from fakes.patience import SECONDS, soon
from tests.backend.conftest import running


async def test_profiles_are_switched_between_turns_and_back_when_they_fail(
    config: BackendConfig,
) -> None:
    folder = config.state_dir / "own"
    folder.mkdir()
    form = 'title = "T"\ngpu = false\ncontext = {0}\n[model]\npath = "x"\n[flags.required]\n{1}\n'
    (folder / "small.toml").write_text(form.format(4096, '"--parallel" = "1"'))
    (folder / "broken.toml").write_text(form.format(4096, '"--no-such-flag" = ""'))
    async with running(replace(config, profiles=folder)) as it:
        await it.ready()
        async with it.client.acquire_gpu("a"):
            switching = asyncio.create_task(switch(it.client, "small"))
            await soon(lambda: it.backend.state.gpu_queue.reason)
            assert (await it.client.status()).backend.profile == "pocket"
        await asyncio.wait_for(switching, SECONDS)
        small = await it.client.endpoint()
        with pytest.raises(
            BackendRefused, match=r"^broken could not be started: .*lacks the flag --no-such-flag"
        ):
            await switch(it.client, "broken")
        back = await it.client.endpoint()
        with pytest.raises(BackendRefused, match="There is no profile called nothing"):
            await switch(it.client, "nothing")
    assert (small.profile, small.n_ctx) == ("small", 4096)
    assert back.profile == "small"


async def switch(client: BackendClient, name: str) -> None:
    async for _ in client.use_profile(name):
        pass


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
            switching = asyncio.create_task(switch(it.client, "small"))
            await soon(lambda: it.backend.state.gpu_queue.reason == WHY)
            states: list[QueueState] = []
            late = asyncio.create_task(profile_in_turn(it.client, states))
            other = asyncio.create_task(profile_with_gpu(it.client, "b"))
            await soon(lambda: states)
            async with it.client.acquire_gpu("a"):  # between two calls of the turn
                assert (await it.client.endpoint()).profile == "pocket"
            assert not switching.done() and not other.done() and not late.done()
        await switching
        assert await late == await other == "small"
        assert states == [QueueState(state="waiting", reason=WHY)]


async def profile_in_turn(client: BackendClient, states: list[QueueState]) -> str | None:
    async with client.turn("b", states.append):
        return (await client.endpoint()).profile


async def profile_with_gpu(client: BackendClient, chat: str) -> str | None:
    async with client.acquire_gpu(chat):
        return (await client.endpoint()).profile


async def test_profiles_are_listed_with_what_is_here_first(config: BackendConfig) -> None:
    async with running(config) as it:
        profiles = await it.client.profiles()
    here = [each.here for each in profiles]
    assert here == sorted(here, reverse=True)
    gemma = next(each for each in profiles if each.name == "gemma4-26b-a4b")
    assert (gemma.here, gemma.verified, gemma.decode_tok_s) == (False, False, 99.8)
    assert gemma.good.startswith("Fast and simple")
