"""Servers that others wrote, as they are published: without network, in the sandbox, at run time."""

import json
from pathlib import Path

import pytest

from agent.mcp.tls_termination import CertificateAuthority
from agent.tools.bash import bash
from fakes.sandbox_box import repository
from fakes.tool_servers import REAL, FakeServers, mcp
from fakes.web_server import site
from fakes.words import saying

PYPI = pytest.mark.skipif(not (REAL / "mcp_server_time").exists(), reason="not installed")
NPM = pytest.mark.skipif(
    not (REAL / "node_modules/@modelcontextprotocol").exists()
    or not Path("/usr/bin/node").exists(),
    reason="not installed",
)


@PYPI
async def test_the_time_server_of_pypi(servers: FakeServers) -> None:
    box = await servers.open(real=True, command=("mcp-server-time", "--local-timezone=UTC"))
    assert "convert_time source_timezone time target_timezone" in await mcp(box, "tea")
    call = "tea convert_time source_timezone=UTC time=12:00 target_timezone=Asia/Tokyo"
    assert json.loads(await mcp(box, call))["time_difference"] == "+9.0h"
    assert "exit code: 1" in await mcp(box, "tea get_current_time timezone=Nowhere/Town")


@PYPI
async def test_the_git_server_of_pypi(servers: FakeServers, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    path = repository(tmp_path / "site", {"a.txt": "tea\n"}, uid=servers.sandboxes.config.user.uid)
    box = await servers.open(real=True, command=("mcp-server-git",), folders=[str(path)])
    assert "first" in await mcp(box, "tea git_log repo_path=/repos/site")
    answer = await mcp(box, "tea git_add repo_path=/repos/site files=a.txt files=b.txt")
    assert "exit code: 1" in answer


@pytest.mark.skipif(not (REAL / "mcp_server_fetch").exists(), reason="not installed")
@pytest.mark.parametrize("scheme", [pytest.param("http", marks=pytest.mark.slow), "https"])
async def test_the_fetch_server_of_pypi_reaches_what_its_network_names(
    servers: FakeServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    authority = CertificateAuthority()
    (tmp_path / "authority.pem").write_bytes(authority.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    async with site(authority.context("localhost") if scheme == "https" else None) as web:
        command = ("mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips")
        hosts = [f"{web.host}/open/"]
        box = await servers.open(real=True, command=command, network=hosts, allow=["fetch"])
        assert box.servers
        box.servers.reachable = lambda address: True
        assert "hello" in await mcp(box, f"tea fetch url={scheme}://{web.host}/open/a raw=true")
        for place in (f"{web.host}/closed", "example.org/"):
            answer = await mcp(box, f"tea fetch url={scheme}://{place} raw=true")
            assert "tea was refused: " in answer and "hello" not in answer
        assert web.seen == [f"{web.host}/open/a"]


@NPM
async def test_the_memory_server_of_npm_keeps_what_it_was_told(servers: FakeServers) -> None:
    (servers.state / "env").write_text("MEMORY_FILE_PATH=/workspace/memory.json\n")
    env = str(servers.state / "env")
    box = await servers.open(real=True, command=("mcp-server-memory",), env_file=env)
    entity = {"name": "Ada", "entityType": "person", "observations": ["likes tea"]}
    told = json.dumps({"entities": [entity]})
    assert "Ada" in await mcp(box, f"tea create_entities <<< '{told}'")
    assert "likes tea" in await mcp(box, "tea search_nodes query=Ada")
    assert (servers.state / "mcp/tea/work/memory.json").read_text().count("Ada") == 1


@NPM
async def test_the_filesystem_server_of_npm_sees_its_folder_alone(
    servers: FakeServers, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "notes").mkdir(0o755)
    (tmp_path / "notes/a.txt").write_text("tea at five")
    command = ("mcp-server-filesystem", "/repos/notes", "/")
    box = await servers.open(real=True, command=command, folders=[str(tmp_path / "notes")])
    assert "tea at five" in await mcp(box, "tea read_text_file path=/repos/notes/a.txt")
    denied = await mcp(box, "tea write_file path=/repos/notes/b.txt content=x")
    assert "exit code: 1" in denied and not (tmp_path / "notes/b.txt").exists()
    assert "exit code: 1" in await mcp(box, "tea list_directory path=/root")


@NPM
async def test_everything_that_the_reference_server_has(servers: FakeServers) -> None:
    box = await servers.open(real=True, command=("mcp-server-everything", "stdio"))
    listed = await mcp(box, "tea")
    assert listed == saying("echo message", "resources", "mcp tea read")
    assert "Echo: tea" in await mcp(box, "tea echo message=tea")
    assert "5" in await mcp(box, "tea get-sum a=2 b=3")
    picture = await box.text(bash, command="mcp tea get-tiny-image; file *.png || ls *.png")
    assert "tea-get-tiny-image-1.png" in picture
    assert "resource" in await mcp(box, "tea read")
    assert "prompt" in await mcp(box, "tea prompt")
