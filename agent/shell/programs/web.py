"""web: search the web, read its pages."""

import json
import textwrap
from collections.abc import Sequence
from typing import Annotated

from agent.errors import ToolError
from agent.language import translated
from agent.sandbox.hosts import HostRequest, Permit
from agent.shell.command import ShellCall, UsageError, command
from agent.tools.context import ToolContext
from agent.web.browser import RENDERED, canonical
from agent.web.fetch import page_text, parts_of
from agent.web.search import LONGEST_QUERY, SearchResult, TimeRange

SHOWN = 8  # results
MOST_RESULT_PAGES = 50  # engines give no more
WIDTH, LINES = 100, 2  # of a result's text
ROOM = 100  # bytes for the line that says how to go on
NO_SEARCH = "Searching the web is not set up; the owner can: `voltaire setup search`. Say so."
UNSEEN = "Nobody wrote this address and no search returned it: it could carry data out."
SCRIPTS = "Its scripts run, and may load from other hosts."


def search_lines(context: ToolContext) -> Sequence[str]:
    if not context.browser:
        return []
    found = "web search WORDS...  Search the web: titles, addresses, two lines."
    return [found if context.browser.engine else NO_SEARCH]


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
        raise ToolError(NO_SEARCH)
    query = " ".join(" ".join(words).split())
    if not query:
        raise UsageError("words are missing")
    if len(asked := f"{query}{language}{category}") > LONGEST_QUERY:
        raise UsageError(f"a search has at most {LONGEST_QUERY} characters, this {len(asked)}")
    if not 1 <= page <= MOST_RESULT_PAGES:
        raise UsageError(f"--page is 1 to {MOST_RESULT_PAGES}")
    await call.within.sandbox.observer.connection(browser.engine.host)
    await call.reserve({"bytes": len(asked.encode())})
    await call.stranger(f"search for {query}")
    found = await browser.engine.search(
        query, time=time, language=language, category=category, page=page
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


def read_lines(context: ToolContext) -> Sequence[str]:
    there = context.browser and context.browser.reading != "never"
    return ["web read URL  A page or PDF as Markdown with numbered links."] if there else []


@command(lines=read_lines)
async def read(
    call: ShellCall,
    url: str,
    *,
    from_: Annotated[int, "a piece that begins at this line"] = 1,
    grep: Annotated[str | None, "only lines that match, with their numbers"] = None,
    question: Annotated[str, "to get its answer alone"] = "",
    feed: Annotated[
        bool, "the entries of an RSS or Atom feed, a line each: id, tab, title and address"
    ] = False,
    render: Annotated[bool, "as its scripts make it"] = False,
    fresh: Annotated[bool, "not as it was some minutes ago"] = False,
    json_: Annotated[bool, "as JSON"] = False,
) -> None:
    """Read a page or PDF of the web."""
    browser = call.context.browser
    if browser is None or browser.reading == "never":
        raise ToolError(
            "Reading the web is switched off; the owner can allow it in agent.web.read."
        )
    if render and not browser.rendering:
        raise ToolError("The owner can allow that in agent.web.render; read it without --render.")
    if from_ < 1:
        raise UsageError("--from takes the number of a line, from 1")
    if grep is not None and not grep.strip():
        raise UsageError("--grep takes a regular expression, not nothing")
    address = canonical(url)
    if not address:
        raise ToolError(f"{url[:200]} is not an address such as https://example.org/page.")
    page = None if fresh else browser.cache.get(browser.chat, address + RENDERED * render)
    if page is None:
        permit, load = await permits_of(call, address, render)
        await call.stranger(f"page {address}")  # also for its errors
        page = await browser.read(address, permit, call.within.sandbox, load=load)
    await call.stranger(f"page {address}")  # also for a cached one
    if extract := await call.extract(question, page.text):
        await call.write(f"{extract}\n")
        return
    lines, text = page.text.split("\n"), page.text
    if feed:
        text = await page_text(page.text.encode(), "utf-8", html=False, feed=True)
    elif grep:
        text = await page_text(page.text.encode(), "utf-8", html=False, grep=grep)
    elif from_ > 1:
        text = piece(lines, from_, call.within.output_limit)
    if json_:
        fields = {"url": page.address, "lines": len(lines), "text": text}
        await call.write(json.dumps(fields, ensure_ascii=False) + "\n")
        return
    if not (grep or feed) and from_ == 1:
        await call.write(f"{page.address}\n\n")
    await call.write(f"{text}\n" if text else "")


async def permits_of(call: ShellCall, address: str, render: bool) -> tuple[Permit, Permit | None]:
    """The permission to read an address, and where it is to be rendered that for what its scripts ask for. An owner is
    asked about one that nobody has seen, and then about every other host that it redirects to."""
    browser = call.context.browser
    assert browser
    allowed: set[str] = set()
    why = translated(UNSEEN) + (f"\n{translated(SCRIPTS)}" if render else "")

    async def ask(place: str, url: str) -> None:
        if place not in allowed:
            await call.approve(
                f"{translated('Read a page of {host}:').format(host=place)}\n\n{url}\n\n{why}",
                scope=f"page:{place}",
            )
            allowed.add(place)

    host, port, *_ = parts_of(address)
    if asked := await browser.needs_question(address, call.within.written):
        await ask(f"{host}:{port}", address)

    async def load(request: HostRequest) -> None:
        await call.reserve({"bytes": len(f"{request.scheme}://{request.place}{request.target}")})
        await call.reserve({"hosts": 1}, host=request.place)

    async def permit(request: HostRequest) -> None:
        if asked:
            await ask(request.place, f"{request.scheme}://{request.place}{request.target}")
        await load(request)

    return permit, load if render else None


def piece(lines: Sequence[str], first: int, most: int) -> str:
    """Return as many lines, from `first` on, as fit into `most` bytes, and how to go on."""
    if first > len(lines):
        raise ToolError(f"The page has only {len(lines)} lines.")
    last, left = first - 1, most - ROOM
    while last < len(lines) and (left := left - len(lines[last].encode()) - 1) > 0:
        last += 1
    last = max(last, first)
    more = f"; go on with --from {last + 1}" if last < len(lines) else ""
    return "\n".join([*lines[first - 1 : last], f"[lines {first} to {last} of {len(lines)}{more}]"])


def result_text(number: int, result: SearchResult) -> str:
    content = result.content
    if result.publishedDate:
        content = f"{result.publishedDate[:10]} · {content}"
    wrapped = textwrap.wrap(content, WIDTH, max_lines=LINES, placeholder=" …")
    lines = [f"   {line}\n" for line in (result.url, *wrapped)]
    return f"{number}. {result.title or '(no title)'}\n{''.join(lines)}"
