"""mcp: the tools of MCP servers, which cost no token in a prompt until they are asked for."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from agent.errors import ToolError
from agent.shell.command import ShellCall, UsageError, command
from agent.tools.context import ToolContext

if TYPE_CHECKING:  # loaded where servers are configured
    from agent.mcp.results import ServerResult
    from agent.mcp.servers import RunningServer, ToolServers
    from agent.mcp.tools import ServerTool

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
            await use(call, servers, name, rest)


async def use(call: ShellCall, servers: "ToolServers", name: str, words: Sequence[str]) -> None:
    begun = False
    try:
        async with servers.session(name, call.chat, partial(waiting, call, name)) as running:
            begun = True
            await use_running(call, servers, name, running, words)
    except ToolError:
        if not begun:  # the reason may hold words of the server
            await call.stranger(f"MCP server {name}")
        raise


@contextmanager
def waiting(call: ShellCall, name: str) -> Iterator[None]:
    call.within.progress(f"{name} waits for its owner to sign in")
    with call.questions.waiting():
        yield


async def use_running(
    call: ShellCall,
    servers: "ToolServers",
    name: str,
    running: "RunningServer",
    words: Sequence[str],
) -> None:
    """What a server says of itself is a stranger's text too, also where an owner has seen it."""
    match words:
        case [] | ["--help"]:
            tools, missing = await allowed(call, servers, name, running)
            await call.stranger(f"MCP server {name}")
            await call.write("".join(f"{tool.line}\n" for tool in tools))
            await call.warn("".join(f"{one}\n" for one in missing))
            others = [kind for kind in running.connection.offers if kind != "tools"]
            hints = {"resources": f"mcp {name} read", "prompts": f"mcp {name} prompt"}
            await call.write("".join(f"It has {kind}: {hints[kind]}\n" for kind in others))
        case ["read", *uris] if not has(running, "read"):
            await read(call, name, running, uris)
        case ["prompt", *rest] if not has(running, "prompt"):
            await prompt(call, name, running, rest)
        case [tool, *rest]:
            try:
                found = await one(call, servers, name, running, tool)
                if rest != ["--help"]:
                    await run(call, servers, running, found, rest)
                    return
            except UsageError:  # names of tools and arguments
                await call.stranger(f"MCP server {name}")
                raise
            await call.stranger(f"MCP server {name}")
            await call.write(await asyncio.to_thread(lambda: found.help))


def has(running: "RunningServer", name: str) -> bool:
    return any(tool.name == name for tool in running.tools)


async def allowed(
    call: ShellCall, servers: "ToolServers", name: str, running: "RunningServer", wanted: str = ""
) -> tuple[list["ServerTool"], list[str]]:
    """The tools that an owner has seen as they are now, and a sentence for what is not among them. An owner is asked
    about the others, once."""
    from agent.mcp.tools import question

    pins = await servers.pins(name)
    new = [tool for tool in running.tools if not pins.seen(tool)]
    unasked = [tool for tool in new if tool.digest not in servers.refused]
    if unasked:
        try:
            what = question(servers.named(name).source, pins, unasked)
            await call.approve(what, scope=f"mcp-server:{name}")
        except ToolError:
            servers.refused |= {tool.digest for tool in unasked}
            if len(new) == len(running.tools) or any(tool.name == wanted for tool in new):
                raise
        else:
            await servers.pin(name, unasked)
            pins = await servers.pins(name)
    seen = [tool for tool in running.tools if pins.seen(tool)]
    out = [tool.name for tool in running.tools if not pins.seen(tool)]
    missing = [f"Not allowed by the owner as they are now: {', '.join(out)}."] if out else []
    return seen, missing


async def one(
    call: ShellCall, servers: "ToolServers", name: str, running: "RunningServer", wanted: str
) -> "ServerTool":
    from agent.nearest import nearest

    tools, missing = await allowed(call, servers, name, running, wanted)
    for tool in tools:
        if tool.name == wanted:
            return tool
    if has(running, wanted):
        await call.stranger(f"MCP server {name}")
        raise ToolError(" ".join(missing))
    near = nearest(wanted, (tool.name for tool in tools), 1, 0.5)
    hint = f"Did you mean {near[0]}?" if near else f"mcp {name} lists its tools."
    raise UsageError(f"{name} has no tool {wanted[:80]}. {hint}")


async def run(
    call: ShellCall,
    servers: "ToolServers",
    running: "RunningServer",
    tool: "ServerTool",
    words: Sequence[str],
) -> None:
    arguments = await arguments_of(call, tool, words)
    await servers.approve_call(tool, arguments, call.approve)
    await call.reserve({"bytes": len(json.dumps(arguments))})
    await call.stranger(f"MCP server {tool.server}")
    try:
        progress, wait = call.within.progress, partial(waiting, call, tool.server)
        result = await servers.call(running, call.chat, tool, arguments, progress, wait)
    finally:
        await tell(call, running)
    await give(call, result)


async def arguments_of(call: ShellCall, tool: "ServerTool", words: Sequence[str]) -> dict[str, Any]:
    """From the words; from standard input where there are none and some are required, or for "-"."""
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


async def read(call: ShellCall, name: str, running: "RunningServer", uris: Sequence[str]) -> None:
    from agent.mcp.results import ServerResult, content_of, shown

    await call.stranger(f"MCP server {name}")
    if not uris:
        lines = [
            f"{each.get('uri')}  {each.get('title') or each.get('name') or ''}  {each.get('description') or ''}"
            for each in await running.connection.resources()
        ]
        await call.write(shown([" ".join(line.split()) for line in lines], running.secrets))
        return
    for uri in uris:
        raw = await running.connection.read(uri)
        blocks = [{"type": "resource", "resource": each} for each in raw.get("contents") or []]
        texts, files = content_of(blocks, f"{name}-resource")
        text = await asyncio.to_thread(shown, texts, running.secrets)
        await give(call, ServerResult(text, files=files))
    await tell(call, running)


async def prompt(
    call: ShellCall, name: str, running: "RunningServer", words: Sequence[str]
) -> None:
    from agent.mcp.results import content_of, shown

    await call.stranger(f"MCP server {name}")
    if not words:
        for each in await running.connection.prompts():
            taken = " ".join(str(one.get("name")) for one in each.get("arguments") or [])
            line = f"{each.get('name')} {taken}  {each.get('description') or ''}"
            await call.write(shown([" ".join(line.split())], running.secrets))
        return
    pairs = [word.partition("=") for word in words[1:]]
    if not all(equals for _, equals, _ in pairs):
        raise UsageError("the arguments of a prompt are key=value")
    raw = await running.connection.prompt(words[0], {key: value for key, _, value in pairs})
    for message in raw.get("messages") or []:
        texts, _ = content_of([message.get("content") or {}], name)
        said = [f"{message.get('role')}: {' '.join(texts)}"]
        await call.write(await asyncio.to_thread(shown, said, running.secrets))


async def give(call: ShellCall, result: "ServerResult") -> None:
    for name, content in result.files.items():
        path = call.path(name)
        await call.within.sandbox.files.mark(f"MCP server, {name}")
        await call.within.sandbox.files.write(path, content)
        await call.write(f"[{len(content):,} bytes in {path}]\n")
    if result.failed:
        raise ToolError(result.text.strip() or "The tool failed and did not say why.")
    await call.write(result.text or ("" if result.files else "(no output)\n"))


async def tell(call: ShellCall, running: "RunningServer") -> None:
    await call.warn("".join(f"{line}\n" for line in running.told()))
