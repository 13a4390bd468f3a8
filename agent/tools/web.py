"""web_fetch: the text of a page, by way of the proxy that knows the allowed hosts."""

from agent.errors import ToolError
from agent.sandbox.printed import shorten
from agent.tool import Call, Output, tool


@tool
async def web_fetch(call: Call, url: str) -> Output:
    """Read a web page as text."""
    if call.desk.web is None:
        raise ToolError("There is no network; the owner can allow it in the configuration.")
    text, _ = shorten(await call.desk.web.fetch(url), call.desk.sandbox.keep(call.room))
    return Output(text, foreign=True)
