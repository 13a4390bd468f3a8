"""The examples work as they stand."""

import asyncio
import json
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent import tools
from agent.shell import programs, registry
from agent.store import open_store
from agent.tools.bash import bash
from agent.tools.registry import known
from backend.config import BackendConfig
from bot.channel import OutgoingMessage
from examples.channel import SocketApp
from fakes.backend_running import running
from fakes.bot_running import ScriptedAgent
from fakes.command_line import voltaire
from fakes.model_scripted import says
from fakes.patience import SECONDS, soon
from fakes.sandbox_box import Box, opened
from fakes.words import saying

EXAMPLES = Path(__file__).parent.parent / "examples"


class Client:
    """The other end of the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def write(self, **fields: str) -> None:
        self._writer.write(json.dumps(fields).encode() + b"\n")

    async def read(self) -> Any:
        async with asyncio.timeout(SECONDS):
            return json.loads(await self._reader.readline())


@asynccontextmanager
async def connected(path: Path) -> AsyncIterator[Client]:
    await soon(path.exists)
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


async def test_a_channel_of_ones_own_answers_runs_commands_and_buttons(tmp_path: Path) -> None:
    path = tmp_path / "app.sock"
    agent = ScriptedAgent(script=lambda request: says("Hello."))
    async with open_store(tmp_path / "voltaire.db") as store:
        app = SocketApp(store, path, "me")
        async with agent.serving(store, app) as running:
            async with connected(path) as client:
                client.write(id="1", text="hi")
                answer = await client.read()
                client.write(id="1", text="hi")  # once more: known already
                client.write(text="/status")
                card = await client.read()
                client.write(press=card["buttons"][0][0], message=card["id"])
                refreshed = await client.read()
            await soon(lambda: app.channel.client is None)
            await store.outbox.add("sock:me", [OutgoingMessage("news").to_json()])
            await soon(lambda: not app.delivery.woken.is_set())
            async with connected(path) as client:
                news = await client.read()
            assert len(running.model.requests) == 1
    assert answer == {"id": "1", "text": "Hello.", "buttons": []}
    assert card["buttons"] == [["st:", "Refresh"]]
    assert refreshed["edits"] == card["id"] and "waiting" in refreshed["text"]
    assert news["text"] == "news"


def copied(example: str, folder: Path, name: str, page_block: int) -> str:
    """The file of an example beside the program's own; the rest of what docs/tools.md shows with it."""
    page = (EXAMPLES.parent / "docs" / "tools.md").read_text()
    shown = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert shown[page_block] == (EXAMPLES / example).read_text()
    folder.mkdir()
    shutil.copy(EXAMPLES / example, folder / name)
    return page


def test_a_tool_of_ones_own_runs_as_the_agent_would_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder beside the tools, with the configuration of docs/tools.md."""
    page = copied("tool.py", tmp_path / "tools", "clock.py", 1)
    monkeypatch.setattr(tools, "__path__", [*tools.__path__, f"{tmp_path}/tools"])
    known.cache_clear()
    (config,) = re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)
    code, out, err = voltaire(
        tmp_path, "tool", "world_time", '{"zone": "Asia/Tokyo"}', config=config
    )
    assert (code, err) == (0, "")
    assert re.search(r"\d\d:\d\d:\d\d .*JST 20\d\d", out), out


@pytest.fixture
def wake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command of the example, beside the program's own."""
    copied("command.py", tmp_path / "programs", "wake.py", 0)
    monkeypatch.setattr(programs, "__path__", [*programs.__path__, f"{tmp_path}/programs"])
    registry.loaded.cache_clear()
    yield
    registry.loaded.cache_clear()
    sys.modules.pop("agent.shell.programs.wake", None)


def test_a_command_of_ones_own_is_one_file(tmp_path: Path, wake: None) -> None:
    asked = json.dumps({"command": "grep wake /commands.txt; wake cat; wake nas"})
    code, out, err = voltaire(tmp_path, "tool", "bash", asked)
    listed, *unknown, asks, denied, exit_code = out.splitlines()
    assert listed.startswith("wake [--address ADDRESS] MACHINE  ") and "Wake on LAN" in listed
    assert unknown == [saying("wake: ", "no cat, but nas"), f"usage: {listed.partition('  ')[0]}"]
    assert (asks, denied, exit_code) == (
        saying("wake: ", "Nobody can be asked"),
        saying("owner"),
        "exit code: 1",
    )
    assert (code, err) == (1, "")
    code, out, err = voltaire(tmp_path, "sandbox", "--", "wake", "--help")
    assert (code, err) == (0, "") and out == saying("--address", "of the network")


async def test_a_command_of_ones_own_does_it_when_an_owner_allows_it(
    tmp_path: Path, wake: None
) -> None:
    async with opened(tmp_path / "state") as sandboxes:
        box = Box(await sandboxes.of("cli"))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as machine:
            machine.bind(("127.0.0.1", 0))
            command = registry.commands("wake")["wake"]
            command.function.__globals__["PORT"] = machine.getsockname()[1]
            text = await box.text(bash, command="wake nas --address 127.0.0.1")
            machine.settimeout(SECONDS)
            packet = machine.recv(200)
    assert text == saying("nas", "packet") and box.asked == [("Switch on nas", "wake:nas")]
    assert packet == b"\xff" * 6 + bytes.fromhex("525400123456") * 16


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder whose path is short enough for a UNIX socket."""
    folder = Path(tempfile.mkdtemp(prefix="ve"))
    yield folder
    shutil.rmtree(folder)


async def test_a_script_has_an_answer_over_the_control_api(state: Path) -> None:
    async def answer(*words: str) -> tuple[int | None, str, str]:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            sys.executable, EXAMPLES / "answer.py", *words, stdout=pipe, stderr=pipe
        )
        out, err = await asyncio.wait_for(process.communicate(), SECONDS)
        return process.returncode, out.decode(), err.decode()

    async with running(BackendConfig(state, server="embedded")) as backend:
        await backend.ready()
        socket = str(backend.backend.socket)
        code, out, err = await answer(socket, "hello")
    assert (code, err) == (0, "") and out.strip(), err
    code, _, err = await answer(socket, "hello")
    assert code == 1 and err.startswith(f"No backend answers at {socket}: ")
