"""/mcp: the MCP servers, and signing in to a remote one."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agent.errors import ToolError
from bot.commands.context import CommandCall, HandlerContext
from bot.texts import Texts

if TYPE_CHECKING:  # loaded where servers are configured
    from agent.mcp.oauth import SignIn
    from agent.mcp.servers import ToolServers


async def mcp(context: HandlerContext, call: CommandCall) -> None:
    """/mcp lists them; /mcp NAME signs in to one; /mcp NAME ADDRESS hands over the address that the browser was
    redirected to."""
    servers = context.services.servers
    name, _, answer = call.argument.strip().partition(" ")
    if servers is None or not name:
        lines = await servers.report() if servers else []
        await context.send(call.chat, "\n".join(lines) or context.texts.no_servers)
        return

    async def tell(text: str) -> None:
        await context.send(call.chat, text)

    try:
        servers.named(name)
        if answer:
            servers.take_answer(name, answer)
        else:
            work = have_signed_in(servers, name, context.texts, tell)
            servers.tasks.start(work, f"signing in to {name}")
    except ToolError as error:
        await tell(str(error))


async def have_signed_in(
    servers: "ToolServers", name: str, texts: Texts, tell: Callable[[str], Awaitable[None]]
) -> None:
    """Send the sign-in link, wait until somebody has signed in, and say how it ended."""

    async def show(sign_in: "SignIn") -> None:
        facts = {"name": name, "host": sign_in.host, "link": sign_in.link}
        moved = texts.sign_in_moved.format(before=sign_in.before, **facts) if sign_in.before else ""
        await tell(f"{moved}\n\n{texts.sign_in.format(**facts)}".strip())

    try:
        if await servers.sign_in(name, show):
            await tell(texts.signed_in.format(name=name))
    except ToolError as error:
        await tell(str(error))
