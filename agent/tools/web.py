"""web_fetch: the text of a page, by way of the proxy that knows the allowed hosts."""

from functools import partial

from agent.errors import ToolError
from agent.sandbox.output_buffer import shorten
from agent.tools.tool import Call, Output, tool


@tool
async def web_fetch(call: Call, url: str) -> Output:
    """Read a web page as text."""
    if call.desk.web is None:
        raise ToolError("There is no network; the owner can allow it in the configuration.")
    page = await call.desk.web.fetch(url, partial(_permitted, call, url))
    text, _ = shorten(page, call.desk.sandbox.keep(call.room))
    return Output(text or "The page has no text.", foreign=True)


async def _permitted(call: Call, url: str, host: str) -> None:
    await call.approve(f"Connect to {host}, for: {url}", scope=f"network:{host}", standing=True)
