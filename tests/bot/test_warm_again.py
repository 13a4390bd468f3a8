"""The whole program over the real model server, killed: what the next turn has to read."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from agent.channels import Assignment, NoChannels
from agent.chats.chats import Chats
from agent.chats.maintenance import Maintenance
from agent.events import Emit, TokenUsage, TurnFinished
from agent.messages import Assistant, User
from agent.store import Incoming, Store
from agent.store.turns import RenderedMessage, TurnEnd
from backend.config import BackendConfig
from bot.agent_config import open_agent
from bot.settings import Settings, StateSection
from fakes import gguf_maker
from fakes.backend_running import QUICK, Running, running
from fakes.gguf_chain import make_chain
from fakes.model_scripted import ModelServer
from fakes.patience import soon


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder whose path is short enough for a UNIX socket."""
    folder = Path(tempfile.mkdtemp(prefix="vw"))
    yield folder
    shutil.rmtree(folder)


async def talk(store: Store, chat: str) -> None:
    await store.inbox.add(Incoming(chat, "test", chat, "hello"))
    rows = await store.inbox.waiting(chat)
    turn = await store.turns.begin(chat, rows, RenderedMessage("", User(f"{chat} " * 150)))
    await store.turns.end(turn, TurnEnd(Assistant("yes"), "yes", "done", TokenUsage()))


async def read_again(store: Store) -> list[tuple[str, int, int]]:
    """Chat, tokens and tokens not in the cache of each warming read, in order."""
    async with store.database.read() as tx:
        rows = await tx.all(
            "SELECT chat, prompt_tokens, prompt_tokens - cached_tokens FROM usage"
            " WHERE purpose = 'warm' ORDER BY id"
        )
    return [(chat, prompt, new) for chat, prompt, new in rows]


async def killed(it: Running) -> None:
    pid = (await it.client.status()).backend.pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    await it.until(lambda status: status.backend.restarts == 1 and status.backend.state == "ready")


async def test_recent_chats_are_read_in_again_when_the_model_server_was_killed(state: Path) -> None:
    model = gguf_maker.make(state / "noise.gguf")
    config = BackendConfig(state_dir=state / "b", model=str(model), server="embedded")
    settings = Settings(state=StateSection(dir=state / "a"))
    async with (
        running(config) as it,
        open_agent(settings, it.client) as agent,
        Chats(agent.store, agent.run, agent.window, NoChannels()) as chats,
    ):
        await it.ready()
        for chat in ("one", "two"):
            await talk(agent.store, chat)
        idle = Maintenance(agent.store, agent.window, chats, agent.server_identity)
        await agent.refresh_status()
        prefix = await it.until(lambda status: status.backend.warm is not None)
        assert prefix.backend.warm
        await idle.run_once()
        await killed(it)
        await idle.run_once()
        for chat in ("one", "two"):
            await agent.window.warm(chat)
        reads = await read_again(agent.store)
    assert [chat for chat, _, _ in reads] == ["one", "two"] * 3
    fixed = prefix.backend.warm.tokens
    assert all(abs(new - (prompt - fixed)) <= 32 for _, prompt, new in reads[:4])
    assert [new <= 2 for _, _, new in reads[4:]] == [True, True]


async def test_a_server_that_tells_nothing_of_its_cache_is_asked_for_nothing(state: Path) -> None:
    async with ModelServer() as server:
        config = BackendConfig(state_dir=state / "b", kind="external", urls=(server.url,))
        settings = Settings(state=StateSection(dir=state / "a"))
        async with running(config) as it, open_agent(settings, it.client) as agent:
            await it.ready()
            assert await agent.server_identity() is None
            assert (await it.client.status()).backend.state == "ready"


async def test_chats_that_were_just_used_are_saved_before_the_card_is_lent(state: Path) -> None:
    model = make_chain(state / "m.gguf", "Hello.")
    config = BackendConfig(state_dir=state / "b", model=str(model), server="embedded")
    settings = Settings(state=StateSection(dir=state / "a"))
    names, ended = ("one", "two", "three"), list[str]()

    async def run(assignment: Assignment, emit: Emit) -> TurnFinished:
        finished = await agent.run(assignment, emit)
        ended.append(assignment.turn.chat)
        return finished

    def over(chat: str) -> bool:
        return chat in ended and not chats.running()

    async with (
        running(config, replace(QUICK, least_saved=0)) as it,
        open_agent(settings, it.client) as agent,
        Chats(agent.store, run, agent.window, NoChannels()) as chats,
    ):
        await it.ready()
        await agent.refresh_status()
        await it.until(lambda status: status.backend.warm is not None and status.backend.serving)
        idle = Maintenance(
            agent.store, agent.window, chats, agent.server_identity, saves=agent.saves_prompts
        )
        keeping = asyncio.create_task(idle.run())
        await soon(lambda: idle.warmed)
        for chat in names:
            await chats.submit(Incoming(chat, "test", chat, f"{chat} " * 150))
            await soon(partial(over, chat))
        assert not idle.saved
        await it.client.lend(3600)
        keeping.cancel()
        await asyncio.wait([keeping])
        await it.client.lend(0)
        await it.until(lambda status: status.backend.serving)
        for chat in names:
            await agent.window.warm(chat)
        reads = await read_again(agent.store)
    assert set(idle.saved) == set(names)
    assert [chat for chat, _, _ in reads[-3:]] == list(names)
    assert [new <= 2 for _, _, new in reads[-3:]] == [True] * 3
