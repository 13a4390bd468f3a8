"""web_fetch: the text of a page on an allowed host."""

from typing import Annotated

from pydantic import Field

from agent.errors import ToolError
from agent.sandbox.output_buffer import truncate_middle
from agent.tools.tool import Call, Output, tool


@tool
async def web_fetch(
    call: Call,
    url: str,
    question: Annotated[str, Field(description="to get its answer alone")] = "",
) -> Output:
    """Read a web page as text, or what it says to a question."""
    if call.context.web is None:
        raise ToolError("There is no network; the owner can allow it in the configuration.")
    call.strangers.append(f"page {url}")  # also for its errors
    await call.budget.reserve({"bytes": len(url.encode())})
    page = await call.context.web.fetch(url, call.host_permit(url))
    if extract := await call.extract(question, page):
        return Output(extract)
    text, _ = truncate_middle(page, call.output_limit)
    return Output(text or "The page has no text.")
