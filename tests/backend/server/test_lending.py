"""The card is lent and comes back, with the real server, the real NVML binding and a library of our own."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from backend.client import BackendRefused, BackendUnavailable
from backend.config import BackendConfig
from backend.gpu.nvml import Sample, Sampler
from backend.protocol import Alert, LentTime, QueueState
from backend.server import lending
from backend.state import Timing
from fakes.patience import SECONDS, soon, within
from fakes.words import saying
from tests.backend.conftest import QUICK, SYSTEM, Running, running
from tests.backend.gpu.test_gpu import Scene, library, scene

__all__ = ["library", "scene"]

GIB = 1 << 30
EAGER = replace(QUICK, least_saved=0)
CHATS = "abcd"


@pytest.fixture
def card(config: BackendConfig, library: str) -> BackendConfig:
    return replace(config, nvml=library)


@asynccontextmanager
async def serving(
    card: BackendConfig, scene: Scene, timing: Timing = EAGER, **shown: int
) -> AsyncIterator[Running]:
    """A backend whose server holds 9 GiB of the card while it lives."""

    async def follow(it: Running) -> None:
        known = None
        async for status in it.backend.state.status.changes():
            if status.pid and status.pid != known:
                known = status.pid
                scene(used=0, held=9 * GIB, pid=known, **shown)

    async with running(card, timing) as it:
        following = asyncio.create_task(follow(it))
        try:
            await it.client.warm([{"role": "system", "content": SYSTEM}])
            yield it
        finally:
            following.cancel()


def more_than(things: list[str], count: int) -> bool:
    return len(things) > count


def newer(sampler: Sampler, than: Sample | None) -> bool:
    return sampler.latest is not than


def alerts(it: Running) -> list[Alert]:
    return [alert for alert in it.backend.state.alerts.kept if alert.name == "lent"]


async def back(it: Running, count: int = 1) -> None:
    """The card is back, and the owner was told so."""
    await soon(lambda: [alert.level for alert in alerts(it)].count("over") == count)
    await it.ready()


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.slow)])
async def test_no_request_is_lost_and_the_card_is_free_in_time(
    card: BackendConfig, scene: Scene, times: int
) -> None:
    answered: list[str] = []
    stop = asyncio.Event()

    async def talk(it: Running, chat: str) -> int:
        asked = 0
        while not stop.is_set():
            asked += 1
            await it.ask(chat, f"{chat} {asked}")
            answered.append(chat)
        return asked

    async with serving(card, scene) as it, asyncio.TaskGroup() as group:
        await it.ready()
        talking = [group.create_task(talk(it, chat)) for chat in CHATS]
        for time in range(1, times + 1):
            await soon(partial(more_than, answered, len(answered) + 3))
            with within(10):
                told = await it.client.lend(3600)
            assert told == saying("The card is free until"), told
            status = await it.client.status()
            assert (status.backend.state, status.backend.pid) == ("sleeping", None)
            assert status.gpus[0].memory_used_mib == 0
            assert status.backend.held == saying("The card is lent until", "messages wait")
            count = len(answered)
            await soon(lambda: len(it.backend.state.gpu_queue.waiters) >= len(CHATS) - 1)
            assert len(answered) == count
            await it.client.lend(0)
            await back(it, time)
        stop.set()
    assert len(answered) == sum(task.result() for task in talking)
    assert set(answered) == set(CHATS)


async def test_chats_that_were_saved_and_the_last_one_are_warm_when_the_card_is_back(
    card: BackendConfig, scene: Scene
) -> None:
    """As the agent has them saved once they are silent; the last is saved as the card is lent."""

    def words(chat: str) -> list[dict[str, Any]]:
        text = " ".join(f"{chat}{n}" for n in range(300))
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]

    async with serving(card, scene) as it:
        await it.until(lambda status: status.backend.warm is not None and status.backend.serving)
        first = [await it.complete(words(chat), chat, save=chat != "c") for chat in "abc"]
        await it.client.lend(3600)
        await it.client.lend(0)
        await back(it)
        again = [await it.complete(words(chat), chat) for chat in "abc"]
    assert all(timings["prompt_n"] > 300 for timings in first)
    assert all(timings["prompt_n"] < 60 for timings in again)


async def test_a_lend_outlives_the_backend_and_ends_by_the_clock(
    card: BackendConfig, scene: Scene
) -> None:
    ahead = 0.0
    timing = replace(EAGER, clock=lambda: datetime.now(UTC).timestamp() + ahead, look_schedule=0.1)
    async with serving(card, scene, timing) as it:
        await it.ready()
        await it.client.lend(3600)
    async with serving(card, scene, timing) as it:
        lent = await it.until(lambda status: status.backend.state == "sleeping")
        assert lent.backend.lent_until
        with pytest.raises(BackendUnavailable, match="The card is lent until"):
            await it.client.endpoint()
        with pytest.raises(BackendRefused, match="The card is lent until"):
            async for _ in it.client.use_profile("pocket"):
                pass
        waiting = asyncio.create_task(it.ready(0.1))  # seconds in which it is lent do not count
        ahead = 3601.0
        await asyncio.wait_for(waiting, SECONDS)
        await back(it)
    async with serving(card, scene, timing) as it:
        await it.ready()
        assert len(alerts(it)) == 1


async def test_a_clock_that_is_set_back_lengthens_no_lend(config: BackendConfig) -> None:
    ahead = 0.0
    timing = replace(EAGER, clock=lambda: datetime.now(UTC).timestamp() + ahead, look_schedule=0.1)
    async with running(config, timing) as it:
        await it.ready()
        await it.client.lend(1)
        ahead = -3600.0
        await back(it)


@pytest.mark.parametrize(
    "kept", [b"\xff\xfe{", b'{"until":"2026-11-28T20:00:00"}', b'{"until":1}', b""]
)
async def test_what_is_no_lend_any_more_keeps_no_backend_from_serving(
    config: BackendConfig, kept: bytes
) -> None:
    (config.state_dir / "lend.json").write_bytes(kept)
    async with running(config, EAGER) as it:
        await it.until(lambda status: status.backend.state == "ready")
        await soon(lambda: it.backend.state.status.current.lent_until is None)


async def test_without_a_model_a_lend_ends_and_another_can_be_chosen(
    config: BackendConfig, noise: Path
) -> None:
    async with running(replace(config, model="", profile="missing"), EAGER) as it:
        await it.until(lambda status: status.backend.state == "failed")
        assert await it.client.lend(3600) == saying("unloaded until")
        assert await it.client.lend(0) == saying("loaded again")
        await it.until(lambda status: status.backend.lent_until is None)
        assert (await it.client.status()).backend.reason == saying("no profile called missing")
        async for _ in it.client.use_profile(str(noise)):
            pass
        await it.ready()


async def loading(it: Running) -> int:
    """The pid of the server that loads the model again."""
    status = await it.until(lambda status: status.backend.pid is not None)
    assert status.backend.pid
    return status.backend.pid


async def test_the_card_is_lent_again_while_the_model_is_being_loaded(
    config: BackendConfig,
) -> None:
    async with running(config, EAGER) as it:
        await it.ready()
        await it.client.lend(3600)
        await it.client.lend(0)
        os.kill(await loading(it), signal.SIGSTOP)  # it takes its time
        assert await it.client.lend(1800) == saying("unloaded until")
        status = (await it.client.status()).backend
        assert (status.state, status.pid) == ("sleeping", None)
        assert status.last_restart and status.last_restart.cause == saying("The card is lent until")
        assert not alerts(it)
        await it.client.lend(0)
        await back(it)


@pytest.mark.slow
async def test_that_the_card_is_back_is_told_also_where_the_first_start_fails(
    config: BackendConfig,
) -> None:
    async with running(config, EAGER) as it:
        await it.ready()
        await it.client.lend(3600)
        await it.client.lend(0)
        os.kill(await loading(it), signal.SIGKILL)
        await back(it)


async def test_a_turn_that_begins_while_the_card_is_lent_is_told_once_and_waits(
    card: BackendConfig, scene: Scene
) -> None:
    told: list[QueueState] = []

    async def turn(it: Running) -> None:
        async with it.client.turn("a", told.append):
            pass

    async with serving(card, scene) as it:
        await it.ready()
        await it.client.lend(3600)
        waiting = asyncio.create_task(turn(it))
        await soon(lambda: told)
        await it.client.restart()  # changes nothing meanwhile
        assert (await it.client.status()).backend.pid is None
        assert await it.client.lend(0) == saying("loaded again")
        await asyncio.wait_for(waiting, SECONDS)
    assert told[0].reason == saying("The card is lent until", "messages wait")
    assert [state.reason for state in told].count(told[0].reason) == 1


async def test_a_card_that_is_still_held_is_told(
    card: BackendConfig, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lending, "FREE_SECONDS", 1.0)
    async with running(card, EAGER) as it:
        await it.ready()
        scene(used=9 * GIB)  # whatever ends
        told = await it.client.lend(3600)
    assert told == saying("still held", "9,216 MiB")


async def test_the_card_is_lent_by_itself_while_another_program_computes(
    card: BackendConfig, scene: Scene, other: subprocess.Popen[bytes]
) -> None:
    ahead = 0.0
    timing = replace(EAGER, clock=lambda: datetime.now(UTC).timestamp() + ahead, look_schedule=0.1)
    async with serving(replace(card, lend_to_others=True), scene, timing, pid2=other.pid) as it:
        await it.ready()
        # One that was there before is left alone: this one comes later.
        lent, sampler = it.backend.state.status.current, it.backend.state.sampler
        both = {lent.pid, other.pid}
        for _ in range(4):
            seen = sampler.latest
            await soon(partial(newer, sampler, seen))
        await soon(lambda: sampler.latest and sampler.latest.pids == both)
        assert it.backend.state.status.current.lent_until is None
        late = subprocess.Popen(["sleep", "1000"])
        try:
            scene(used=0, held=GIB, pid=lent.pid, pid2=late.pid)
            await it.until(lambda status: status.backend.state == "sleeping")
            assert alerts(it)[-1].text == saying("Another program computes on the card")
            ahead = 31.0  # it is still there
            await soon(
                lambda: (
                    (it.backend.state.status.current.lent_until or datetime.now(UTC)).timestamp()
                    > timing.clock() + 50
                )
            )
        finally:
            late.kill()
            late.wait()
        ahead = 200.0
        await back(it)


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """Another program."""
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


async def test_a_card_is_lent_by_itself_only_where_that_is_set(
    card: BackendConfig, scene: Scene
) -> None:
    async with serving(card, scene) as it:
        await it.ready()
        assert it.backend.state.sampler.listeners
        assert not [
            listener
            for listener in it.backend.state.sampler.listeners
            if "Lending" in repr(listener)
        ]


async def test_where_nothing_is_lent_nothing_is_taken_back(config: BackendConfig) -> None:
    async with running(config) as it:
        await it.ready()
        assert await it.client.lend(0) == "The card is not lent."


def test_times_are_bounded() -> None:
    for seconds in (-1, 86_401, float("nan")):
        with pytest.raises(ValidationError):
            LentTime(seconds=seconds)
