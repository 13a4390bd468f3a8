"""web_fetch: the text of a page on an allowed host."""

from agent.errors import ToolError
from agent.sandbox.output_buffer import truncate_middle
from agent.tools.tool import Call, Output, tool


@tool
async def web_fetch(call: Call, url: str) -> Output:
    """Read a web page as text."""
    if call.context.web is None:
        raise ToolError("There is no network; the owner can allow it in the configuration.")
    call.strangers.append(f"page {url}")  # an error of it, too
    page = await call.context.web.fetch(url, call.host_permit(url))
    text, _ = truncate_middle(page, call.output_limit)
    return Output(text or "The page has no text.")
