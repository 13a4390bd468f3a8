"""The warm prefix on the real server: measured, restored where that works, read again where it does not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backend.config import BackendConfig
from backend.protocol import Status
from fakes import gguf_maker
from fakes.gguf_maker import TEMPLATE, Shape
from tests.backend.conftest import SYSTEM, Running, running

FIXED: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
TOOL = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}


def is_warm(status: Status) -> bool:
    return status.backend.warm is not None and status.backend.serving


async def restarted(it: Running) -> Status:
    before = (await it.client.status()).backend.restarts
    await it.client.restart()
    return await it.until(lambda status: status.backend.restarts == before + 1 and is_warm(status))


async def test_the_first_turn_after_a_start_and_after_a_restart_reads_no_prefix(
    config: BackendConfig,
) -> None:
    async with running(config) as it:
        await it.client.warm(FIXED)
        first = await it.until(is_warm)
        cold = await it.ask("a", "hello")
        second = await restarted(it)
        again = await it.ask("a", "another")
    assert first.backend.warm and second.backend.warm
    assert (first.backend.warm.source, second.backend.warm.source) == ("prefill", "restore")
    tokens = first.backend.warm.tokens
    assert tokens == first.backend.warm.cached_tokens == second.backend.warm.cached_tokens > 512
    assert (cold["cache_n"], again["cache_n"]) == (tokens, tokens)
    assert max(cold["prompt_n"], again["prompt_n"]) < 60


async def test_chats_that_take_turns_are_read_once(config: BackendConfig) -> None:
    def begun(chat: str) -> list[dict[str, Any]]:
        return [*FIXED, {"role": "user", "content": f"{chat} " * 150}]

    async with running(config) as it:
        await it.client.warm(FIXED)
        await it.until(is_warm)
        first = {chat: await it.complete(begun(chat)) for chat in ("one", "two")}
        said = [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "more"}]
        again = {chat: await it.complete([*begun(chat), *said]) for chat in ("one", "two")}
    known = {chat: seen["cache_n"] + seen["prompt_n"] for chat, seen in first.items()}
    assert {chat: known[chat] - again[chat]["cache_n"] <= 16 for chat in known} == {
        "one": True,
        "two": True,
    }


async def test_the_prefix_is_remembered_by_the_next_backend(config: BackendConfig) -> None:
    async with running(config) as it:
        await it.client.warm(FIXED, [TOOL])
        await it.until(is_warm)
    async with running(config) as it:
        status = await it.until(is_warm)
    assert status.backend.warm and status.backend.warm.source == "restore"


async def test_a_changed_prefix_is_warmed_anew(config: BackendConfig) -> None:
    async with running(config) as it:
        await it.client.warm(FIXED)
        one = await it.until(is_warm)
        await it.client.warm(FIXED, [TOOL])
        other = await it.until(
            lambda status: is_warm(status) and status.backend.warm != one.backend.warm
        )
    assert one.backend.warm and other.backend.warm
    assert other.backend.warm.tokens > one.backend.warm.tokens


@pytest.mark.parametrize("kind", ["gemma3", "lfm2"])
async def test_models_that_cannot_roll_back_are_as_warm_after_a_restart(
    config: BackendConfig, tmp_path: Path, kind: Any
) -> None:
    model = gguf_maker.make(tmp_path / "m.gguf", Shape(kind=kind))
    async with running(replace(config, model=str(model))) as it:
        await it.client.warm(FIXED)
        await it.until(is_warm)
        status = await restarted(it)
        answer = await it.ask("a", "hello")
    assert status.backend.warm
    assert status.backend.warm.cached_tokens == status.backend.warm.tokens
    assert status.backend.warm.tokens - answer["cache_n"] <= 32


async def test_a_damaged_slot_file_is_read_over(config: BackendConfig) -> None:
    async with running(config) as it:
        await it.client.warm(FIXED)
        await it.until(is_warm)
        (file,) = (config.state_dir / "slots").glob("*.slot")
        file.write_bytes(file.read_bytes()[:100])
        status = await restarted(it)
    assert status.backend.warm and status.backend.warm.source == "prefill"


async def test_a_template_that_refuses_leaves_a_serving_server(
    config: BackendConfig, tmp_path: Path
) -> None:
    refusing = (
        "{% if 'a test' in messages[0].content %}{{ raise_exception('no') }}{% endif %}" + TEMPLATE
    )
    model = gguf_maker.make(tmp_path / "m.gguf", template=refusing)
    async with running(replace(config, model=str(model))) as it:
        await it.client.warm(FIXED)
        alert = await anext(it.client.events())
        await it.ready()
        status = await it.client.status()
    assert alert.name == "warm-up"
    assert (status.backend.state, status.backend.warm) == ("ready", None)


async def test_a_sleeping_server_is_woken_warm(config: BackendConfig) -> None:
    folder = config.state_dir / "own"
    folder.mkdir()
    (folder / "sleepy.toml").write_text(
        'title = "Sleeps"\ngpu = false\ncontext = 8192\n[model]\npath = "x"\n'
        '[flags.required]\n"--parallel" = "1"\n"--sleep-idle-seconds" = "1"\n'
    )
    async with running(replace(config, profile="sleepy", profiles=folder)) as it:
        await it.client.warm(FIXED)
        warm = await it.until(is_warm)
        await it.until(lambda status: status.backend.state == "sleeping")
        answer = await it.ask("a", "hello")
        status = await it.client.status()
    assert warm.backend.warm
    assert answer["cache_n"] == warm.backend.warm.tokens
    assert status.backend.restarts == 0


async def test_a_prefix_in_front_of_the_first_message_is_warmed_as_it_is_sent(
    config: BackendConfig,
) -> None:
    """A template without a system role gets the system text there."""
    async with running(config) as it:
        await it.client.warm([], before=f"{SYSTEM}\n\n")
        warm = (await it.until(is_warm)).backend.warm
        answer = await it.complete([{"role": "user", "content": f"{SYSTEM}\n\nhello"}])
    assert warm and answer["cache_n"] == warm.tokens > 512
