"""Processes that stand still for longer than every deadline, as after a sleep of the machine."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from backend import proc
from backend.client import BackendClient, default_socket
from backend.config import BackendConfig
from backend.protocol import Status
from backend.state import RESTARTS, RestartHistory
from fakes.backend_running import QUICK, Running
from fakes.patience import SECONDS, within
from tests.backend.conftest import running

# Seconds, each more than the silence that counts as a fault in that state.
FROZEN = {"busy": 4.0, "ready": 4.0, "loading": 11.0}
BRIEF = replace(QUICK, stall=1.5, stopped=0.5, load_stall=10.0, longest_load=40.0, wake=1.0)
WAKING = 10.0  # seconds after waking within which it serves, on a busy machine
BACKEND = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from backend.config import BackendConfig
from backend.service import serve_backend
from tests.backend.server.test_frozen import BRIEF

async def main(state, model):
    config = BackendConfig(state_dir=Path(state), model=model, server="embedded")
    async with serve_backend(config, timing=BRIEF) as backend:
        await backend.ended()

asyncio.run(main(*sys.argv[1:]))
"""


@asynccontextmanager
async def frozen(*groups: int) -> AsyncIterator[None]:
    """The process groups stand still for the block, whoever wakes them."""

    async def keep() -> None:
        while True:
            stop(*groups)
            await asyncio.sleep(0.002)

    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])
        stop(*groups, number=signal.SIGCONT)


def stop(*groups: int, number: int = signal.SIGSTOP) -> None:
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, number)


async def pid_of(it: Running) -> int:
    pid = (await it.client.status()).backend.pid
    assert pid
    return pid


def told(it: Running) -> list[str]:
    return [alert.text for alert in it.backend.state.alerts.kept if alert.name == "server"]


@pytest.mark.parametrize(
    "asked", [pytest.param(False, marks=pytest.mark.slow), True], ids=["idle", "asked"]
)
async def test_a_server_that_stands_still_is_replaced_and_told_once(
    config: BackendConfig, asked: bool
) -> None:
    async with running(config, BRIEF) as it, asyncio.TaskGroup() as group:
        await it.ready()
        before = await pid_of(it)
        async with frozen(before):
            with within(WAKING):
                answering = group.create_task(it.ask("a", "hello")) if asked else None
                await it.until(lambda status: status.backend.restarts == 1)
            await it.until(lambda status: status.backend.serving)
        answer = await (answering or it.ask("a", "hello"))
        after = await it.client.status()
    assert 0 < answer["predicted_n"] <= 12
    assert after.backend.restarts == 1 and after.backend.pid != before
    assert len(told(it)) == 1 and "SIGSTOP" in told(it)[0]


@pytest.mark.parametrize("started", [True, pytest.param(False, marks=pytest.mark.slow)])
async def test_a_server_that_stands_still_while_it_warms_is_replaced_and_warmed(
    config: BackendConfig, started: bool
) -> None:
    """As it starts, or because another prefix is registered."""
    long = [{"role": "system", "content": "You are a test. " * 1000}]
    async with running(config, BRIEF) as it:
        if started:
            await it.ready()
        await it.client.warm(long)
        await it.until(lambda status: status.backend.state == "warming")
        before = await pid_of(it)
        async with frozen(before):
            await it.until(lambda status: status.backend.restarts == 1)
        after = await it.until(lambda status: status.backend.serving and bool(status.backend.warm))
    assert after.backend.warm and after.backend.warm.cached_tokens == after.backend.warm.tokens
    assert after.backend.pid != before and len(told(it)) == 1 and "SIGSTOP" in told(it)[0]


def alerts_in(config: BackendConfig) -> list[str]:
    return (config.state_dir / "alerts.jsonl").read_text("utf-8").splitlines()


class Beside(Running):
    """A backend that is a process of its own, which can stand still with its server."""

    def __init__(self, client: BackendClient, process: asyncio.subprocess.Process) -> None:
        self.client, self.process, self.patience, self.reasons = client, process, SECONDS, []

    async def at(self, state: str) -> int:
        """The server's pid once it is in that state."""

        async def look() -> Status:
            while True:
                status = await self.client.status()
                if status.backend.state == state and status.backend.pid:
                    return status
                await asyncio.sleep(0.001)

        pid = (await asyncio.wait_for(look(), SECONDS)).backend.pid
        assert pid
        return pid


@asynccontextmanager
async def beside(config: BackendConfig) -> AsyncIterator[Beside]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BACKEND, str(config.state_dir), config.model, start_new_session=True
    )
    try:
        async with BackendClient(default_socket(config.state_dir)) as client:
            assert await client.answers_within(SECONDS)
            yield Beside(client, process)
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.parametrize(
    "doing",
    ["busy", *(pytest.param(state, marks=pytest.mark.slow) for state in ("loading", "ready"))],
)
async def test_a_backend_that_stood_still_with_its_server_goes_on_with_it(
    config: BackendConfig, doing: str
) -> None:
    """Nobody is told anything, as nothing was lost; whose request was open gets its answer."""
    async with beside(config) as it, asyncio.TaskGroup() as group:
        answering = None
        if doing == "busy":
            await it.ready()
            answering = group.create_task(it.ask("a", "hello " * 1000))
        pid = await it.at(doing)
        async with frozen(it.process.pid, pid):
            await asyncio.sleep(FROZEN[doing])
            assert proc.state(pid) == proc.state(it.process.pid) == "T"
        with within(WAKING):
            answer = await (answering or it.ask("a", "hello"))
        status = (await it.client.status()).backend
    assert 0 < answer["predicted_n"] <= 12
    assert (status.pid, status.restarts) == (pid, 0), status.last_restart
    assert not alerts_in(config)


async def test_a_server_that_did_not_outlive_the_sleep_is_replaced_and_told_once(
    config: BackendConfig,
) -> None:
    async with beside(config) as it:
        pid = await it.at("ready")
        async with frozen(it.process.pid, pid):
            os.killpg(pid, signal.SIGKILL)
            await asyncio.sleep(FROZEN["ready"])
        with within(WAKING):
            answer = await it.ask("a", "hello")
    alerts = alerts_in(config)
    causes = [restart.cause for restart in RestartHistory(config.state_dir / RESTARTS).read()]
    assert 0 < answer["predicted_n"] <= 12
    assert len(alerts) == 1 and len(causes) == 2, (alerts, causes)
