"""Pages as text, from allowed hosts, however they redirect."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from agent.errors import ToolError
from agent.sandbox.hosts import HostRequest, Hosts
from agent.web.fetch import Fetcher, page_text
from agent.web.html_text import html_text
from fakes.web_server import Site, site
from fakes.words import saying


@pytest.fixture
async def served() -> AsyncIterator[Site]:
    async with site() as one:
        yield one


class Permits:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, request: HostRequest) -> None:
        self.asked.append(str(request))


async def _error(fetcher: Fetcher, url: str) -> str:
    with pytest.raises(ToolError) as caught:
        await fetcher.fetch(url, Permits())
    return str(caught.value)


def test_a_page_of_merged_cells_gives_little() -> None:
    page = "<table><tr>" + "<td rowspan=9999 colspan=9999>x" * 300 + "<tr><td>y" * 50_000
    assert len(html_text(page)) < 3_000_000


async def test_a_page_is_text(served: Site) -> None:
    html = "<title>T</title><h1>Head</h1><p>Some <b>bold</b>\n text</p><script>no()</script>"
    served.pages["/p"] = lambda: web.Response(text=html, content_type="text/html")
    permits = Permits()
    page = await Fetcher(served.hosts()).fetch(f"http://{served.host}/p", permits)
    assert page == "T\n\n# Head\n\nSome bold text"
    assert permits.asked == [f"GET http://{served.host}/p"]


async def test_redirects_are_followed_and_each_is_checked(served: Site) -> None:
    served.pages["/a"] = lambda: web.Response(status=302, headers={"Location": "/b"})
    served.pages["/b"] = lambda: web.Response(text="there")
    permits = Permits()
    url = f"http://{served.host}/a"
    assert await Fetcher(served.hosts()).fetch(url, permits) == "there"
    assert permits.asked == [f"GET http://{served.host}/{name}" for name in "ab"]


@pytest.mark.parametrize(
    ("location", "said"),
    [
        (
            "http://127.0.0.1:{port}/",
            "127.0.0.1:{port} is not among the hosts that the owner allows.",
        ),
        ("http://example.org/", "example.org:80 is not among the hosts that the owner allows."),
        ("file:///etc/passwd", "url must begin with https:// or http:// and name a host."),
        ("/loop", "The page redirects too often."),
    ],
)
async def test_redirects_that_lead_away(served: Site, location: str, said: str) -> None:
    to = location.format(port=served.port)
    served.pages["/loop"] = lambda: web.Response(status=302, headers={"Location": to})
    url = f"http://{served.host}/loop"
    assert await _error(Fetcher(served.hosts()), url) == said.format(port=served.port)


async def test_a_password_in_a_redirect_is_neither_shown_nor_sent(served: Site) -> None:
    to = f"http://me:secret@{served.host}/b"
    served.pages["/a"] = lambda: web.Response(status=302, headers={"Location": to})
    served.pages["/b"] = lambda: web.Response(status=404)
    permits = Permits()
    with pytest.raises(ToolError) as caught:
        await Fetcher(served.hosts()).fetch(f"http://{served.host}/a", permits)
    assert str(caught.value) == f"http://{served.host}/b answered 404 Not Found."
    assert permits.asked == [f"GET http://{served.host}/{name}" for name in "ab"]
    assert not any(b"authorization" in request.lower() for request in served.sent)


async def test_an_address_is_looked_up_once(served: Site) -> None:
    """What was checked is what is connected to: a second answer of DNS is never asked for."""
    seen: list[str] = []

    def reachable(address: str) -> bool:
        seen.append(address)
        return True

    hosts = Hosts((served.host,), reachable)
    await Fetcher(hosts).fetch(f"http://{served.host}/", Permits())
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (web.Response, None),
        (lambda: web.Response(status=404), "{url} answered 404 Not Found."),
        (
            lambda: web.Response(body=b"x", content_type="image/png"),
            "{url} is image/png, not text.",
        ),
    ],
)
async def test_what_is_no_page(served: Site, answer: type[web.Response], said: str | None) -> None:
    served.pages["/x"] = lambda: answer()
    url = f"http://{served.host}/x"
    if said is None:
        with pytest.raises(ToolError, match="not text"):
            await Fetcher(served.hosts()).fetch(url, Permits())
    else:
        assert await _error(Fetcher(served.hosts()), url) == said.format(url=url)


async def test_a_bomb_is_cut(served: Site) -> None:
    packed = gzip.compress(b"a" * (64 << 20))
    headers = {"Content-Encoding": "gzip"}
    served.pages["/z"] = lambda: web.Response(
        body=packed, content_type="text/plain", headers=headers
    )
    page = await Fetcher(served.hosts()).fetch(f"http://{served.host}/z", Permits())
    assert page.startswith("a" * (4 << 20))
    assert page[4 << 20 :].lstrip("a") == saying("\n\n[", "There is more", " 4 MiB ")


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://x/", "http://", "http://x:99999/"])
async def test_what_is_no_address(url: str) -> None:
    said = await _error(Fetcher(Hosts(("*",))), url)
    assert "address" in said or "must begin with" in said


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a</p><p>b</p>", "a\n\nb"),
        ("<ul><li>one<li>two</ul>", "- one\n- two"),
        (
            "<ol><li>one<ul><li>a</ul><li>two<ol start='7'><li>b</ol></ol><li>c",
            "1. one\n\n- a\n\n2. two\n\n7. b\n\n- c",
        ),
        ("a<br>b", "a\nb"),
        ("<pre>x\n  y</pre>", "x\n  y"),
        ("<table><tr><td>1<td>2<tr><td>3<td>4</table>", "| 1 | 2\n| 3 | 4"),
        ("<table><tr><td rowspan=2>Mon<td>9<tr><td>10</table>", "| Mon | 9\n| Mon | 10"),
        (
            "<table><tr><th>a<th>b<th>c<tr><td>1<td rowspan='3'>x<td>2<tr><td>3<td>4<tr><td>5<td>6<tr><td>7</table>",
            "| a | b | c\n| 1 | x | 2\n| 3 | x | 4\n| 5 | x | 6\n| 7",
        ),
        (
            "<table><tr><td colspan=2>Mon<td>Tue<tr><td>1<td>2<td>3</table>",
            "| Mon | | Tue\n| 1 | 2 | 3",
        ),
        (
            "<table><tr><td ROWSPAN=2 colspan=2>x<td>1<tr><td>2<tr><td>3<td>4</table>",
            "| x | | 1\n| x | | 2\n| 3 | 4",
        ),
        (
            "<table><tr><td rowspan=2><table><tr><td>in</table><td>1<tr><td>2</table>",
            "|\n\n| in\n| 1\n| | in | 2",
        ),
        ("<td rowspan=2>loose<tr><td>x", "| loose\n| x"),
        *(
            (f"<table><tr><td {attributes}>a<td>b<tr><td>c</table>", "| a | b\n| c")
            for attributes in [
                "data-rowspan=2",
                "data-rowspan='2' data-colspan=2",
                'x:rowspan="2"',
                'title="rowspan=2"',
                "alt='colspan=2'",
                "ng-rowspan=2",
                "v-bind.rowspan=2",
                'data-x1="a rowspan=2"',
                "aria-rowspan='2'",
                'rowspan="" data-rowspan=2',
                "rowspan=1 rowspan=2",
                "_rowspan=2",
                "@rowspan='2'",
                "my.colspan=3",
            ]
        ),
        ("<table><tr><td data-x='1' ROWSPAN = ' +2'>a<td>b<tr><td>c</table>", "| a | b\n| a | c"),
        ("<table><tr><td rowspan=0>a<td rowspan=x>b<tr><td>c</table>", "| a | b\n| c"),
        ("<style>p{}</style><noscript>no</noscript>x &amp; y", "x & y"),
        ("<script>if (a < b) {</script>end", "end"),
        ("</div></p>loose", "loose"),
        ("<title>Only</title>", "Only"),
        ("", ""),
        ("a<nav><ul><li>menu</ul></nav>b", "a\n\nb"),
        ("<nav>menu", "menu"),
        ("<svg><title>icon</title></svg><title>T</title>x", "T\n\nx"),
        ("<textarea>a < b</textarea>", "a < b"),
        ("1 < 2 </", "1 < 2 </"),
        ("<!doctype html><?xml?><!-- - > -->x<!-->y", "xy"),
        ('<a title="a > b" href=x>y</a>', "y"),
        ("x<!-- not closed", "x"),
        ('x<a href="y', "x"),
        ("<STYLE>p</Style>x", "x"),
        ("<p>a &#" + "9" * 5000 + "; b", "a \ufffd b"),
        ("a &#" + "1" * 100_000 + " b", "a \ufffd b"),
        ("a &#" + "0" * 5000 + "65; b", "a A b"),
        ("<title>&#" + "9" * 5000 + ";</title>b", "\ufffd\n\nb"),
        ("&#x" + "f" * 9000 + ";&#0;&#xD800;&#1114112;", "\ufffd" * 4),
    ],
)
def test_text_of_html(html: str, text: str) -> None:
    assert html_text(html) == text


LONG_PAGES = {
    "<a ": 1_400_000,
    "<!--": 1 << 20,
    "<": 4 << 20,
    "<div>": 800_000,
    "<svg>": 400_000,
    "<script>": 500_000,
    "<a b='": 700_000,
    "<a =": 1 << 20,
    "&#": 2 << 20,
    "</": 2 << 20,
    "<title>": 600_000,
}


@pytest.mark.parametrize(
    "html",
    [
        pytest.param(
            piece * count + ("</svg></nav>" * 160_000 if piece == "<svg>" else ""),
            id=piece,
            marks=[] if piece == "<title>" else [pytest.mark.slow],
        )
        for piece, count in LONG_PAGES.items()
    ],
)
def test_no_page_takes_minutes(html: str) -> None:
    """The time limit of a test is what fails here: a scanner that reads anew needs hours."""
    assert "<a" not in html_text(html)


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("http://[", "redirects to 'http://[', which is no address."),
        ("", "redirects to '', which is no address."),
        ("http://me:secret@[", "redirects to 'http://[', which is no address."),
        ("http://a:b/", "is not an address"),
        ("//[::1", "which is no address."),
        ("http://\xff\xfe/", "is not among the hosts"),
    ],
)
async def test_broken_locations(served: Site, location: str, said: str) -> None:
    served.pages["/r"] = lambda: web.Response(status=302, headers={"Location": location})
    assert said in await _error(Fetcher(served.hosts()), f"http://{served.host}/r")


@pytest.mark.parametrize("charset", ["nonsense", "hex", ""])
async def test_unknown_charsets_are_read_as_utf_8(served: Site, charset: str) -> None:
    headers = {"Content-Type": f"text/plain; charset={charset}"}
    served.pages["/c"] = lambda: web.Response(body="zoë".encode(), headers=headers)
    page = await Fetcher(served.hosts()).fetch(f"http://{served.host}/c", Permits())
    assert page == "zoë"


@pytest.mark.parametrize(
    ("page", "charset", "html"),
    [
        (b"a-" + b"a" * (4 << 20), "punycode", False),  # quadratic
        (b"&#" + b"9" * (4 << 20) + b";", "utf-8", True),
        (b"<a " * (4 << 18), "utf-8", True),
    ],
)
async def test_a_page_that_takes_too_long_is_given_up(
    page: bytes, charset: str, html: bool
) -> None:
    """Whatever its bytes are, the text or one sentence comes, and no process is left."""
    try:
        await page_text(page, charset, html=html, seconds=2)
    except ToolError as error:
        assert str(error) == saying("page takes too much")
    assert children() == []


def children() -> list[str]:
    def read(path: Path) -> str:
        with suppress(OSError):  # a thread or a process that has ended meanwhile
            return path.read_text()
        return ""

    tasks = Path("/proc/self/task").iterdir()
    pids = [pid for task in tasks for pid in read(task / "children").split()]
    return [pid for pid in pids if "html_text" in read(Path(f"/proc/{pid}/cmdline"))]


async def test_a_page_that_takes_for_ever_is_cancelled_at_once() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await page_text(b"a-" + b"a" * (4 << 20), "punycode", html=False, seconds=60)
    assert children() == []
