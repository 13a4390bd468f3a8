"""`web read`: pages in pieces, and where an address may come from."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from agent.prompt import system_text, use_instructions
from agent.sandbox.hosts import WholeWeb
from agent.store import Incoming, Store
from agent.tools.bash import bash
from agent.web import browser as browsers
from agent.web import fetch
from agent.web.browser import Browser, PageCache
from agent.web.search import SearXNG
from fakes.sandbox_box import Box, opened
from fakes.searxng import result, searxng
from fakes.web_server import Site, site
from fakes.words import saying

TEA = """<html><title>Tea</title><body><nav><a href=/>Home</a></nav><main><h1>Tea</h1>
<p>Green tea costs 4.20, see <a href="/prices">prices</a>.</p><p>Black tea costs 3.10.</p></main></body></html>"""


@pytest.fixture
async def served() -> AsyncIterator[Site]:
    async with site() as one:
        one.pages["/tea"] = lambda: web.Response(text=TEA, content_type="text/html")
        yield one


@pytest.fixture
async def box(tmp_path: Path, store: Store) -> AsyncIterator[Box]:
    async with opened(tmp_path / "state") as sandboxes:
        everywhere = WholeWeb(lambda address: True)
        browser = Browser("cli", store.addresses, hosts=everywhere)
        yield Box(await sandboxes.of("cli"), allows=False, browser=browser)


async def say(store: Store, text: str, **fields: str) -> None:
    number = str(len(await store.inbox.waiting("cli")))
    await store.inbox.add(Incoming("cli", "test", number, text, **fields))  # type: ignore[arg-type]


async def test_the_main_part_as_markdown_with_numbered_links(
    box: Box, store: Store, served: Site
) -> None:
    url = f"http://{served.host}/tea"
    await say(store, f"what does green tea cost? ({url})")
    text = await box.text(bash, command=f"web read {url}")
    assert text == (
        f"{url}\n\nTea\n\n# Tea\n\nGreen tea costs 4.20, see [prices][1].\n\nBlack tea costs 3.10."
        f"\n\n[1]: http://{served.host}/prices"
    )
    assert box.strangers == [f"page {url}"] and box.asked == []
    assert "Home" not in text


async def test_for_a_question_the_readers_extract_alone(
    box: Box, store: Store, served: Site
) -> None:
    async def extract(wish: str, text: str) -> str:
        return f"4.20 ({wish} {'Black tea costs 3.10.' in text})"

    url = f"http://{served.host}/tea"
    await say(store, url)
    box.read = extract
    asked = f"web read {url} --question 'green tea?'"
    assert await box.text(bash, command=asked) == "4.20 (green tea? True)"
    assert box.strangers == [f"page {url}"]


@pytest.mark.parametrize(
    ("written", "read", "asks"),
    [
        ("see {url}", "{url}", False),
        ("**{url}**, please", "{url}", False),
        ("[tea]({url}).", "{url}#part", False),
        ("{upper}", "{url}", False),
        ("{url}?a=1", "{url}", True),
        ("{url}", "{url}?q=SECRET", True),
        ("{url}", "{url}/SECRET", True),
        ("{url}", "{root}", True),
        ("{url}x", "{url}", True),
        ("nothing", "{url}", True),
    ],
    ids=["plain", "bold", "markdown", "upper", "shorter", "query", "deeper", "root", "cut", "never"],
)  # fmt: skip
async def test_an_address_is_read_unasked_just_as_a_person_wrote_it(
    box: Box, store: Store, served: Site, written: str, read: str, asks: bool
) -> None:
    url, root = f"http://{served.host}/tea", f"http://{served.host}/"
    fields = {"url": url, "root": root, "upper": url.upper().replace("/TEA", "/tea")}  # fmt: skip
    await say(store, written.format(**fields))
    address = read.format(**fields)
    text = await box.text(bash, command=f"web read '{address}'")
    if not asks:
        assert box.asked == [] and "costs 4.20" in text
        return
    ((what, scope),) = box.asked
    assert scope == f"page:localhost:{served.port}" and f"\n{address}\n" in what
    assert served.seen == [] and "The owner said no." in text and not box.strangers


async def test_what_only_looks_like_an_address_hides_no_other(store: Store) -> None:
    await say(store, "http://[]@ and http://[ by the way, and https://tea.example/prices")
    browser = Browser("cli", store.addresses)
    assert not await browser.needs_question("https://tea.example/prices")


@pytest.mark.parametrize(
    "fields",
    [
        {"stranger": "forwarded from Eve"},
        {"kind": "job"},
        {"origin": "stranger"},
        {"quote": "{url}"},
    ],
    ids=["forwarded", "job", "stranger", "quote"],
)
async def test_what_others_wrote_was_not_written_by_a_person(
    box: Box, store: Store, served: Site, fields: dict[str, str]
) -> None:
    url = f"http://{served.host}/tea"
    text = "look" if "quote" in fields else url
    await say(store, text, **{name: value.format(url=url) for name, value in fields.items()})
    await box.use(bash, command=f"web read {url}")
    assert len(box.asked) == 1 and served.seen == []


async def test_standing_orders_let_nothing_be_read_unasked(
    box: Box, store: Store, served: Site
) -> None:
    url = f"http://{served.host}/tea"
    use_instructions(f"You may read {url} whenever you like, without asking.")
    try:
        assert url in system_text()
        await say(store, "what does tea cost?")
        await box.use(bash, command=f"web read {url}")
    finally:
        use_instructions("")
    assert len(box.asked) == 1 and served.seen == []


async def test_what_a_search_returned_is_read_unasked_and_nothing_near_it(
    box: Box, store: Store, served: Site
) -> None:
    assert box.browser
    async with searxng() as searx:
        url = f"http://{served.host}/tea"
        searx.results = [result(url, "Tea")]
        browser = Browser("cli", store.addresses, SearXNG(searx.url), hosts=box.browser.hosts)
        box.browser = browser
        text = await box.text(
            bash, command="web read $(web search tea --json | grep -o 'http[^\"]*')"
        )
        assert "costs 4.20" in text and box.asked == []
        assert box.strangers == ["search for tea", f"page {url}"]
        await box.use(bash, command=f"web read '{url}?leak=1'")
        assert len(box.asked) == 1 and len(served.seen) == 1


async def test_it_stays_seen_when_the_message_has_gone(store: Store, box: Box) -> None:
    assert box.browser
    await say(store, "https://tea.example/")
    assert await box.browser.seen("https://tea.example/")
    await store.database.execute("DELETE FROM inbox")
    assert await box.browser.seen("https://tea.example/")
    await store.chats.forget("cli")
    assert not await box.browser.seen("https://tea.example/")


@pytest.mark.parametrize(("reading", "asked"), [("ask", 1), ("never", 0)])
async def test_an_owner_can_have_every_address_asked_about_or_none_read(
    box: Box, store: Store, served: Site, reading: browsers.Reading, asked: int
) -> None:
    assert box.browser
    url = f"http://{served.host}/tea"
    await say(store, url)
    box.browser = Browser("cli", store.addresses, reading=reading, hosts=box.browser.hosts)
    text = await box.text(bash, command=f"cat /commands.txt; web read {url}")
    assert len(box.asked) == asked and served.seen == []
    assert ("\nweb read URL" in text) == (reading == "ask")
    if reading == "never":
        assert text == saying("web: ", "agent.web.read")


async def test_an_owner_allows_an_address_once(box: Box, served: Site) -> None:
    box.allows = True
    url = f"http://{served.host}/tea"
    assert "costs 4.20" in await box.text(bash, command=f"web read {url}; web read {url} > again")
    assert len(box.asked) == 1  # what was read is kept for the chat
    assert await box.text(bash, command=f"web read {url} --fresh > again") == "(done, no output)"
    assert len(box.asked) == 2


async def test_redirects_go_where_the_server_says_within_the_walls(
    box: Box, store: Store, served: Site
) -> None:
    served.pages["/old"] = lambda: web.Response(status=302, headers={"Location": "/tea"})
    await say(store, f"http://{served.host}/old")
    text = await box.text(bash, command=f"web read http://{served.host}/old")
    assert text.startswith(f"http://{served.host}/tea\n") and box.asked == []


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:{port}/", "http://localhost:{port}/", "http://169.254.169.254/", "http://[::1]:{port}/",
     "http://[::ffff:127.0.0.1]:{port}/", "http://2130706433:{port}/", "http://100.64.0.1/"],
    ids=["loopback", "name", "metadata", "ipv6", "mapped", "number", "cgnat"],
)  # fmt: skip
async def test_private_addresses_stay_out_of_reach(
    box: Box, store: Store, served: Site, url: str
) -> None:
    url = url.format(port=served.port)
    await say(store, url)
    box.allows, box.browser = True, Browser("cli", store.addresses)
    text = await box.text(bash, command=f"web read '{url}'")
    assert "not public" in text or "cannot be resolved" in text
    assert served.seen == []


async def test_other_services_ports_are_none_of_the_web(box: Box, store: Store) -> None:
    await say(store, "http://localhost:25/")
    assert await box.text(bash, command="web read http://localhost:25/") == saying("Port 25")


@pytest.mark.parametrize(
    "url", ["ftp://x.example/", "x.example", "http://olga:pw@x.example/", "file:///etc/passwd", "http://[", "'http://[]@'", "''"]
)  # fmt: skip
async def test_what_is_no_address_of_the_web(box: Box, url: str) -> None:
    text = await box.text(bash, command=f"web read {url}; echo $?")
    assert text.splitlines()[-1] == "1" and "is not an address such as" in text and box.asked == []


async def test_long_pages_come_in_pieces_and_by_lines(box: Box, store: Store, served: Site) -> None:
    url = f"http://{served.host}/long"
    served.pages["/long"] = lambda: web.Response(
        text="\n".join(f"line {n}" for n in range(1, 2001))
    )
    await say(store, url)
    box.output_bytes = 1000
    text = await box.text(bash, command=f"web read {url} --from 500")
    first, *_, last = text.splitlines()
    assert (
        first == "line 500" and last.startswith("[lines 500 to ") and "go on with --from " in last
    )
    following = last.rpartition(" ")[2].rstrip("]")
    assert (await box.text(bash, command=f"web read {url} --from {following}")).startswith(
        f"line {following}\n"
    )
    assert (
        await box.text(bash, command=f"web read {url} --grep '^LINE 199[89]'")
        == "1998: line 1998\n1999: line 1999"
    )
    assert await box.text(bash, command=f"web read {url} | grep -c 0$") == "200"
    assert await box.text(bash, command=f"web read {url} --from 3000") == saying("only 2000 lines")
    assert await box.text(bash, command=f"web read {url} --grep '('") == saying(
        "not a regular expression"
    )
    assert served.seen == [f"{served.host}/long"]


@pytest.mark.parametrize(
    "option", ["--grep ''", "--grep ' '", "--from 0", "--from -3", "--from=-3"]
)
async def test_what_picks_no_lines_is_usage(
    box: Box, store: Store, served: Site, option: str
) -> None:
    await say(store, f"http://{served.host}/tea")
    text = await box.text(bash, command=f"web read http://{served.host}/tea {option}; echo $?")
    assert text == saying("usage: web read") and text.endswith("\n2")
    assert served.seen == []


async def test_a_regular_expression_that_never_ends_holds_up_nobody(
    box: Box, store: Store, served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://{served.host}/a"
    served.pages["/a"] = lambda: web.Response(text="a" * 5000 + "!")
    await say(store, url)
    defaults = {**(fetch.page_text.__kwdefaults__ or {}), "seconds": 1}
    monkeypatch.setattr(fetch.page_text, "__kwdefaults__", defaults)
    assert await box.text(bash, command=f"web read {url} --grep '(a+)+$'") == saying(
        "too much time"
    )


async def test_pages_are_kept_for_their_chat_and_not_for_long(
    store: Store, served: Site, box: Box
) -> None:
    now = [0.0]
    cache = PageCache(lambda: now[0])
    assert box.browser
    url = f"http://{served.host}/tea"
    for chat, at, requests in (("cli", 0, 1), ("cli", 800, 1), ("cli", 1000, 2), ("tg:5", 1000, 3)):
        now[0] = at
        await store.inbox.add(Incoming(chat, "test", f"{chat}{at}", url))
        box.browser = Browser(chat, store.addresses, cache=cache, hosts=box.browser.hosts)
        await box.use(bash, command=f"web read {url}")
        assert len(served.seen) == requests


def pdf(*pages: str) -> bytes:
    """A PDF with a line on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in pages:
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R /Resources {font} >>")  # fmt: skip
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{at:010} 00000 n \n" for at in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer << /Root 1 0 R /Size {len(objects) + 1} >>\nstartxref\n{len(out)}\n%%EOF"
    return out + end.encode()


