"""One server's tools as tools of the prompt, and ninety-two of them that are none."""

import json
from collections.abc import Sequence

import pytest

from agent.mcp.listed import MOST_BYTES, listed_tools
from agent.mcp.tools import tools_of
from agent.tools.registry import chosen
from agent.tools.tool import Tool
from fakes.sandbox_box import Box
from fakes.tool_servers import FakeServers, mcp
from fakes.tool_servers import calls as received
from fakes.words import saying

TOOLS = chosen([])


async def listed(box: Box) -> tuple[Tool, ...]:
    assert box.servers
    found = await listed_tools(box.servers, TOOLS)
    assert found.problem == ""
    return found.tools


async def problem(box: Box) -> str:
    assert box.servers
    found = await listed_tools(box.servers, TOOLS)
    assert found.tools == ()
    return found.problem


async def test_a_listed_tool_is_called_like_any_other(servers: FakeServers) -> None:
    box = await servers.open(tools=["say", "picture", "refuse", "sample"], allow=["picture"])
    await mcp(box, "tea")
    again = await servers.open(tools=["say", "picture", "refuse", "sample"], allow=["picture"])
    say, picture, refuse, sample = await listed(again)
    assert again.servers and again.servers.running == {}  # nothing was started for a prompt
    assert say.schema == {
        "type": "function",
        "function": {
            "name": "tea_say",
            "description": "Say a text again.",
            "parameters": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            },
        },
    }
    assert await again.text(say, text="x") == "x"
    assert again.strangers == ["MCP server tea"]
    assert again.asked == [
        (saying("call say", "MCP server tea", '\n\n{\n "text": "x"\n}'), "mcp:tea/say")
    ]
    assert "8 bytes in /workspace/tea-picture-1.png]\nhere" in await again.text(picture)
    output = await again.use(refuse)
    assert (output.ok, output.text) == (False, "there is no tea")
    assert await again.text(sample) == saying("tea wanted", "use the model", "refused")
    assert "text is missing" in await again.error(say)
    again.allows = False
    assert "The owner said no." in await again.error(say, text="y")
    assert received(servers)[0] == 'say {"text": "x"}' and len(received(servers)) == 4


async def test_a_tool_that_changes_is_out_of_use_and_the_prefix_stays(servers: FakeServers) -> None:
    await mcp(await servers.open(tools=["pull"]), "tea")
    box = await servers.open(tools=["pull"])
    (pull,) = await listed(box)
    before = json.dumps(pull.schema)
    await box.text(pull)
    told = await box.error(pull)
    assert told == saying("tea_pull", "out of use") and "IGNORE" not in told
    assert received(servers) == ["pull {}"]
    await mcp(box, "tea")  # an owner allows what it is now
    assert "IGNORE" in box.asked[-1][0]
    assert await box.error(pull) == saying("tea_pull", "out of use")
    assert json.dumps(pull.schema) == before
    (anew,) = await listed(await servers.open(tools=["pull"]))
    assert "IGNORE" in anew.schema["function"]["description"]


@pytest.mark.parametrize(
    ("behaviours", "tools", "told"),
    [
        ([], ["add"], "tea: more is object, which a tool in a prompt cannot take"),
        (["wordy"], ["say"], f"{MOST_BYTES:,} are the most (1,500 tokens)"),
        ([], ["brew"], "tea: no owner has allowed brew since it stands in `tools`"),
    ],
    ids=["not flat", "too long", "not there"],
)
async def test_what_cannot_be_listed_is_told_and_used_all_the_same(
    servers: FakeServers, behaviours: Sequence[str], tools: Sequence[str], told: str
) -> None:
    box = await servers.open(*behaviours, tools=tools)
    assert "voltaire mcp test tea" in await problem(box)
    await mcp(box, "tea")
    assert told in await problem(box)
    assert await mcp(box, "tea say text=x") == "x"


async def test_the_name_of_another_tool_is_not_taken(servers: FakeServers) -> None:
    box = await servers.open(tools=["say"])
    await mcp(box, "tea")
    (say,) = await listed(box)
    assert box.servers
    assert (await listed_tools(box.servers, [say])).problem == saying("tea_say already")


def test_a_schema_whose_required_is_no_list_requires_nothing() -> None:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": -1}
    ([tool], _) = tools_of("tea", [{"name": "say", "description": "d", "inputSchema": schema}])
    assert tool.line == "say [text]  d"
