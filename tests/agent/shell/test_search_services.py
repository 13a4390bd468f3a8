"""`web search` over the documented forms of Brave, Kagi and Tavily: their results, errors and limits."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.store import Store
from agent.tools.bash import bash
from agent.web import search
from agent.web.browser import Browser
from agent.web.search import SearchRefused, open_engine
from fakes.patience import SECONDS
from fakes.sandbox_box import Box, opened
from fakes.search_services import (
    KEY,
    SearchService,
    brave_error,
    kagi_error,
    limits,
    search_service,
    tavily_error,
)
from fakes.words import saying

NAMES = ("brave", "kagi", "tavily")
# The same two results, each as that service gives them.
RESULTS: dict[str, list[Any]] = {
    "brave": [
        {"type": "search_result", "title": "All about tea", "url": "https://tea.example/",
         "description": "Green <strong>tea</strong> isn&#x27;t dear", "page_age": "2026-11-02T00:00:00",
         "age": "November 2, 2026", "profile": {"name": "Tea"}, "language": "en", "is_source_local": False},
        {"type": "search_result", "title": "B", "url": "https://b.example/", "description": "short \x1b[31mred"},
    ],
    "kagi": [
        {"url": "https://tea.example/", "title": "All about tea", "snippet": "Green tea isn&#39;t dear",
         "time": "2026-11-02T14:49:00Z", "image": {"url": "https://tea.example/a.jpg"}, "props": {"language": "en"}},
        {"url": "https://b.example/", "title": "B", "snippet": "short \x1b[31mred"},
    ],
    "tavily": [
        {"title": "All about tea", "url": "https://tea.example/", "content": "Green tea isn't dear",
         "score": 0.81025416, "raw_content": None, "published_date": "2026-11-02"},
        {"title": "B", "url": "https://b.example/", "content": "short \x1b[31mred", "score": 0.5},
    ],
}  # fmt: skip
SHOWN = """1. All about tea
   https://tea.example/
   2026-11-02 · Green tea isn't dear
