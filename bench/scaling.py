"""Past one machine: the agent through the LiteLLM proxy over two llama.cpp servers, one of which dies.

    python -m bench.scaling [--venv FOLDER] [--turns N] [--retries N]

LiteLLM is installed into a folder of its own; it is no part of the product. The
agent asks in OpenAI's plain form, streamed with tools, as with any external
server; the first of the two servers is killed while answers are under way.
"""

import argparse
import asyncio
import json
import os
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic

import aiohttp

from agent.errors import AgentError, BackendAway
from agent.events import Event, Notice
from agent.llm.gpu_queue import QueuedModel, backend_queue
from agent.llm.openai import OpenAIModel
from agent.llm.tool_call_parser import KnownTools
from agent.messages import System, User
from agent.model import Piece, Request, WrappedModel
from agent.tools.registry import chosen
from agent.turn.model_caller import ModelCaller
from agent.turn.turn import TurnLimits
from backend.client import BackendClient, BackendUnavailable
from backend.config import BackendConfig
from backend.protocol import Endpoint
from backend.service import serve_backend
from fakes.gguf_chain import make_chain
from fakes.llama_embedded import serve

CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'
KEY = "sk-scaling"
QUIET = {"LITELLM_TELEMETRY": "False", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
START_SECONDS, KILL_AFTER = 300.0, 1.5


async def installed(venv: Path) -> Path:
    """The proxy's program, installed when it is not there yet."""
    program = venv / "bin" / "litellm"
    if not program.exists():
        await _run(sys.executable, "-m", "venv", str(venv))
        await _run(str(venv / "bin" / "pip"), "install", "-q", "litellm[proxy]")
    return program


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command)
    if await process.wait():
        sys.exit(f"{command[0]} failed")


@asynccontextmanager
async def proxy(
    program: Path, folder: Path, places: list[Endpoint], retries: int
) -> AsyncIterator[str]:
    """The proxy in front of the servers, with as many retries of its own; its URL."""
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
    settings = {"num_retries": retries, "allowed_fails": 0, "cooldown_time": 30}
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
            program, *argv, stdout=log, stderr=log, env={**os.environ, **QUIET}
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


@dataclass
class Tally:
    """What became of turns: calls that came back, requests they took, what the person was told."""

    turns: int = 0
    good: int = 0
    requests: int = 0
    told: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Counted(WrappedModel):
    """A model whose requests are counted."""

    tally: Tally

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        self.tally.requests += 1
        async with aclosing(self.model.stream(request)) as pieces:
            async for piece in pieces:
                yield piece


@dataclass(frozen=True)
class Chat:
    """Turns as the agent's loop asks for them: with its patience, its forms and its reports."""

    client: BackendClient
    model: OpenAIModel

    async def turns(self, numbers: Iterable[int]) -> Tally:
        tally = Tally()
        for number in numbers:
            await self.turn(number, tally)
        return tally

    async def turn(self, number: int, tally: Tally) -> None:
        schemas = tuple(tool.schema for tool in chosen(("bash",)))
        messages = (System("You are a test. " * 50), User(f"Question {number}."))
        queued = QueuedModel(Counted(self.model, tally), backend_queue(self.client), "bench")
        known = KnownTools.of(schemas)
        caller = ModelCaller(queued, known, TurnLimits(), self._ready, partial(_hear, tally))
        tally.turns += 1
        try:
            completion, _ = await caller.complete(Request(messages, schemas, max_tokens=64))
        except AgentError as error:
            tally.failed.append(str(error))
            return
        tally.good += [call.name for call in completion.calls] == ["bash"]

    async def _ready(self) -> None:
        try:
            async for _ in self.client.ready(60):
                pass
        except BackendUnavailable as error:
            raise BackendAway(str(error)) from None


def _hear(tally: Tally, event: Event) -> None:
    if isinstance(event, Notice):
        tally.told.append(event.text)


async def measure(venv: Path, turns: int, retries: int) -> int:
    """Print what became of the turns; 1 when one was lost."""
    program = await installed(venv)
    with tempfile.TemporaryDirectory(prefix="vs") as name:
        folder = Path(name)
        file = make_chain(folder / "m.gguf", CALL)
        async with AsyncExitStack() as dying, serve(file) as second:
            first = await dying.enter_async_context(serve(file))
            async with proxy(program, folder, [first, second], retries) as url:
                config = BackendConfig(folder / "state", kind="external", urls=(url,), model="local", api_key=KEY)  # fmt: skip
                return await _halves(config, dying, turns)


async def _halves(config: BackendConfig, dying: AsyncExitStack, turns: int) -> int:
    async with (
        serve_backend(config) as backend,
        BackendClient(backend.socket) as client,
        OpenAIModel(client.endpoint) as model,
    ):
        chat = Chat(client, model)
        good = _print("both servers", *await _timed(chat, range(turns // 2)))
        running = asyncio.create_task(_timed(chat, range(turns // 2, turns)))
        await asyncio.sleep(KILL_AFTER)
        await dying.aclose()
        good &= _print("one is killed meanwhile", *await running)
    return 0 if good else 1


async def _timed(chat: Chat, numbers: range) -> tuple[Tally, float]:
    began = monotonic()
    return await chat.turns(numbers), monotonic() - began


def _print(name: str, tally: Tally, seconds: float) -> bool:
    print(f"{name}: {tally.good} of {tally.turns} turns with their call, {tally.requests} requests, {seconds:.1f} s")  # fmt: skip
    for words in (*tally.told, *tally.failed):
        print(f"    told: {words}")
    return tally.good == tally.turns


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, default=Path.home() / ".cache" / "voltaire" / "litellm")  # fmt: skip
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument(
        "--retries", type=int, default=0, help="of the proxy; 3 is its usual number"
    )
    chosen_ = parser.parse_args()
    sys.exit(asyncio.run(measure(chosen_.venv, chosen_.turns, chosen_.retries)))


if __name__ == "__main__":
    main()
