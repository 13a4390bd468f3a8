"""Servers of others, over streamable HTTP."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fakes.mcp_http import HttpServer, mcp_over_http
from fakes.patience import soon
from fakes.tool_servers import FakeServers, mcp
from fakes.words import saying


@pytest.fixture
async def http() -> AsyncIterator[HttpServer]:
    async with mcp_over_http() as served:
        yield served


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake server notes its calls where it runs."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("mode", ["json", "events"])
async def test_a_tool_of_an_address_is_used(
    servers: FakeServers, http: HttpServer, tmp_path: Path, mode: str
) -> None:
    http.mode = mode
    (tmp_path / "env").write_text("Authorization=Bearer tea-secret\n")
    box = await servers.open(command=(), url=http.url, env_file=str(tmp_path / "env"))
    assert await mcp(box, "tea say text=x") == "x"
    assert await mcp(box, "tea say text='Bearer tea-secret'; true") != "Bearer tea-secret"
    assert {headers.get("Authorization") for headers in http.headers} == {"Bearer tea-secret"}
    tools = f" {len(http.server.tools())} tools"
    assert box.asked[0][0] == saying(tools, "MCP server tea", http.url)


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("bomb", "tea"),
        pytest.param("large", "sent a message of more than 16 MiB", marks=pytest.mark.slow),
        ("values", "sent a message of more than 40,000 values"),
        pytest.param(
            "entries",
            "sent a message whose lists have more than 5,000 entries",
            marks=pytest.mark.slow,
        ),
    ],
)
async def test_a_flood_over_http_costs_one_call(
    servers: FakeServers, http: HttpServer, mode: str, told: str
) -> None:
    box = await servers.open(command=(), url=http.url)
    await mcp(box, "tea")
    http.mode = mode
    answer = await mcp(box, "tea say text=x")
    assert told in answer and answer.endswith("exit code: 1")
    http.mode = "json"
    assert await mcp(box, "tea say text=again") == "again"


async def test_a_session_that_a_server_forgot_is_begun_anew(
    servers: FakeServers, http: HttpServer
) -> None:
    """As after it was started again."""
    box = await servers.open(command=(), url=http.url)
    await mcp(box, "tea")
    http.mode = "forget"
    told = "tea does not know this session any more, so nothing was done. Try again."
    assert told in await mcp(box, "tea say text=x")
    http.mode = "json"
    assert await mcp(box, "tea say text=again") == "again"
    assert http.methods.count("initialize") == 2


async def test_it_leads_nowhere_else(servers: FakeServers, http: HttpServer) -> None:
    async with mcp_over_http() as other:
        http.mode, http.elsewhere = "redirect", other.url
        box = await servers.open(command=(), url=http.url)
        assert "exit code: 1" in await mcp(box, "tea")
        assert other.headers == []


async def test_an_address_that_refuses_or_is_away_is_told(
    servers: FakeServers, http: HttpServer
) -> None:
    http.mode = "refuse"
    box = await servers.open(command=(), url=http.url)
    refused = await mcp(box, "tea")
    assert refused == saying("sign in", "voltaire mcp test tea")
    away = await servers.open(command=(), url="http://127.0.0.1:1/mcp")
    gone = await mcp(away, "tea")
    assert gone.startswith("mcp: tea ") and gone.endswith("exit code: 1")


async def test_a_server_is_told_of_a_call_no_more_than_its_arguments(
    servers: FakeServers, http: HttpServer
) -> None:
    """Nothing of the chat, its workspace, the machine; and no ability that it could use to ask."""
    box = await servers.open(command=(), url=http.url, chat="tg:4242")
    await box.sandbox.files.write("secret.txt", b"of the chat")
    assert await mcp(box, "tea say text=hello") == "hello"
    begin, _, listed, call = map(json.loads, http.bodies)
    assert begin["params"]["capabilities"] == {} and listed["method"] == "tools/list"
    assert call["params"]["arguments"] == {"text": "hello"}
    assert set(call["params"]) <= {"name", "arguments", "_meta"}
    told = json.dumps([http.bodies, http.headers])
    assert not [word for word in ("4242", "secret", socket.gethostname()) if word in told]


async def test_a_call_that_is_cut_off_is_cancelled_there(
    servers: FakeServers, http: HttpServer
) -> None:
    http.mode = "hang"
    box = await servers.open(command=(), url=http.url)
    asking = asyncio.create_task(mcp(box, "tea say text=hello"))
    await soon(lambda: "tools/call" in http.methods)
    asking.cancel()
    await asyncio.wait([asking])
    await soon(lambda: "notifications/cancelled" in http.methods)
    assert http.methods.count("tools/call") == 1