2. B
   https://b.example/
   short red"""


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "search-key"
    path.write_text(f"{KEY}\n")
    return path


@pytest.fixture(params=NAMES)
async def service(request: pytest.FixtureRequest) -> AsyncIterator[SearchService]:
    async with search_service(request.param) as served:
        yield served


@pytest.fixture
async def box(
    tmp_path: Path, store: Store, service: SearchService, key_file: Path
) -> AsyncIterator[Box]:
    async with opened(tmp_path / "state") as sandboxes:
        engine = open_engine(service.name, "", key_file, store.ledger)
        yield Box(await sandboxes.of("cli"), browser=Browser("cli", store.addresses, engine))


async def test_results_have_the_one_form(box: Box, store: Store, service: SearchService) -> None:
    service.results = [{"title": "no address"}, "text", *RESULTS[service.name]]
    assert await box.text(bash, command="web search green tea") == SHOWN
    asked = json.loads(await box.text(bash, command="web search tea --json --count 1"))
    assert asked[0]["url"] == "https://tea.example/" and list(asked[0])[1:4] == ["url", "title", "content"]  # fmt: skip
    assert box.asked == [] and box.strangers == ["search for tea"]
    assert box.browser and await box.browser.seen("https://b.example/")
    used = [json.loads(row.facts) for row in await store.ledger.rows() if row.kind == "secret"]
    assert used == [{"name": "agent.web.search_key_file", "to": service.url}]


async def test_options_are_those_of_the_service(box: Box, service: SearchService) -> None:
    command = "web search tea --time week"
    today = date.today()
    expected = {
        "brave": {"q": "tea", "count": "20", "offset": "0", "freshness": "pw"},
        "kagi": {"query": "tea", "workflow": "search", "limit": 20, "page": 1},
        "tavily": {"query": "tea", "max_results": 20, "time_range": "week"},
    }
    assert await box.text(bash, command=command) == "Nothing was found."
    if service.name == "kagi":
        after = date.fromisoformat(service.asked[0].pop("filters")["after"])
        assert today <= after + timedelta(7) <= date.today()
    assert service.asked == [expected[service.name]]
    for option, takes in {"--language fr": ["brave"], "--page 2": ["brave", "kagi"], "--category it": []}.items():  # fmt: skip
        service.asked.clear()
        text = await box.text(bash, command=f"web search tea {option}")
        if service.name in takes:
            assert len(service.asked) == 1, option
        else:
            assert text == saying(option.split()[0], "Search without it") and not service.asked


async def test_a_key_that_is_none_is_told_and_never_shown(
    box: Box, service: SearchService, key_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    engine = box.browser and box.browser.engine
    assert engine
    seen = []
    for wrong in (f"not-{KEY}", "two words", "", "line\nline", "clé"):
        key_file.write_text(wrong)
        with pytest.raises(SearchRefused) as caught:
            await engine.search("tea")
        seen.append(f"{caught.value} {caught.value.remedy} {engine!r}")
        assert seen[-1] == saying("key", "The owner can mend that (docs/web.md)")
        assert wrong == "" or wrong not in seen[-1]
    assert "refuses its key" in seen[0] and str(key_file) in seen[1] and service.asked == []
    key_file.unlink()
    assert await box.text(bash, command="web search tea") == saying("web: ", "cannot be read")
    key_file.write_text(KEY)  # a new one counts at once
    assert await box.text(bash, command="web search tea") == "Nothing was found."
    assert KEY not in caplog.text + "".join(seen)


# Of each service: what it answers, and what is made of it.
REFUSALS: dict[str, tuple[str, tuple[int, Any, dict[str, str]], str]] = {
    "brave-rate": ("brave", (429, brave_error("RATE_LIMITED", "Request rate limit exceeded for plan.", 429), limits("0, 1000", "1, 1419704")), "Wait 1 s"),
    "brave-quota": ("brave", (429, brave_error("QUOTA_LIMITED", "Request quota limit exceeded for plan.", 429), limits("1, 0", "1, 1419704")), "used up"),
    "brave-alone": ("brave", (422, {"type": "ErrorResponse", "error": brave_error("SUBSCRIPTION_TOKEN_INVALID", "x", 422)["errors"][0]}, {}), "refuses its key"),
    "brave-plan": ("brave", (404, brave_error("SUBSCRIPTION_NOT_FOUND", "No subscription found.", 404), {}), "refuses its key"),
    "brave-words": ("brave", (422, brave_error("VALIDATION", "Unable to validate request parameter(s)", 422), {}), "refused that: Unable to validate"),
    "brave-pays": ("brave", (402, brave_error("PAYMENT_REQUIRED", "Payment required", 402), {}), "used up"),
    "kagi-address": ("kagi", (403, kagi_error("3", "IP address not authorized"), {}), "refuses its key"),
    "kagi-rate": ("kagi", (429, kagi_error("5", "Rate limited"), {"Retry-After": "7"}), "Wait 7 s"),
    "kagi-date": ("kagi", (429, kagi_error("5", "Rate limited"), {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), "Wait 60 s"),
    "kagi-bare": ("kagi", (429, kagi_error("5", "Rate limited"), {}), "Wait 60 s"),
    "kagi-words": ("kagi", (400, kagi_error("1", "Missing query"), {}), "refused that: Missing query"),
    "kagi-pays": ("kagi", (402, kagi_error("101", "Insufficient credit"), {}), "used up"),
    "kagi-fault": ("kagi", (500, kagi_error("0", "Internal error"), {}), "has a fault"),
    "tavily-rate": ("tavily", (429, tavily_error("Your request has been blocked due to excessive requests."), {"retry-after": "30"}), "Wait 30 s"),
    "tavily-plan": ("tavily", (432, tavily_error("This request exceeds your plan's set usage limit."), {}), "used up"),
    "tavily-pays": ("tavily", (433, tavily_error("This request exceeds the pay-as-you-go limit."), {}), "used up"),
    "tavily-words": ("tavily", (400, tavily_error("Query is too long."), {}), "refused that: Query is too long"),
    "tavily-form": ("tavily", (422, {"detail": [{"loc": ["body", "query"], "msg": "field required", "type": "x"}]}, {}), "refused that: field required"),
    "an-echo": ("tavily", (400, tavily_error(f"The key {KEY} is odd"), {}), "refused that: The key … is odd"),
    "html": ("brave", (200, "<h1>Bad gateway</h1>", {}), "has a fault"),
    "html-error": ("kagi", (503, "<h1>Down</h1>", {}), "has a fault"),
    "a-list": ("tavily", (200, [1, 2], {}), "has a fault"),
    "elsewhere": ("brave", (302, "", {"Location": "https://evil.example/"}), "has a fault"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "refusal", "advice"), REFUSALS.values(), ids=REFUSALS)
async def test_refusals_become_advice(
    name: str, refusal: tuple[int, Any, dict[str, str]], advice: str, key_file: Path
) -> None:
    async with search_service(name) as service:
        service.refusal = refusal
        engine = open_engine(name, "", key_file)
        assert engine
        with pytest.raises(SearchRefused) as caught:
            await engine.search("tea")
    assert str(caught.value) == saying("search engine", advice)
    assert caught.value.remedy == saying(engine.name, str(refusal[0]))
    assert KEY not in f"{caught.value}{caught.value.remedy}"


async def test_a_slow_one_a_cut_body_and_none_at_all(
    service: SearchService, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(service.name, "", key_file)
    assert engine
    service.cut = True
    with pytest.raises(SearchRefused, match="cannot be reached"):
        await asyncio.wait_for(engine.search("tea"), SECONDS)
    monkeypatch.setattr(search, "SECONDS", 0.2)
    service.held = asyncio.Event()
    with pytest.raises(SearchRefused, match="did not answer within"):
        await asyncio.wait_for(engine.search("tea"), SECONDS)
    service.held.set()
    await service.stopped()
    monkeypatch.setattr(search, "SECONDS", SECONDS)
    with pytest.raises(SearchRefused, match="cannot be reached") as caught:
        await engine.search("tea")
    assert caught.value.remedy == saying(f"127.0.0.1:{service.port}", "failed")


@pytest.mark.parametrize("found", [{}, {"web": None}, {"web": {"results": None}}, {"web": [1]},
                                   {"data": None}, {"data": []}, {"results": {}}])  # fmt: skip
async def test_an_answer_without_results_is_nothing_found(
    service: SearchService, key_file: Path, found: object
) -> None:
    service.refusal = (200, found, {})
    engine = open_engine(service.name, "", key_file)
    assert engine and (await engine.search("tea")).results == []
