"""Home Assistant's MCP server: streamable HTTP without sessions at /api/mcp, with a long-lived token, by the same SDK."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from mcp.server import MCPServer
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from fakes.tool_servers import FakeServers, mcp
from fakes.words import saying

TOKEN = ".".join(
    ("eyJhbGciOiJIUzI1NiJ9", "eyJpc3MiOiJ2b2x0YWlyZSJ9", "of-nobody")
)  # its form is a JWT's
PROMPT = "You are a voice assistant for Home Assistant."
LIVE = {"success": True, "result": "- names: Kettle\n  domain: switch\n  state: 'off'"}


@dataclass
class House:
    """`calls` is what was switched; `seen` the requests' methods with their answers."""

    url: str
    calls: list[tuple[str, list[str] | None]] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)


@asynccontextmanager
async def house() -> AsyncIterator[House]:
    """As homeassistant/components/mcp_server serves the Assist API: POST alone, JSON, 401 without the token."""
    listener = socket.create_server(("127.0.0.1", 0))
    served = House(f"http://127.0.0.1:{listener.getsockname()[1]}/api/mcp")
    server = MCPServer("home-assistant", log_level="ERROR")

    @server.tool(structured_output=False)
    def HassTurnOn(
        name: str | None = None, area: str | None = None, domain: list[str] | None = None
    ) -> str:
        """Turns on/opens/presses a device or entity."""
        served.calls.append((name or area or "", domain))
        return json.dumps(
            {
                "speech": {},
                "response_type": "action_done",
                "data": {
                    "success": [{"name": name, "type": "entity", "id": "switch.kettle"}],
                    "failed": [],
                },
            }
        )

    @server.tool(structured_output=False)
    def GetLiveContext() -> str:
        """Provides real-time information about the CURRENT state of devices."""
        return json.dumps(LIVE)

    @server.prompt(name="Assist")
    def assist() -> str:
        """Default prompt for Home Assistant Assist API"""
        return PROMPT

    app = server.streamable_http_app(
        streamable_http_path="/api/mcp", json_response=True, stateless_http=True
    )

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        served.seen.append(scope["method"])
        wanted = (b"authorization", f"Bearer {TOKEN}".encode())
        if wanted not in scope["headers"]:
            await PlainTextResponse("401: Unauthorized", 401)(scope, receive, send)
        elif scope["method"] != "POST":
            await PlainTextResponse("405: Method Not Allowed", 405)(scope, receive, send)
        else:
            await app(scope, receive, send)

    running = uvicorn.Server(
        uvicorn.Config(guarded, log_level="critical", timeout_graceful_shutdown=1)
    )
    running.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    serving = asyncio.create_task(running.serve(sockets=[listener]))
    try:
        yield served
    finally:
        running.should_exit = True
        with suppress(asyncio.CancelledError):
            await serving


@pytest.fixture
def env(tmp_path: Path) -> str:
    (tmp_path / "env").write_text(f"Authorization=Bearer {TOKEN}\n")
    return str(tmp_path / "env")


async def test_the_house_is_read_and_switched(servers: FakeServers, env: str) -> None:
    async with house() as served:
        box = await servers.open(
            command=(), url=served.url, env_file=env, allow=("GetLiveContext",)
        )
        assert await mcp(box, "tea") == saying("HassTurnOn", "GetLiveContext")
        assert "2 tools" in box.asked[0][0] and served.url in box.asked[0][0]
        assert json.loads(await mcp(box, "tea GetLiveContext")) == LIVE
        assert len(box.asked) == 1, "what is in allow does not ask"
        done = json.loads(await mcp(box, "tea HassTurnOn name=Kettle domain=switch"))
        assert done["response_type"] == "action_done" and served.calls == [("Kettle", ["switch"])]
        assert len(box.asked) == 2, "switching does"
        assert PROMPT in await mcp(box, "tea prompt Assist")
        assert TOKEN not in str(box.asked)


async def test_a_token_that_is_refused_is_said_to_be(servers: FakeServers, tmp_path: Path) -> None:
    (tmp_path / "env").write_text("Authorization=Bearer of-yesterday\n")
    async with house() as served:
        box = await servers.open(command=(), url=served.url, env_file=str(tmp_path / "env"))
        assert await mcp(box, "tea") == saying(
            "tea refuses the Authorization of its env_file (401)"
        )
