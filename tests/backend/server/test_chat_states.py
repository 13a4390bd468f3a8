"""Prompts of chats on disk, with the real server: saved, restored after a restart, never another chat's."""

import os
import resource
import signal
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from backend.config import BackendConfig
from backend.protocol import CompletionReport, WarmPrefix
from backend.server.chat_states import ChatStates, chat_hash
from fakes import gguf_maker
from fakes.gguf_maker import Shape
from fakes.patience import soon
from tests.backend.conftest import QUICK, SYSTEM, Running, running

EAGER = replace(QUICK, least_saved=0)
FIXED: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]


@asynccontextmanager
async def warm(config: BackendConfig) -> AsyncIterator[Running]:
    async with running(config, EAGER) as it:
        await it.client.warm(FIXED)
        await it.until(lambda status: status.backend.warm is not None and status.backend.serving)
        yield it


def said(chat: str, words: int = 300) -> list[dict[str, Any]]:
    return [*FIXED, {"role": "user", "content": " ".join(f"{chat}{n}" for n in range(words))}]


async def talk(it: Running, chat: str) -> dict[str, Any]:
    """A request of the chat, which is saved."""
    before = saved(it)
    timings = await it.complete(said(chat), chat, save=True)
    await soon(lambda: saved(it) != before)
    return timings


async def again(it: Running, chat: str) -> int:
    """How many tokens the chat's next message reads."""
    more = [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "more"}]
    return int((await it.complete([*said(chat), *more], chat))["prompt_n"])


async def restarted(it: Running) -> None:
    before = (await it.client.status()).backend.restarts
    await it.client.restart()
    await it.until(lambda now: now.backend.restarts == before + 1 and now.backend.serving)


def saved(it: Running) -> list[Path]:
    return sorted(it.backend.state.config.slots_folder.glob("*.chat"))


@pytest.mark.parametrize(
    "kind", ["gemma3", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("llama", "lfm2"))]
)
async def test_a_chat_is_warm_after_restarts_with_others_used_between(
    config: BackendConfig, tmp_path: Path, kind: Any
) -> None:
    config = replace(config, model=str(gguf_maker.make(tmp_path / "m.gguf", Shape(kind=kind))))
    async with warm(config) as it:
        cold = await talk(it, "a")
        for chat in "bc":
            await talk(it, chat)
        await restarted(it)
        read = {chat: await again(it, chat) for chat in "abc"}
        assert (await it.client.endpoint()).rolls_back == (kind == "llama")
    async with warm(config) as it:
        read["a again"] = await again(it, "a")
        status = await it.client.status()
    assert cold["prompt_n"] > 400
    assert max(read.values()) < 60, read
    assert status.backend.restored and status.backend.restored.chats == 1
    assert status.backend.restored.tokens > 400


async def test_a_chat_is_warm_after_a_change_of_the_model_and_back(
    config: BackendConfig, tmp_path: Path
) -> None:
    other = str(gguf_maker.make(tmp_path / "o.gguf", Shape(kind="lfm2")))
    async with warm(replace(config, profile=config.model, model="")) as it:
        await talk(it, "a")
        for model in (other, config.model):
            async for _ in it.client.use_profile(model):
                pass
        await it.until(lambda status: status.backend.serving)
        assert await again(it, "a") < 60


async def test_a_restore_takes_no_other_chats_prompt_out_of_the_server(
    config: BackendConfig,
) -> None:
    async with warm(config) as it:
        await talk(it, "a")
        await restarted(it)
        await it.complete(said("b"), "b")
        assert await again(it, "a") < 60
        assert await again(it, "b") < 60


async def test_a_request_that_waits_for_the_server_finds_its_chat_restored(
    config: BackendConfig,
) -> None:
    async with warm(config) as it:
        await talk(it, "a")
        async with it.client.acquire_gpu("a") as lease:
            await restarted(it)
            timings = await it.completed(lease, said("a"), "a")
    assert timings["prompt_n"] < 60


async def test_what_is_saved_is_private_and_gone_when_the_chat_is_forgotten(
    config: BackendConfig,
) -> None:
    async with warm(config) as it:
        await talk(it, "a")
        await talk(it, "b")
        modes = {stat.S_IMODE(file.stat().st_mode) for file in config.slots_folder.iterdir()}
        await it.client.forget_chat("a")
        left = saved(it)
        await restarted(it)
        read = [await again(it, chat) for chat in "ab"]
    assert modes == {0o600}
    assert stat.S_IMODE(config.slots_folder.stat().st_mode) == 0o700
    assert [file.name.partition("-")[0] for file in left] == [chat_hash("b")]
    assert read[0] > 400 and read[1] < 60


async def test_a_chat_that_was_forgotten_under_its_lease_is_not_saved(
    config: BackendConfig,
) -> None:
    async with warm(config) as it:
        async with it.client.acquire_gpu("a") as lease:
            await it.completed(lease, said("a"), "a")
            await it.client.forget_chat("a")
            await lease.save()
        await talk(it, "b")
        assert [file.name.partition("-")[0] for file in saved(it)] == [chat_hash("b")]


