"""`voltaire mcp serve`, by the SDK's own client."""

import sys
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from agent.store import open_store
from bot.state import DATABASE


async def test_a_client_lists_and_calls_what_it_offers(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(0o700)
    async with open_store(state / DATABASE) as store:
        await store.notes.add("cli", "Ada likes green tea", turn="t", stranger="")
        await store.notes.add("other", "tea is a secret here", turn="t", stranger="")
    (tmp_path / "c.toml").write_text(f'[state]\ndir = "{state}"\n')
    command = str(Path(sys.executable).with_name("voltaire"))
    arguments = ["--config", str(tmp_path / "c.toml"), "mcp", "serve"]
    server = StdioServerParameters(command=command, args=arguments)
    async with Client(stdio_client(server)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert sorted(tools) == ["gpu", "jobs", "recall", "status"]
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
        found = await client.call_tool("recall", {"query": "tea"})
        assert not found.is_error
        (match,) = found.structured_content["matches"]
        assert match["text"] == "Ada likes green tea"
        status = (await client.call_tool("status", {})).structured_content
        assert status["backend"]["state"] == "stopped"
        assert (await client.call_tool("jobs", {})).structured_content == {
            "chat": "cli",
            "jobs": [],
        }
        assert (await client.call_tool("gpu", {})).structured_content["gpus"] == []
