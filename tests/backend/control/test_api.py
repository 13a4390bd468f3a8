"""The control API as its clients see it, external servers, the embedded program, systemd, other programs."""

import asyncio
import json
import os
import signal
import socket
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from backend import proc
from backend.client import BackendClient, BackendRefused, BackendUnavailable, default_socket
from backend.config import BackendConfig
from backend.control.alerts import Alerts
from backend.control.metrics import text
from backend.protocol import Gpu, QueueState, ServerStatus, Speed, Status, WarmPrefix
from backend.server.launch import free_port
from backend.service import BackendRunning, serve_backend
from fakes.patience import SECONDS, soon, within
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
    assert "voltaire_up 1\n" in prometheus
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
        with pytest.raises(BackendRunning, match="already runs"):
            async with serve_backend(config):
                pass


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


async def test_the_lane_is_shared_between_clients_and_freed_when_one_dies(
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


async def test_a_report_of_bad_form_is_refused_with_its_reason(config: BackendConfig) -> None:
    async with running(config) as it:
        connector = aiohttp.UnixConnector(str(it.backend.socket))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post("http://b/v1/report", data='{"status": "fine"}') as answer,
        ):
            assert (answer.status, "status" in await answer.text()) == (400, True)


async def test_alerts_are_numbered_kept_and_streamed(tmp_path: Path) -> None:
    alerts = Alerts(tmp_path / "alerts.jsonl")
    alerts.read()
    alerts.add("heat", "warning", "Hot.")
    alerts.add("heat", "warning", "Hot.")
    alerts.add("heat", "over", "Cool.")
    later = Alerts(tmp_path / "alerts.jsonl")
    later.read()
    stream = later.stream(after=later.kept[0].id)
    assert (await anext(stream)).text == "Cool."
    later.add("xid", "critical", "Xid 79.")
    newest = await anext(stream)
    assert [alert.text for alert in later.kept] == ["Hot.", "Cool.", "Xid 79."]
    assert newest == later.kept[-1]
    assert newest.id > later.kept[1].id > later.kept[0].id


async def test_news_that_cannot_be_rewritten_is_kept_as_it_is(tmp_path: Path) -> None:
    alerts = Alerts(tmp_path / "alerts.jsonl")
    alerts.add("heat", "warning", "Hot.")
    written = alerts.path.read_bytes()
    alerts.path.with_suffix(".new").mkdir()  # stands for a disk without state
    later = Alerts(alerts.path)
    later.read()
    assert [alert.text for alert in later.kept] == ["Hot."]
    assert alerts.path.read_bytes() == written


def test_prometheus_text() -> None:
    status = Status(
        version="1",
        uptime_s=2.5,
        backend=ServerStatus(
            state="ready",
            profile='a"b',
            warm=WarmPrefix(tokens=5, cached_tokens=5, seconds=1, source="prefill"),
        ),
        speed=Speed(decode_tok_s=50),
        gpus=[Gpu(index=0, name="V", temperature_c=60, throttle=["thermal"])],
    )
    lines = text(status).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "voltaire_up 1",
        "voltaire_restarts_total 0",
        "voltaire_uptime_seconds 2.5",
        "voltaire_lane_waiting 0",
        "voltaire_warm_tokens 5",
        'voltaire_info{profile="a\\"b"} 1',
        "voltaire_decode_tokens_per_second 50.0",
        'voltaire_gpu_temperature_celsius{gpu="0"} 60.0',
        'voltaire_gpu_throttled{gpu="0",reason="thermal"} 1',
    ]
    assert lines[0] == "# HELP voltaire_up whether the model server serves"
    assert lines[1] == "# TYPE voltaire_up gauge"


def test_a_long_state_path_gets_a_short_socket(tmp_path: Path) -> None:
    short, long = Path("/var/lib/voltaire"), tmp_path / ("x" * 120)
    assert default_socket(short) == short / "run" / "backend.sock"
    assert len(os.fsencode(default_socket(long))) < 100
    assert default_socket(long) == default_socket(long)


async def test_systemd_is_told(config: BackendConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        path = str(config.state_dir / "notify")
        listener.bind(path)
        listener.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        monkeypatch.setenv("WATCHDOG_USEC", "200000")
        loop, told = asyncio.get_running_loop(), list[str]()
        async with running(config), asyncio.timeout(SECONDS):
            while not {"READY=1", "WATCHDOG=1", "STATUS=ready"} <= set(told):
                told.append((await loop.sock_recv(listener, 4096)).decode())
    assert "STATUS=starting" in told


# --- external servers ---------------------------------------------------------------


@asynccontextmanager
async def openai_server(routes: dict[str, Any]) -> AsyncIterator[str]:
    """A server with these GET routes; its URL."""

    async def answer(request: web.Request) -> web.Response:
        found = routes.get(request.path)
        return web.json_response(found, status=404 if found is None else 200)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server
    port = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port}"
    await runner.cleanup()


async def test_the_first_external_server_that_answers_is_used(state: Path) -> None:
    models = {"/v1/models": {"data": [{"id": "big", "max_model_len": 65536}]}}
    async with openai_server(models) as url:
        config = BackendConfig(
            state_dir=state, kind="external", urls=("http://127.0.0.1:9", f"{url}/v1"), api_key="k"
        )
        async with running(config) as it:
            await it.ready()
            place, status = await it.client.endpoint(), await it.client.status()
    assert (place.url, place.model, place.n_ctx, place.extras, place.api_key) == (
        url,
        "big",
        65536,
        False,
        "k",
    )
    assert (status.backend.state, status.backend.kind, status.backend.model) == (
        "ready",
        "external",
        "big",
    )


