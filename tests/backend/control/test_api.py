"""The control API as its clients see it."""

import asyncio
import os
import re
import socket
import stat
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from aiohttp import WSCloseCode, WSMsgType

from backend import proc
from backend.client import BackendClient, BackendUnavailable, default_socket
from backend.config import BackendConfig
from backend.protocol import CompletionReport, QueueState, ServerStatus, Speed
from backend.service import AlreadyRunning, serve_backend
from fakes.patience import SECONDS, soon
from tests.backend.conftest import running


async def test_status_endpoint_logs_and_metrics_of_a_running_backend(config: BackendConfig) -> None:
    async with running(config) as it:
        await it.ready()
        status, place = await it.client.status(), await it.client.endpoint()
        async with it.client.acquire_gpu("a"):
            busy = await it.client.status()
        prometheus = await it.client.metrics()
        logs = await it.client.logs(5)
    server = status.backend
    assert server.pid and proc.started(server.pid) is None
    assert server == ServerStatus(
        state="ready",
        kind="managed",
        profile="pocket",
        model="noise.gguf",
        n_ctx=16384,
        pid=server.pid,
    )
    assert status.gpus == []
    assert status.speed == Speed()
    assert status.memory_mib.backend and status.memory_mib.server
    assert busy.backend.state == "busy"
    assert (place.model, place.n_ctx, place.kind, place.extras) == (
        "pocket",
        16384,
        "managed",
        True,
    )
    assert place.url.startswith("http://127.0.0.1:")
    assert len(place.api_key) >= 24
    assert "voltaire_up 1.0\n" in prometheus
    assert len(logs) == 5


async def test_the_key_stands_on_no_command_line_and_is_needed(config: BackendConfig) -> None:
    async with running(config) as it:
        await it.ready()
        place, status = await it.client.endpoint(), await it.client.status()
        line = Path(f"/proc/{status.backend.pid}/cmdline").read_text()
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{place.url}/v1/models") as answer,
        ):
            assert answer.status == 401
    assert place.api_key not in line


async def test_the_socket_is_for_its_owner_alone(config: BackendConfig) -> None:
    async with running(config) as it:
        assert stat.S_IMODE(it.backend.socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(it.backend.socket.parent.stat().st_mode) == 0o700


async def test_a_second_backend_on_the_same_state_is_refused(config: BackendConfig) -> None:
    async with running(config):
        with pytest.raises(AlreadyRunning, match="already runs"):
            async with serve_backend(config):
                pass


async def test_a_state_behind_a_link_is_served(config: BackendConfig, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(config.state_dir)
    async with running(replace(config, state_dir=link)) as it:
        await it.ready()


async def test_without_a_backend_there_is_one_sentence(state: Path) -> None:
    async with BackendClient(state / "nothing.sock") as client:
        with pytest.raises(BackendUnavailable, match=r"^No model backend is running\.$"):
            await client.status()
        with pytest.raises(BackendUnavailable):
            async with client.acquire_gpu("a"):
                pass
        with pytest.raises(BackendUnavailable):
            await anext(client.ready(1))


async def test_ready_has_a_deadline(config: BackendConfig) -> None:
    async with running(replace(config, server="/bin/true")) as it:
        it.backend.state.status.set(state="loading")
        with pytest.raises(BackendUnavailable):
            async for _ in it.client.ready(0.05):
                pass


async def test_the_gpu_is_shared_between_clients_and_freed_when_one_dies(
    config: BackendConfig,
) -> None:
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from backend.client import BackendClient\n"
        "async def main():\n"
        "    async with BackendClient(Path(sys.argv[1])) as client, client.acquire_gpu('other'):\n"
        "        print('held', flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    async with running(config) as it:
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, str(it.backend.socket), stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )  # fmt: skip
        assert other.stdout
        assert await asyncio.wait_for(other.stdout.readline(), SECONDS) == b"held\n"
        waits: list[QueueState] = []
        mine = asyncio.create_task(hold(it.client, waits))
        await soon(lambda: waits)
        other.kill()
        await other.wait()
        await asyncio.wait_for(mine, SECONDS)
        assert [(wait.state, wait.ahead) for wait in waits] == [("waiting", 1)]


async def hold(client: BackendClient, waits: list[QueueState]) -> None:
    async with client.acquire_gpu("mine", on_wait=waits.append):
        pass


async def test_a_report_of_bad_form_ends_the_lease_with_its_reason(config: BackendConfig) -> None:
    async with running(config) as it:
        connector = aiohttp.UnixConnector(str(it.backend.socket))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.ws_connect("http://b/v1/leases") as socket,
        ):
            await socket.send_str('{"id": 1, "enter": {"chat": "a"}}')
            assert "held" in await socket.receive_str()
            await socket.send_str('{"id": 1, "report": {"status": "fine"}}')
            end = await socket.receive()
        assert (end.data, "status" in (end.extra or "")) == (WSCloseCode.INVALID_TEXT, True)
        async with it.client.acquire_gpu("another"):
            pass


