"""Tools of one server that every prompt lists as tools of its own: the `tools` of its section.

They are made of the descriptors that were kept when an owner allowed them, so no server is started for a prompt. What a
server says of them later changes no prompt: a tool that changed is out of use until an owner has seen it and this program
was started again.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from agent.errors import ToolError
from agent.mcp.servers import ToolServers
from agent.mcp.tools import ServerTool, choices, type_text, types
from agent.prompt import base_text
from agent.sandbox.bubblewrap import WORKSPACE
from agent.sandbox.output_buffer import truncate_middle
from agent.tools.tool import Call, Output, Tool

MOST_BYTES = 6000  # of system text and tools as compact JSON: the budget of 1,500 tokens (tests/test_prefix.py)
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
ARGUMENT = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
PLAIN = {"string": str, "integer": int, "number": float, "boolean": bool}
CHANGED = "{name} is not as the owner has allowed it, so it is out of use. Go on without it; the owner can look: voltaire mcp test {server}"


@dataclass(frozen=True)
class ListedTools:
    """Tools that every prompt lists, or none; `problem` is a sentence for the owner that says why none is listed."""

    tools: tuple[Tool, ...] = ()
    problem: str = ""


async def listed_tools(servers: ToolServers, others: Sequence[Tool]) -> ListedTools:
    """The tools of the server whose section sets `tools`; the prompt lists them after the `others`."""
    for server in servers.configs.values():
        if not server.tools:
            continue
        kept = (await servers.pins(server.name)).descriptors
        if unseen := [name for name in server.tools if name not in kept]:
            return ListedTools(
                problem=f"{server.name}: no owner has allowed {', '.join(unseen)} since it stands in `tools`, so no prompt lists its tools: "
                f"voltaire mcp test {server.name}"
            )
        try:
            found = [
                listed(servers, ServerTool(server.name, name, kept[name])) for name in server.tools
            ]
        except ValueError as error:
            return ListedTools(problem=f"{server.name}: {error}, so no prompt lists its tools.")
        if taken := {tool.name for tool in found} & {tool.name for tool in others}:
            return ListedTools(problem=f"{server.name}: there is a tool {min(taken)} already.")
        if (count := prefix_bytes([*others, *found])) > MOST_BYTES:
            return ListedTools(
                problem=f"{server.name}: with its tools the fixed part of each prompt would have {count:,} bytes; "
                f"{MOST_BYTES:,} are the most (1,500 tokens). No prompt lists them; `mcp` in the shell has them."
            )
        return ListedTools(tuple(found))
    return ListedTools()


def prefix_bytes(tools: Sequence[Tool]) -> int:
    schemas = [tool.schema for tool in tools]
    return len(
        (base_text() + json.dumps(schemas, separators=(",", ":"), ensure_ascii=False)).encode()
    )


def listed(servers: ToolServers, tool: ServerTool) -> Tool:
    """Make a Tool for the prompt of a server's tool. Raises ValueError where its name or arguments do not allow that."""
    name = f"{tool.server}_{tool.name}"
    if not NAME.fullmatch(name):
        raise ValueError(f"{name} is no name of a tool in a prompt")

    async def function(call: Call, **arguments: Any) -> Output:
        call.strangers.append(f"MCP server {tool.server}")

        async with servers.session(tool.server, call.chat) as running:
            now = next((each for each in running.tools if each.name == tool.name), None)
            if now is None or now.digest != tool.digest:
                raise ToolError(CHANGED.format(name=name, server=tool.server))
            await servers.approve_call(tool, arguments, call.approve)
            await call.budget.reserve({"bytes": len(json.dumps(arguments))})
            try:
                result = await running.call(tool, arguments, call.progress)
            finally:
                lines = running.told()
        for file, content in result.files.items():
            path = f"{WORKSPACE}/{file}"
            await call.sandbox.files.mark(f"MCP server, {file}")
            await call.sandbox.files.write(path, content)
            lines.append(f"[{len(content):,} bytes in {path}]")
        text = "\n".join([*lines, result.text.rstrip("\n")]).strip("\n") or "(no output)"
        return Output(truncate_middle(text, call.output_limit)[0], ok=not result.failed)

    fields = {
        name: argument(name, schema, required=name in tool.required)
        for name, schema in tool.parameters.items()
    }
    return Tool(function, name, tool.description, fields)


def argument(name: str, schema: dict[str, Any], *, required: bool) -> tuple[Any, Any]:
    """The type and default of an argument, as agent.tools.tool wants them. Raises ValueError for a nested one."""
    kinds = [kind for kind in types(schema) if kind != "null"]
    options = choices(schema)
    items = schema.get("items")
    kind: Any
    if options and all(isinstance(each, str) for each in options):
        kind = Literal[tuple(options)]
    elif kinds == ["array"] and isinstance(items, dict) and types(items) == ["string"]:
        kind = list[str]
    elif len(kinds) == 1 and kinds[0] in PLAIN and not options:
        kind = PLAIN[kinds[0]]
    else:
        raise ValueError(f"{name} is {type_text(schema)}, which a tool in a prompt cannot take")
    if not ARGUMENT.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an argument in a prompt")
    about = " ".join(str(schema.get("description") or "").split())
    hint = Annotated[kind, Field(description=about)] if about else kind
    return hint, ... if required else None
