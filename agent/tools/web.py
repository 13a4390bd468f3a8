"""web_fetch: the text of a page, by way of the proxy that knows the allowed hosts."""

from functools import partial

from agent.errors import ToolError
from agent.sandbox.output_buffer import truncate_middle
from agent.tools.tool import Call, Output, tool


@tool
async def web_fetch(call: Call, url: str) -> Output:
    """Read a web page as text."""
    if call.context.web is None:
        raise ToolError("There is no network; the owner can allow it in the configuration.")
    page = await call.context.web.fetch(url, partial(_permitted, call, url))
    text, _ = truncate_middle(page, call.context.sandbox.output_limit(call.output_bytes))
    return Output(text or "The page has no text.", foreign=True)


async def _permitted(call: Call, url: str, host: str) -> None:
    await call.approve(f"Connect to {host}, for: {url}", scope=f"network:{host}", standing=True)
