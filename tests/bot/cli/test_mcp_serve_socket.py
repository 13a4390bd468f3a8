"""`voltaire mcp serve --socket`: what the control socket then offers, by the SDK's own client."""

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from mcp import Client

from backend.client import default_socket
from backend.config import BackendConfig
from backend.service import serve_backend
from fakes.command_line import start_voltaire
from fakes.command_line import voltaire_beside as voltaire
from fakes.model_scripted import ModelServer, says
from fakes.patience import SECONDS, soon
from fakes.words import saying


async def test_it_is_offered_on_the_control_socket(tmp_path: Path) -> None:
    state = tmp_path / "s"
    async with ModelServer(says("Tea.")) as model:
        text = f'[state]\ndir = "{state}"\n[backend]\nkind = "external"\nurl = "{model.url}"\n'
        config = BackendConfig(state_dir=state, kind="external", urls=(model.url,))
        control = default_socket(state)
        async with serve_backend(config), through(control) as url:
            async with aiohttp.ClientSession() as browser, browser.post(url) as nobody:
                assert (nobody.status, await nobody.text()) == (
                    503,
                    saying("voltaire mcp serve --socket"),
                )
            (tmp_path / "c.toml").write_text(text)
            words = ("--config", tmp_path / "c.toml", "mcp", "serve", "--socket", "--chat", "tea")
            said = asyncio.subprocess.PIPE
            process = await start_voltaire(*words, stderr=said)
            try:
                socket = control.with_name("mcp.sock")
                await soon(socket.is_socket)
                assert stat.S_IMODE(socket.stat().st_mode) == 0o600
                async with asyncio.timeout(SECONDS), Client(url) as client:
                    tools = [tool.name for tool in (await client.list_tools()).tools]
                    assert sorted(tools) == ["ask", "gpu", "jobs", "recall", "status"]
                    asked = await client.call_tool("ask", {"text": "What?"})
                    assert asked.structured_content == {
                        "chat": "tea",
                        "answer": "Tea.",
                        "ended": "done",
                    }
                again = await voltaire(tmp_path, "mcp", "serve", "--socket", config=text)
                assert again[0] == 1
                assert again[2].strip() == saying("control socket already")
            finally:
                process.terminate()
                _, errors = await asyncio.wait_for(process.communicate(), SECONDS)
                assert (process.returncode, b"Traceback" in errors) == (130, False), errors
            assert not socket.exists()


@asynccontextmanager
async def through(socket: Path) -> AsyncIterator[str]:
    """A loopback port before the control socket, for a client that knows no UNIX sockets; its /v1/mcp."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, out = await asyncio.open_unix_connection(str(socket))
        await asyncio.gather(copied(reader, out), copied(inner, writer))

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/mcp"
    finally:
        server.close()


async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
