"""`voltaire mcp serve`, by the SDK's own client."""

import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from agent.store import open_store
from bot.state import DATABASE
from fakes.model_scripted import Json, Line, ModelServer, calls, says
from fakes.words import saying


@pytest.mark.slow
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
        assert sorted(tools) == ["ask", "gpu", "jobs", "recall", "status"]
        reading = {n for n, t in tools.items() if t.annotations and t.annotations.read_only_hint}
        assert reading == {"gpu", "jobs", "recall", "status"}
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


async def test_it_is_asked_and_nobody_approves_for_its_client(tmp_path: Path) -> None:
    """The client's words count as a stranger's: what lasts asks, and there is no owner to ask."""

    def script(request: Json) -> Line:
        if request["messages"][-1]["role"] == "tool":
            return says(f"It said: {request['messages'][-1]['content']}")
        words = str(request["messages"][-1]["content"])
        return (
            calls("remember", note="from outside")
            if "remember" in words
            else calls("bash", command="echo $((40 + 2))")
        )

    async with ModelServer(script=script) as model:
        (tmp_path / "c.toml").write_text(
            f'[state]\ndir = "{tmp_path / "state"}"\n[backend]\nkind = "external"\nurl = "{model.url}"\n'
        )
        command = str(Path(sys.executable).with_name("voltaire"))
        arguments = ["--config", str(tmp_path / "c.toml"), "mcp", "serve", "--chat", "editor"]
        server = StdioServerParameters(command=command, args=arguments)
        async with Client(stdio_client(server)) as client:
            done = (await client.call_tool("ask", {"text": "count"})).structured_content
            assert done == {"chat": "editor", "answer": "It said: 42", "ended": "done"}
            kept = (await client.call_tool("ask", {"text": "remember it"})).structured_content
            assert kept["ended"] == "done" and "saved" not in kept["answer"]
    async with open_store(tmp_path / "state" / DATABASE) as store:
        assert await store.notes.all("editor") == []
        (taint,) = await store.taints.of_chat("editor")
        assert taint.source == saying("voltaire mcp serve")
