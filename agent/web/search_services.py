"""Searches with a service that wants a key, in the form of its documentation.

Brave: https://api-dashboard.search.brave.com/api-reference/web/search/get, Kagi: https://kagi.redocly.app/openapi,
Tavily: https://docs.tavily.com/documentation/api-reference/endpoint/search.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import ClientResponse

from agent.store.ledger import LedgerTable
from agent.web import search as engines
from agent.web.html_text import unescaped
from agent.web.search import SearchPage, SearchRefused, TimeRange

COUNT = 20  # results of a page
DAYS = {"day": 1, "week": 7, "month": 31, "year": 365}
HIGHLIGHT = re.compile(r"</?(?:strong|em|b)>")
BAD_KEY = ("SUBSCRIPTION_TOKEN_INVALID", "SUBSCRIPTION_NOT_FOUND")  # Brave's, with 422 and 404
MENDS = f"The owner can mend that (docs/web.md). {engines.AWAY}"


@dataclass(frozen=True, kw_only=True)
class KeyedEngine:
    """A search service with a key, which is read from `key_file` at each search; the `ledger` records its use.

    `request` makes aiohttp's arguments from key, query, time, language and page. Words with spaces between them: `path`
    is the way to the results in an answer, `fields` name a result's title, text and date, `lacks` options not taken."""

    name: str
    host: str
    endpoint: str
    request: Callable[[str, str, TimeRange, str, int], dict[str, Any]]
    path: str
    fields: str
    lacks: str
    key_file: Path
    ledger: LedgerTable | None = None

    async def search(
        self,
        query: str,
        *,
        time: TimeRange = "",
        language: str = "",
        category: str = "",
        page: int = 1,
    ) -> SearchPage:
        """Search for one page of results; SearchRefused says why that fails."""
        given = {"language": language, "category": category, "page": page - 1}
        if lacking := [option for option in self.lacks.split() if given[option]]:
            raise SearchRefused(f"{self.name} takes no --{lacking[0]}. Search without it.", "")
        key = self.key()
        sent = self.request(key, query, time, language, page)
        if self.ledger:
            await self.ledger.secret_used("agent.web.search_key_file", self.endpoint)
        mend = f"Look at the way to {self.host}"
        response, found = await engines.ask_engine(self, self.endpoint, mend, **sent)
        if response.status >= 300 or not isinstance(found, dict):
            raise self.refusal(response, found, key)
        for step in self.path.split():
            found = found.get(step) if isinstance(found, dict) else None
        return engines.page_of({"results": [self.result(e) for e in engines.listed(found)]})

    def key(self) -> str:
        """The key; SearchRefused where the file holds none that a header can hold."""
        with suppress(OSError, UnicodeDecodeError):
            if re.fullmatch(r"[!-~]+", key := self.key_file.expanduser().read_text().strip()):
                return key
        remedy = f"agent.web.search_key_file: {self.key_file} does not hold one word, or is not readable."
        raise SearchRefused(f"The key of the search engine cannot be read. {MENDS}", remedy)

    def result(self, entry: object) -> object:
        """An entry with the names of SearchResult, without entities and the marks of what was sought."""
        if not isinstance(entry, dict):
            return None
        values = (entry.get(name) for name in self.fields.split())
        plain = (unescaped(HIGHLIGHT.sub("", v)) if isinstance(v, str) else v for v in values)
        named = dict(zip(("title", "content", "publishedDate"), plain, strict=True))
        return named | {"url": entry.get("url"), "engine": self.name}

    def refusal(self, response: ClientResponse, found: object, key: str) -> SearchRefused:
        """What an answer without results means; the key is in none of its texts."""
        (code, said), status, headers = error_of(found), response.status, response.headers
        said = engines.one_line(said.replace(key, "…"))[:200] or "without a reason"
        if status in (401, 403) or code in BAD_KEY:
            advice = f"The search engine refuses its key. {MENDS}"
        elif status in (402, 432, 433) or code == "QUOTA_LIMITED":
            advice = f"The allowance of the search engine is used up. {MENDS}"
        elif status == 429:
            # Brave tells a second's, then a month's.
            wait = headers.get("Retry-After") or headers.get("X-RateLimit-Reset") or ""
            told = re.match(r"\d{1,9}", wait)  # no date
            advice = f"The search engine was asked too often. Wait {told[0] if told else 60} s, or go on without."
        elif 400 <= status < 500 and found is not None:
            advice = f"The search engine refused that: {said}. Change the words or options."
        else:
            advice = f"The search engine has a fault. Try again in a minute. {engines.AWAY}"
        return SearchRefused(advice, f"{self.name} answered {status} ({said}).")


def error_of(found: object) -> tuple[str, str]:
    """Code and sentence of an error, which stands in `error`, `errors` or `detail`, by itself or in a list."""
    given = found if isinstance(found, dict) else {}
    error = given.get("error") or given.get("errors") or given.get("detail")
    error = error[0] if isinstance(error, list) and error else error
    if not isinstance(error, dict):
        return "", str(error or "")
    said = error.get("detail") or error.get("message") or error.get("msg") or error.get("error")
    return str(error.get("code")), str(said or "")


def brave(key: str, query: str, time: TimeRange, language: str, page: int) -> dict[str, Any]:
    asked = {"freshness": f"p{time[0]}" if time else "", "search_lang": language}
    form = {"q": query, "count": str(COUNT), "offset": str(page - 1)}
    form |= {name: value for name, value in asked.items() if value}
    return {"params": form, "headers": {"X-Subscription-Token": key}}


def kagi(key: str, query: str, time: TimeRange, _: str, page: int) -> dict[str, Any]:
    form: dict[str, Any] = {"query": query, "workflow": "search", "limit": COUNT, "page": page}
    if time:
        form["filters"] = {"after": str(date.today() - timedelta(DAYS[time]))}  # noqa: DTZ011
    return {"json": form, "headers": {"Authorization": f"Bearer {key}"}}


def tavily(key: str, query: str, time: TimeRange, _: str, __: int) -> dict[str, Any]:
    form = {"query": query, "max_results": COUNT} | ({"time_range": time} if time else {})
    return {"json": form, "headers": {"Authorization": f"Bearer {key}"}}


SERVICES = {
    "brave": partial(
        KeyedEngine,
        name="Brave",
        host="api.search.brave.com",
        endpoint="https://api.search.brave.com/res/v1/web/search",
        request=brave,
        path="web results",
        fields="title description page_age",
        lacks="category",
    ),
    "kagi": partial(
        KeyedEngine,
        name="Kagi",
        host="kagi.com",
        endpoint="https://kagi.com/api/v1/search",
        request=kagi,
        path="data search",
        fields="title snippet time",
        lacks="category language",
    ),
    "tavily": partial(
        KeyedEngine,
        name="Tavily",
        host="api.tavily.com",
        endpoint="https://api.tavily.com/search",
        request=tavily,
        path="results",
        fields="title content published_date",
        lacks="category language page",
    ),
}