@pytest.mark.parametrize("damage", ["cut", "part"])
async def test_a_file_that_is_not_whole_is_read_over(config: BackendConfig, damage: str) -> None:
    async with warm(config) as it:
        await talk(it, "a")
        (file,) = saved(it)
        whole = file.read_bytes()
        if damage == "part":  # killed as it was written
            file.rename(config.slots_folder / f"{chat_hash('a')}.part")
        else:
            file.write_bytes(whole[: len(whole) // 2])
        await restarted(it)
        assert await again(it, "a") > 400
        assert (await it.client.status()).backend.restarts == 1
        assert not file.exists() and not list(config.slots_folder.glob("*.part"))
        await talk(it, "a")


@pytest.mark.parametrize(
    "lacking", [3, pytest.param(100_000, marks=pytest.mark.slow)]
)  # bytes: of the last write, and of one before
async def test_a_disk_that_fills_up_while_a_prompt_is_saved_leaves_no_file(
    config: BackendConfig, lacking: int
) -> None:
    async with warm(config) as it:
        await talk(it, "a")
        size = saved(it)[0].stat().st_size
        await it.client.forget_chat("a")
        await restarted(it)
        pid = (await it.client.status()).backend.pid
        assert pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size - lacking, resource.RLIM_INFINITY))
        await it.complete(said("a"), "a", save=True)
        async with it.client.acquire_gpu("b"):  # once the lease has ended
            chats = it.backend.state.config.slots_folder.glob(f"{chat_hash('a')}*")
            assert list(chats) == []
        await restarted(it)
        assert await again(it, "a") > 400


async def test_a_copy_of_a_file_that_a_program_has_named_stops_nobody(
    config: BackendConfig,
) -> None:
    async with warm(config) as it:
        await talk(it, "a")
        (file,) = saved(it)
        file.rename(file.with_name(f"{file.stem}.sync-conflict-20261128-204523-ABCDEFG.chat"))
        await restarted(it)
        assert await again(it, "a") > 400


async def test_files_used_longest_ago_make_room(config: BackendConfig) -> None:
    async with warm(config) as it:
        await talk(it, "a")
        mib = saved(it)[0].stat().st_size / (1 << 20)
    assert 1 / 3 < mib < 1 / 2
    async with warm(replace(config, saved_prompts_mib=1)) as it:
        await talk(it, "b")
        assert await again(it, "a") < 60  # used
        await talk(it, "c")
        await soon(lambda: len(saved(it)) == 2)
        kept = {file.name.partition("-")[0] for file in saved(it)}
    assert kept == {chat_hash("a"), chat_hash("c")}


@pytest.mark.parametrize(
    "changes",
    [pytest.param({"saved_prompts_mib": 0}, marks=pytest.mark.slow), {"profile": "many"}],
)
async def test_nothing_is_saved_where_that_is_off_or_there_are_several_slots(
    config: BackendConfig, changes: dict[str, Any]
) -> None:
    config = replace(config, profiles=config.state_dir / "own", **changes)
    config.state_dir.joinpath("own").mkdir()
    config.state_dir.joinpath("own/many.toml").write_text(
        'title = "Many"\ngpu = false\ncontext = 8192\n[model]\npath = "x"\n'
        '[flags.required]\n"--parallel" = "2"\n'
    )
    async with warm(config) as it:
        await it.complete(said("a"), "a", save=True)
        assert not (await it.client.endpoint()).saves_prompts
        assert saved(it) == []


async def test_what_is_read_as_fast_is_not_saved(config: BackendConfig) -> None:
    async with running(config, replace(QUICK, least_saved=60)) as it:
        await it.client.warm(FIXED)
        await it.until(lambda status: status.backend.warm is not None)
        await it.complete(said("a"), "a", save=True)
        async with it.client.acquire_gpu("b"):  # once the lease has ended
            assert saved(it) == []


# --- without a server ---------------------------------------------------------------


def test_the_servers_cache_in_ram_keeps_what_fits(tmp_path: Path) -> None:
    states = ChatStates(cast(Any, None), tmp_path, 1e9, 3000.0, 0.0, True, lambda restored: None)
    prefix = tmp_path / "p.slot"
    prefix.write_bytes(b"x" * 1000)
    states.begin(WarmPrefix(tokens=1000, cached_tokens=1000, seconds=1, source="prefill"), prefix)
    for chat in "abc":
        states.restoring(chat)
        states.completed(CompletionReport(chat=chat, prompt_tokens=1400, cached_tokens=1000))
    assert list(states.live) == ["b", "c"]


@pytest.mark.parametrize("rolls_back", [True, False])
async def test_a_file_that_was_of_no_use_is_deleted(tmp_path: Path, rolls_back: bool) -> None:
    prefilled = []

    class Server:
        async def prefill(self, tokens: Any) -> None:
            prefilled.append(tokens)

        async def restore(self, name: str) -> int:
            return 3000

    states = ChatStates(cast(Any, Server()), tmp_path, 1e9, 1e9, 0.0, rolls_back, lambda _: None)
    prefix = tmp_path / "p.slot"
    prefix.write_bytes(b"x" * 1000)
    states.begin(WarmPrefix(tokens=1000, cached_tokens=1000, seconds=1, source="prefill"), prefix)
    file = tmp_path / f"{chat_hash('a')}-p-3000-50-1.chat"
    file.write_bytes(b"x")
    restoring = states.restoring("a")
    assert restoring
    await restoring
    assert bool(prefilled) != rolls_back, "a token is read only where a prompt would be lost"
    states.completed(CompletionReport(chat="a", prompt_tokens=1400, cached_tokens=0))
    assert not file.exists()


async def test_a_file_is_kept_where_the_server_is_away(config: BackendConfig) -> None:
    async with warm(config) as it:
        await talk(it, "a")
        await restarted(it)
        pid = (await it.client.status()).backend.pid
        assert pid
        os.kill(pid, signal.SIGKILL)
        await it.until(lambda status: status.backend.state == "restarting")
        async with it.client.acquire_gpu("a") as lease:
            assert len(saved(it)) == 1
            await it.ready()
            timings = await it.completed(lease, said("a"), "a")
    assert timings["prompt_n"] < 60
