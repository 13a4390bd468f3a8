"""Past one machine: the agent's client through the LiteLLM proxy over two llama.cpp servers, one of which dies.

    python -m bench.scaling [--venv FOLDER] [--turns N]

LiteLLM is installed into a folder of its own; it is no part of the product. A
turn asks in OpenAI's plain form, streamed with tools, as with any external server.
"""

import argparse
import asyncio
import json
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from time import monotonic

import aiohttp

from agent.errors import BackendAway
from agent.messages import System, User
from agent.model import Completion, ModelRefused, Request
from agent.openai import OpenAIModel
from agent.toolset import chosen
from backend.client import BackendClient
from backend.config import BackendConfig
from backend.protocol import Endpoint
from backend.service import serve_backend
from tests.fakes.gguf_chain import make_chain
from tests.fakes.llama_embedded import serve

CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
KEY = "sk-scaling"
START_SECONDS, PAUSE_SECONDS, TRIES = 300.0, 1.0, 5


async def installed(venv: Path) -> Path:
    """The proxy's program, installed when it is not there yet."""
    program = venv / "bin" / "litellm"
    if not program.exists():
        await _run("uv", "venv", "-q", "--python", sys.executable, str(venv))
        await _run("uv", "pip", "install", "-q", "--python", str(venv / "bin/python"), "litellm[proxy]")  # fmt: skip
    return program


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command)
    if await process.wait():
        sys.exit(f"{command[0]} failed")


@asynccontextmanager
async def proxy(program: Path, folder: Path, places: list[Endpoint]) -> AsyncIterator[str]:
    """The proxy in front of the servers; its URL."""
    rows = [
        {
            "model_name": "local",
            "litellm_params": {
                "model": "openai/local",
                "api_base": f"{place.url}/v1",
                "api_key": place.api_key,
            },
        }
        for place in places
    ]
    settings = {"num_retries": 3, "allowed_fails": 0, "cooldown_time": 30}
    config = folder / "litellm.yaml"
    whole = {
        "model_list": rows,
        "router_settings": settings,
        "general_settings": {"master_key": KEY},
    }
    config.write_text(json.dumps(whole))  # JSON is YAML
    port = _free_port()
    argv = ("--config", str(config), "--host", "127.0.0.1", "--port", str(port))
    with (folder / "litellm.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program, *argv, stdout=log, stderr=log, env={**os.environ, "LITELLM_TELEMETRY": "False"}
        )
    url = f"http://127.0.0.1:{port}"
    try:
        await asyncio.wait_for(_up(url, process), START_SECONDS)
        yield url
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _up(url: str, process: asyncio.subprocess.Process) -> None:
    async with aiohttp.ClientSession() as session:
        while process.returncode is None:
            with suppress(aiohttp.ClientError):
                async with session.get(f"{url}/health/liveliness") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.5)
    raise SystemExit(f"the proxy ended with code {process.returncode}")


async def turn(model: OpenAIModel, number: int) -> tuple[bool, int]:
    """Whether a structured call came back, and how many tries it took."""
    schemas = tuple(tool.schema for tool in chosen(("bash",)))
    request = Request((System("You are a test."), User(f"Question {number}.")), schemas, max_tokens=64)  # fmt: skip
    for tries in range(1, TRIES + 1):
        try:
            pieces = [piece async for piece in model.stream(request)]
        except (BackendAway, ModelRefused):  # LiteLLM answers 500 while it finds out
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        last = pieces[-1]
        return isinstance(last, Completion) and [c.name for c in last.calls] == ["bash"], tries
    return False, TRIES


async def measure(venv: Path, turns: int) -> int:
    """Print what became of each half of the turns; 1 when a turn was lost."""
    program = await installed(venv)
    with tempfile.TemporaryDirectory(prefix="vs") as name:
        folder = Path(name)
        file = make_chain(folder / "m.gguf", CALL)
        async with AsyncExitStack() as dying, serve(file) as second:
            first = await dying.enter_async_context(serve(file))
            async with proxy(program, folder, [first, second]) as url:
                config = BackendConfig(folder / "state", kind="external", urls=(url,), model="local", api_key=KEY)  # fmt: skip
                return await _halves(config, dying, turns)


async def _halves(config: BackendConfig, dying: AsyncExitStack, turns: int) -> int:
    async with (
        serve_backend(config) as backend,
        BackendClient(backend.socket) as client,
        OpenAIModel(client.endpoint) as model,
    ):
        before = await _some(model, range(turns // 2), "both servers")
        await dying.aclose()
        after = await _some(model, range(turns // 2, turns), "one was killed")
    return 0 if before and after else 1


async def _some(model: OpenAIModel, numbers: range, name: str) -> bool:
    began = monotonic()
    found = [await turn(model, number) for number in numbers]
    good = sum(ok for ok, _ in found)
    tries = sum(tries for _, tries in found)
    print(f"{name}: {good} of {len(found)} turns with their call, {tries} requests, {monotonic() - began:.1f} s")  # fmt: skip
    return good == len(found)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, default=Path.home() / ".cache" / "voltaire" / "litellm")  # fmt: skip
    parser.add_argument("--turns", type=int, default=20)
    chosen_ = parser.parse_args()
    sys.exit(asyncio.run(measure(chosen_.venv, chosen_.turns)))


if __name__ == "__main__":
    main()
