"""mcp: the tools of MCP servers. They cost no token in a prompt until they are used."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.errors import ToolError
from agent.shell.command import ShellCall, UsageError, command
from agent.tools.context import ToolContext

if TYPE_CHECKING:  # loaded where servers are configured
    from agent.mcp.servers import RunningServer, ToolServers
    from agent.mcp.tools import ServerResult, ServerTool

MOST_JSON = 1 << 20
USAGE = """\
mcp                                servers and their tools
mcp SERVER                         its tools, a line each
mcp SERVER TOOL --help             the arguments of a tool
mcp SERVER TOOL key=value ...      call it; or all arguments as JSON on standard input
mcp SERVER read [URI]              its resources, or one of them
mcp SERVER prompt [NAME key=value ...]  its prompts, or one of them
"""


def mcp_lines(context: ToolContext) -> Sequence[str]:
    if context.servers is None:
        return []
    names = ", ".join(context.servers.configs)
    return [f"mcp [SERVER [TOOL [key=value ...]]]  Tools of other programs: {names}."]


@command(lines=mcp_lines, raw=True)
async def mcp(call: ShellCall, *words: str) -> None:
    """Tools of other programs (MCP servers)."""
    servers = call.context.servers
    if words[:1] == ("--help",):
        await call.write(USAGE)
        return
    if servers is None:
        raise ToolError("There is no MCP server; the owner can name one in agent.mcp.")
    match words:
        case []:
            for name in servers.configs:
                seen = (await servers.pins(name)).tools
                known = ", ".join(seen) if seen else f"not used yet; mcp {name} lists its tools"
                if seen:
                    await call.stranger(f"MCP server {name}")
                await call.write(f"{name}  {known}\n")
        case [name, *rest]:
            servers.named(name)
            running = None
            try:
                async with servers.session(name, call.chat) as running:
                    await ServerUse(call, servers, name, running).run(rest)
            except ToolError:
                if running is None:  # the reason may hold words of the server
                    await call.stranger(f"MCP server {name}")
                raise


@dataclass(frozen=True)
class ServerUse:
    """The use of a running server by one command. A server's descriptions are a stranger's text, even where an
    owner has seen them."""

    call: ShellCall
    servers: "ToolServers"
    name: str
    running: "RunningServer"

    async def run(self, words: Sequence[str]) -> None:
        match words:
            case [] | ["--help"]:
                tools, missing = await self.allowed()
                await self.mark()
                await self.call.write("".join(f"{tool.line}\n" for tool in tools))
                await self.call.warn("".join(f"{one}\n" for one in missing))
                await self.warn()
                others = [kind for kind in self.running.connection.offers if kind != "tools"]
                hints = {"resources": f"mcp {self.name} read", "prompts": f"mcp {self.name} prompt"}
                await self.call.write("".join(f"It has {kind}: {hints[kind]}\n" for kind in others))
            case ["read", *uris] if not self.has_tool("read"):
                await self.read(uris)
            case ["prompt", *rest] if not self.has_tool("prompt"):
                await self.prompt(rest)
            case [tool, *rest]:
                try:
                    found = await self.allowed_tool(tool)
                    if rest != ["--help"]:
                        await self.use_tool(found, rest)
                        return
                except UsageError:  # it has names of tools and arguments
                    await self.mark()
                    await self.warn()
                    raise
                await self.mark()
                await self.call.write(await asyncio.to_thread(lambda: found.help))

    async def mark(self) -> None:
        await self.call.stranger(f"MCP server {self.name}")

    def has_tool(self, name: str) -> bool:
        return any(tool.name == name for tool in self.running.tools)

    async def allowed(self, wanted: str = "") -> tuple[list["ServerTool"], list[str]]:
        """The tools that an owner has seen in their present form, and a sentence about the others, if any.
        An owner is asked about those, once."""
        from agent.mcp.tools import question

        name, servers, tools = self.name, self.servers, self.running.tools
        pins = await servers.pins(name)
        new = [tool for tool in tools if not pins.seen(tool)]
        unasked = [tool for tool in new if tool.digest not in servers.refused]
        if unasked:
            try:
                what = question(servers.named(name).source, pins, unasked)
                await self.call.approve(what, scope=f"mcp-server:{name}")
            except ToolError:
                servers.refused |= {tool.digest for tool in unasked}
                if len(new) == len(tools) or any(tool.name == wanted for tool in new):
                    raise
            else:
                await servers.pin(name, unasked)
                pins = await servers.pins(name)
        seen = [tool for tool in tools if pins.seen(tool)]
        out = [tool.name for tool in tools if not pins.seen(tool)]
        missing = [f"Not allowed by the owner as they are now: {', '.join(out)}."] if out else []
        return seen, missing

    async def allowed_tool(self, wanted: str) -> "ServerTool":
        from agent.nearest import nearest

        tools, missing = await self.allowed(wanted)
        for tool in tools:
            if tool.name == wanted:
                return tool
        if self.has_tool(wanted):
            await self.mark()
            raise ToolError(" ".join(missing))
        near = nearest(wanted, (tool.name for tool in tools), 1, 0.5)
        hint = f"Did you mean {near[0]}?" if near else f"mcp {self.name} lists its tools."
        raise UsageError(f"{self.name} has no tool {wanted[:80]}. {hint}")

    async def use_tool(self, tool: "ServerTool", words: Sequence[str]) -> None:
        call = self.call
        arguments = await arguments_of(call, tool, words)
        await self.servers.approve_call(tool, arguments, call.approve)
        await call.reserve({"bytes": len(json.dumps(arguments))})
        await self.mark()
        try:
            result = await self.running.call(tool, arguments, call.within.progress)
        finally:
            await self.warn()
        await self.give(result)

    async def read(self, uris: Sequence[str]) -> None:
        from agent.mcp.tools import ServerResult, content_of, shown

        connection, secrets = self.running.connection, self.running.secrets
        await self.mark()
        if not uris:
            lines = [
                f"{each.get('uri')}  {each.get('title') or each.get('name') or ''}  {each.get('description') or ''}"
                for each in await connection.resources()
            ]
            await self.call.write(shown([" ".join(line.split()) for line in lines], secrets))
            return
        for uri in uris:
            raw = await connection.read(uri)
            blocks = [{"type": "resource", "resource": each} for each in raw.get("contents") or []]
            texts, files = content_of(blocks, f"{self.name}-resource")
            text = await asyncio.to_thread(shown, texts, secrets)
            await self.give(ServerResult(text, files=files))
        await self.warn()

    async def prompt(self, words: Sequence[str]) -> None:
        from agent.mcp.tools import content_of, shown

        connection, secrets = self.running.connection, self.running.secrets
        await self.mark()
        if not words:
            for each in await connection.prompts():
                taken = " ".join(str(one.get("name")) for one in each.get("arguments") or [])
                line = f"{each.get('name')} {taken}  {each.get('description') or ''}"
                await self.call.write(shown([" ".join(line.split())], secrets))
            return
        pairs = [word.partition("=") for word in words[1:]]
        if not all(equals for _, equals, _ in pairs):
            raise UsageError("the arguments of a prompt are key=value")
        raw = await connection.prompt(words[0], {key: value for key, _, value in pairs})
        for message in raw.get("messages") or []:
            texts, _ = content_of([message.get("content") or {}], self.name)
            said = [f"{message.get('role')}: {' '.join(texts)}"]
            await self.call.write(await asyncio.to_thread(shown, said, secrets))

    async def give(self, result: "ServerResult") -> None:
        """Save the files of a result, and write its text."""
        call = self.call
        for name, content in result.files.items():
            path = call.path(name)
            await call.within.sandbox.files.mark(f"MCP server, {name}")
            await call.within.sandbox.files.write(path, content)
            await call.write(f"[{len(content):,} bytes in {path}]\n")
        if result.failed:
            raise ToolError(result.text.strip() or "The tool failed and did not say why.")
        await call.write(result.text or ("" if result.files else "(no output)\n"))

    async def warn(self) -> None:
        """Print what the model is to be told of the server, such as refused hosts."""
        await self.call.warn("".join(f"{line}\n" for line in self.running.told()))


async def arguments_of(call: ShellCall, tool: "ServerTool", words: Sequence[str]) -> dict[str, Any]:
    """The arguments, from the words; from standard input for "-", or where words are missing."""
    from agent.mcp.tools import arguments, from_json

    try:
        if words and list(words) != ["-"]:
            return await asyncio.to_thread(arguments, tool, words)
        if not words and not tool.required:
            return {}
        raw = bytearray()
        while piece := await call.read():
            raw += piece
            if len(raw) > MOST_JSON:
                raise UsageError(f"standard input has more than {MOST_JSON >> 20} MiB")
        text = raw.decode("utf-8", "replace")
        await call.leaves("mcp", text)
        return (
            await asyncio.to_thread(from_json, tool, text) if text.strip() else arguments(tool, [])
        )
    except UsageError as error:
        raise UsageError(f"{error}. mcp {tool.server} {tool.name} --help") from None
