"""/mcp: the MCP servers."""

from bot.commands.context import CommandCall, HandlerContext


async def mcp(context: HandlerContext, call: CommandCall) -> None:
    servers = context.services.servers
    lines = await servers.report() if servers else []
    await context.send(call.chat, "\n".join(lines) or context.texts.no_servers)