async def test_another_backend_is_asked_when_the_first_is_gone(config: BackendConfig) -> None:
    async with AsyncExitStack() as stack:
        async with running(config) as it:
            client = await stack.enter_async_context(BackendClient(it.backend.socket))
            await stack.enter_async_context(client.acquire_gpu("a"))
            waits: list[QueueState] = []
            waiting = asyncio.create_task(hold(client, waits))
            await soon(lambda: waits)
        with pytest.raises(BackendUnavailable, match="ended while"):
            await asyncio.wait_for(waiting, SECONDS)
        async with running(config):
            await asyncio.wait_for(hold(client, []), SECONDS)


async def test_the_end_of_a_backend_closes_the_leases_of_programs_that_stay(
    config: BackendConfig,
) -> None:
    async with AsyncExitStack() as stack:
        async with running(config) as it:
            connector = aiohttp.UnixConnector(str(it.backend.socket))
            session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
            leases = await stack.enter_async_context(session.ws_connect("http://b/v1/leases"))
            reading = asyncio.create_task(leases.receive())
        end = await asyncio.wait_for(reading, SECONDS)
    assert (end.type, end.data) == (WSMsgType.CLOSE, WSCloseCode.OK)


async def test_a_backend_that_dies_under_a_lease_disturbs_no_report(config: BackendConfig) -> None:
    async with AsyncExitStack() as stack:
        async with running(config) as it:
            client = await stack.enter_async_context(BackendClient(it.backend.socket))
            lease = await stack.enter_async_context(client.acquire_gpu("a"))
        await lease.report(CompletionReport(chat="a"))


def test_a_long_state_path_gets_a_short_socket(tmp_path: Path) -> None:
    short, long = Path("/var/lib/voltaire"), tmp_path / ("x" * 120)
    assert default_socket(short) == short / "run" / "backend.sock"
    assert len(os.fsencode(default_socket(long))) < 100
    assert default_socket(long) == default_socket(long)


async def test_a_backend_that_hangs_is_one_sentence(state: Path) -> None:
    """Its socket takes the connection and nobody answers."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(state / "hangs.sock"))
        listener.listen()
        async with BackendClient(state / "hangs.sock", answer_seconds=0.2) as client:
            with pytest.raises(BackendUnavailable, match=r"^The model backend does not answer\.$"):
                await client.status()


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"input": ' + b"[" * 100_000, b"[1]", b"", b"\xff"]
)
async def test_a_body_that_is_no_object_is_refused_in_a_sentence(
    config: BackendConfig, body: bytes
) -> None:
    async with (
        running(config) as it,
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(it.backend.socket))) as session,
        session.post("http://backend/v1/embeddings", data=body) as answer,
    ):
        said = await answer.text()
    assert answer.status == 400
    assert re.fullmatch(r"(Invalid JSON: .+|Input should be an object)", said), said
