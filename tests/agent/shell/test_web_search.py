"""`web search` over the documented form of SearXNG, refusals included."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.store import Store
from agent.tools.bash import bash
from agent.web import search
from agent.web.browser import Browser
from agent.web.search import MOST_ENTRIES, SearchRefused, SearXNG, page_of
from fakes.patience import SECONDS
from fakes.sandbox_box import Box, opened
from fakes.searxng import Searx, result
from fakes.words import saying

LONG = "A long text about tea and how it is grown. " * 9


@pytest.fixture
async def box(tmp_path: Path, store: Store, searx: Searx) -> AsyncIterator[Box]:
    async with opened(tmp_path / "state") as sandboxes:
        browser = Browser("cli", store.addresses, SearXNG(searx.url))
        yield Box(await sandboxes.of("cli"), browser=browser)


async def test_results_are_numbered_with_title_address_and_two_lines(
    box: Box, searx: Searx
) -> None:
    searx.results = [
        result(
            "https://tea.example/", "All  about\ntea", LONG, publishedDate="2026-11-02T00:00:00"
        ),
        result("https://b.example/x?y=1", "", "short \x1b[31mred"),
    ]
    searx.answers = ["42", {"answer": "a cup", "url": "https://c.example/"}]
    text = await box.text(bash, command="web search green   tea")
    lines = text.splitlines()
    assert lines[:2] == ["Answer: 42", "Answer: a cup"]
    assert lines[2:4] == ["1. All about tea", "   https://tea.example/"]
    assert lines[4].startswith("   2026-11-02 · A long text") and lines[5].endswith(" …")
    assert all(len(line) <= 104 for line in lines)
    assert lines[6:] == ["2. (no title)", "   https://b.example/x?y=1", "   short red"]
    assert searx.asked == [{"q": "green tea", "format": "json", "pageno": "1"}]
    assert box.strangers == ["search for green tea"] and box.asked == []


async def test_options_are_those_of_the_form(box: Box, searx: Searx) -> None:
    line = "web search tea --time week --language fr --category news --page 3"
    assert await box.text(bash, command=line) == "Nothing was found."
    form = {"q": "tea", "format": "json", "pageno": "3"}
    assert searx.asked == [form | {"time_range": "week", "language": "fr", "categories": "news"}]
    assert (await box.text(bash, command="web search tea --time hour")).splitlines()[
        -1
    ] == "exit code: 2"


async def test_json_goes_through_pipes(box: Box, searx: Searx) -> None:
    searx.results = [result(f"https://{n}.example/", f"T{n}") for n in range(12)]
    program = "import json, sys; print(*(each['url'] for each in json.load(sys.stdin)))"
    text = await box.text(bash, command=f'web search tea --json --count 2 | python3 -c "{program}"')
    assert text == "https://0.example/ https://1.example/"
    assert (await box.text(bash, command="web search tea")).count("\n   https://") == 8


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "words are missing"),
        ("x" * 201, "200 characters"),
        ("é " * 101, "200 characters"),
        (f"tea --language {'x' * 198}", "200 characters"),
        (f"tea --category {'x' * 198}", "200 characters"),
        ("tea --page 0", "--page is 1 to"),
        (f"tea --page {'7' * 300}", "--page is 1 to"),
    ],
    ids=["none", "long", "long-accents", "long-language", "long-category", "page", "long-page"],
)
async def test_what_is_no_query_is_usage(box: Box, searx: Searx, words: str, told: str) -> None:
    text = await box.text(bash, command=f"web search {words}; echo $?")
    assert told in text and text.splitlines()[-1] == "2" and searx.asked == []


@pytest.mark.parametrize(
    ("refusal", "advice", "remedy"),
    [
        ({"formats": ("html",)}, "does not give results to programs", "search.formats"),
        ({"limited": True}, "takes this for a bot", "limiter"),
        ({"elsewhere": True}, "is not SearXNG", "agent.web.search_url"),
        ({"crashed": True}, "refused that: search error", "log"),
        ({"silent": [["google", "CAPTCHA"], ["brave", "timeout"]]}, "No engine answered (google: CAPTCHA; brave: timeout)", "preferences"),
    ],
    ids=["json-off", "limiter", "elsewhere", "crashed", "no-engine"],
)  # fmt: skip
async def test_refusals_become_advice(
    box: Box, searx: Searx, refusal: dict[str, object], advice: str, remedy: str
) -> None:
    for name, value in refusal.items():
        setattr(searx, name, value)
    text = await box.text(bash, command="web search tea")
    assert text.startswith("web: ") and advice in text and text.endswith("\nexit code: 1")
    with pytest.raises(SearchRefused) as caught:
        await SearXNG(searx.url).search("tea")
    assert remedy in caught.value.remedy


async def test_nobody_home_and_an_engine_that_hangs(
    box: Box, searx: Searx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SECONDS", 0.2)
    searx.held = asyncio.Event()
    with pytest.raises(SearchRefused, match="did not answer within"):
        await asyncio.wait_for(SearXNG(searx.url).search("tea"), SECONDS)
    searx.held.set()
    with pytest.raises(SearchRefused, match="cannot be reached") as caught:
        await SearXNG("http://olga:hunter2@127.0.0.1:1/").search("tea")
    assert "127.0.0.1:1" in caught.value.remedy and "hunter2" not in caught.value.remedy


async def test_answers_of_any_form_are_read_as_far_as_they_can_be(box: Box, searx: Searx) -> None:
    searx.results = [
        {"url": None}, {"title": "no address"}, "text", result("javascript:alert(1)", "no"),
        result("http://[]@", "nowhere"), result("https://a.example/", "yes", content=None),
        {"url": "https://b.example/", "title": None, "content": ["odd"], "publishedDate": 2026},
    ]  # fmt: skip
    searx.answers = [None, {}, [1]]
    told = await box.text(bash, command="web search tea")
    assert told == saying("2. yes\n   https://a.example/", "https://b.example/")
    assert "None" not in told


async def test_without_an_engine_it_is_not_listed_and_says_so(box: Box, store: Store) -> None:
    assert "web search" in await box.text(bash, command="cat /commands.txt")
    box.browser = Browser("cli", store.addresses)
    listed = await box.text(bash, command="cat /commands.txt")
    assert "web search" not in listed and "voltaire setup search" in listed
    assert await box.text(bash, command="web search tea") == saying(
        "web: ", "voltaire setup search"
    )


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://127.0.0.1:8888", "http://127.0.0.1:8888/search"),
        ("http://searx.lan/", "http://searx.lan/search"),
        ("https://x.org/searx/search", "https://x.org/searx/search"),
        ("https://x.org/searx", "https://x.org/searx/search"),
    ],
)
def test_an_address_as_a_browser_shows_it(url: str, address: str) -> None:
    assert SearXNG(url).address == address


def test_of_a_list_without_end_no_more_is_read_than_anybody_looks_at() -> None:
    """4 MiB hold more than a million entries, each of which is checked."""
    entries = [result(f"http://x/{n}", "tea") for n in range(MOST_ENTRIES + 5)]
    found = page_of({"results": entries, "answers": ["a"] * 5000})
    assert (len(found.results), len(found.answers)) == (MOST_ENTRIES, MOST_ENTRIES)