async def test_llama_servers_extras_are_found(state: Path) -> None:
    props = {"default_generation_settings": {"n_ctx": 4096}}
    async with openai_server({"/v1/models": {"data": []}, "/props": props}) as url:
        config = BackendConfig(state_dir=state, kind="external", urls=(url,), model="mine")
        async with running(config) as it:
            place = await it.client.endpoint()
    assert (place.model, place.n_ctx, place.extras) == ("mine", 4096, True)


async def test_no_external_server_is_one_sentence_in_time(state: Path) -> None:
    config = BackendConfig(
        state_dir=state, kind="external", urls=("http://127.0.0.1:9",), connect_seconds=1
    )
    async with running(config) as it:
        with pytest.raises(
            BackendUnavailable, match=r"^No model server can be reached at http://127\.0\.0\.1:9\.$"
        ):
            await it.ready(5)
        with pytest.raises(BackendUnavailable):
            await it.client.endpoint()


# --- other local programs -----------------------------------------------------------


async def test_other_programs_use_the_server_by_a_port_and_key_of_their_own(
    config: BackendConfig,
) -> None:
    port = free_port()
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "stream": True}
    async with (
        running(replace(config, proxy_port=port, proxy_key="sesame")) as it,
        aiohttp.ClientSession() as session,
    ):
        await it.ready()
        url = f"http://127.0.0.1:{port}"
        async with session.get(f"{url}/v1/models") as answer:
            assert answer.status == 401
        key = {"Authorization": "Bearer sesame"}
        async with session.get(f"{url}/v1/models", headers=key) as answer:
            assert (await answer.json())["data"][0]["id"] == "pocket"
        async with session.post(f"{url}/slots/0?action=erase", headers=key) as answer:
            assert answer.status == 404
        async with it.client.acquire_gpu("a"):
            asking = asyncio.create_task(read(session, f"{url}/v1/chat/completions", body, key))
            await soon(lambda: it.backend.state.gpu_queue.waiters)
        assert "[DONE]" in await asyncio.wait_for(asking, SECONDS)


async def read(session: aiohttp.ClientSession, url: str, body: Any, headers: dict[str, str]) -> str:
    async with session.post(url, json=body, headers=headers) as answer:
        assert answer.content_type == "text/event-stream"
        return await answer.text()


# --- the embedded server ------------------------------------------------------------


async def embedded(*arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "backend.embedded", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    return process.returncode or 0, out.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nope"], "error: invalid argument: --nope"),
        ([], "error: no model is given (-m FNAME)"),
        (["-m", "/nowhere.gguf"], "error: failed to open GGUF file '/nowhere.gguf': no such file"),
        (
            ["-m", "/etc/passwd", "-ctk", "q7"],
            "error: invalid value for --cache-type-k: q7: q7 is not one of its values",
        ),
        (["-m", "/etc/passwd"], "failed to load model, '/etc/passwd'"),
    ],
)
async def test_the_embedded_server_refuses_in_llama_servers_words(
    arguments: list[str], said: str
) -> None:
    code, out = await embedded(*arguments)
    assert code == 1
    assert said in out


async def test_the_embedded_server_lists_its_flags_and_version() -> None:
    code, out = await embedded("--help")
    assert (code, "--slot-prompt-similarity" in out, "LLAMA_API_KEY" in out) == (0, True, True)
    assert (await embedded("--version"))[1].startswith("version: xllamacpp ")


async def test_the_embedded_server_dies_with_its_parent(noise: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-m', 'backend.embedded', '-m', {str(noise)!r}], stderr=subprocess.PIPE)\n"
        "for line in child.stderr:\n"
        "    if b'server is listening' in line: break\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout
    pid = int(await asyncio.wait_for(parent.stdout.readline(), SECONDS))
    assert proc.started(pid)
    parent.kill()
    await parent.wait()
    await soon(lambda: proc.state(pid) in (None, "Z"))


async def test_the_embedded_server_ends_quickly_in_the_middle_of_work(
    config: BackendConfig,
) -> None:
    async with running(config) as it:
        await it.ready()
        place, pid = await it.client.endpoint(), (await it.client.status()).backend.pid
        assert pid
        headers = {"Authorization": f"Bearer {place.api_key}"}
        body = {
            "messages": [{"role": "user", "content": "x"}],
            "stream": True,
            "ignore_eos": True,
            "max_tokens": 9000,
        }
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{place.url}/v1/chat/completions", json=body) as answer,
        ):
            first = json.loads((await answer.content.readline())[6:])
            assert first["object"] == "chat.completion.chunk"
            with within(2):
                os.kill(pid, signal.SIGTERM)
                status = await it.until(lambda status: status.backend.restarts == 1)
    assert status.backend.last_restart


async def test_a_backend_that_hangs_is_one_sentence(state: Path) -> None:
    """Its socket takes the connection and nobody answers."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(state / "hangs.sock"))
        listener.listen()
        async with BackendClient(state / "hangs.sock", answer_seconds=0.2) as client:
            with pytest.raises(BackendUnavailable, match=r"^The model backend does not answer\.$"):
                await client.status()