needs_poppler = pytest.mark.skipif(
    not browsers.PDF_PROGRAM.exists(), reason="poppler-utils is not installed"
)


@needs_poppler
async def test_a_pdf_is_read_page_by_page(box: Box, store: Store, served: Site) -> None:
    url = f"http://{served.host}/a.pdf"
    raw = pdf("The ferry leaves at seven.", "It costs 12 crowns.")
    served.pages["/a.pdf"] = lambda: web.Response(body=raw, content_type="application/pdf")
    await say(store, url)
    text = await box.text(bash, command=f"web read {url}")
    assert (
        text
        == f"{url}\n\n## Page 1\n\nThe ferry leaves at seven.\n\n## Page 2\n\nIt costs 12 crowns."
    )


async def test_without_poppler_a_pdf_says_what_is_missing(
    box: Box, store: Store, served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browsers, "PDF_PROGRAM", Path("/usr/bin/none"))
    url = f"http://{served.host}/a.pdf"
    served.pages["/a.pdf"] = lambda: web.Response(body=pdf("x"), content_type="application/pdf")
    await say(store, url)
    assert await box.text(bash, command=f"web read {url}") == saying("poppler-utils")


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (lambda: web.Response(status=404), "404"),
        (lambda: web.Response(body=b"x", content_type="image/png"), "image/png"),
        (lambda: web.Response(text="<script>x</script>", content_type="text/html"), "no text"),
    ],
    ids=["missing", "picture", "scripts"],
)
async def test_what_cannot_be_read_says_why(
    box: Box, store: Store, served: Site, page: object, told: str
) -> None:
    served.pages["/x"] = page  # type: ignore[assignment]
    url = f"http://{served.host}/x"
    await say(store, url)
    text = await box.text(bash, command=f"web read {url}")
    assert text == saying("web: ", told) and box.strangers == [f"page {url}"]


@pytest.mark.parametrize("more", [0, 1], ids=["whole", "cut"])
async def test_a_page_that_goes_on_says_so(
    box: Box, store: Store, served: Site, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    monkeypatch.setattr(fetch, "MOST_BYTES", 1 << 20)
    served.pages["/long"] = lambda: web.Response(text=("x" * 63 + "\n") * (1 << 14) + "y" * more)
    url = f"http://{served.host}/long"
    await say(store, url)
    text = await box.text(bash, command=f"web read {url} | tail -n 1")
    assert text == (saying("There is more", " 1 MiB ") if more else "x" * 63)


async def test_a_pdf_that_is_too_long_is_not_called_damaged(
    box: Box, store: Store, served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "MOST_PDF_BYTES", 1 << 20)
    raw = b"%PDF-1.4".ljust((1 << 20) + 1)
    served.pages["/long"] = lambda: web.Response(body=raw, content_type="application/pdf")
    url = f"http://{served.host}/long"
    await say(store, url)
    text = await box.text(bash, command=f"web read {url}; true")
    assert text == saying(f"web: {url} ", "PDF", " 1 MiB", "not read") and "damaged" not in text
