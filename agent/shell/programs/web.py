"""web: search it, read its pages."""

import json
import textwrap
from collections.abc import Sequence
from typing import Annotated

from agent.errors import ToolError
from agent.shell.command import ShellCall, UsageError, command
from agent.tools.context import ToolContext
from agent.web.addresses import canonical
from agent.web.search import LONGEST_QUERY, SearchResult, TimeRange

SHOWN = 8  # results
WIDTH, LINES = 100, 2  # of a result's text


def search_lines(context: ToolContext) -> Sequence[str]:
    engine = context.browser and context.browser.engine
    return ["web search WORDS...  Search the web: titles, addresses, two lines."] if engine else []


@command(lines=search_lines)
async def search(
    call: ShellCall,
    *words: str,
    time: Annotated[TimeRange, "no older than that"] = "",
    language: Annotated[str, "such as en or fr"] = "",
    category: Annotated[str, "such as news, science, it"] = "",
    page: Annotated[int, "of results, from 1"] = 1,
    count: Annotated[int, "of results to show"] = SHOWN,
    json_: Annotated[bool, "as JSON"] = False,
) -> None:
    """Search the web."""
    browser = call.context.browser
    if browser is None or browser.engine is None:
        raise ToolError(
            "There is no search engine; the owner can name one in agent.web.search_url."
        )
    query = " ".join(" ".join(words).split())
    if not query:
        raise UsageError("words are missing")
    if len(query) > LONGEST_QUERY:
        raise UsageError(f"a search has at most {LONGEST_QUERY} characters, this {len(query)}")
    await call.within.sandbox.observer.connection(browser.engine.host)
    await call.reserve({"bytes": len(query.encode())})
    await call.stranger(f"search for {query}")
    found = await browser.engine.search(
        query, time=time, language=language, category=category, page=max(page, 1)
    )
    results = found.results[: max(count, 1)]
    await browser.found([address for each in results if (address := canonical(each.url))])
    if json_:
        fields = [{"number": n, **each.model_dump()} for n, each in enumerate(results, 1)]
        await call.write(json.dumps(fields, ensure_ascii=False, indent=1) + "\n")
        return
    for answer in found.answers[:LINES]:
        await call.write(f"Answer: {answer}\n")
    for number, each in enumerate(results, 1):
        await call.write(result_text(number, each))
    if not results:
        await call.write("Nothing was found.\n")
    if found.silent:
        await call.warn(f"These engines did not answer: {', '.join(found.silent)}\n")


def result_text(number: int, result: SearchResult) -> str:
    content = result.content or ""
    if result.publishedDate:
        content = f"{result.publishedDate[:10]} · {content}"
    lines = textwrap.wrap(content, WIDTH, max_lines=LINES, placeholder=" …")
    return "\n".join(
        [
            f"{number}. {result.title or '(no title)'}",
            *(f"   {s}" for s in [result.url, *lines]),
            "",
        ]
    )
