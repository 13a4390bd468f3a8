"""Searches the web. With a SearXNG of the owner's, by its JSON API: https://docs.searxng.org/dev/search_api.html,
the owner configures its address, so it may be on this machine or in a private network.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import aiohttp
from pydantic import BaseModel, BeforeValidator, ValidationError

from agent.bounded_json import parsed_json
from agent.errors import ToolError
from agent.sandbox.output_buffer import clean
from agent.store.ledger import LedgerTable, RecordUse, unrecorded
from agent.web.fetch import open_session, read_bounded

if TYPE_CHECKING:
    from agent.web.search_services import KeyedEngine

SECONDS = 30  # engines may take more than 10, and be asked twice
MOST_BYTES = 4 << 20
MOST_ENTRIES = 1000  # of a list in its answer
LONGEST_QUERY = 200  # characters
AWAY = "Go on without a search, and say so."
TimeRange = Literal["", "day", "week", "month", "year"]
Words = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")]


class SearchRefused(ToolError):
    """A search failed; `str(error)` is advice to the model, `remedy` what the owner can do."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(why)
        self.remedy = remedy


class SearchResult(BaseModel):
    url: str
    title: Words = ""
    content: Words = ""
    engine: Words = ""
    publishedDate: Words = ""  # noqa: N815 - SearXNG's name

    @property
    def plain(self) -> "SearchResult":
        """The result with each field on one line, without terminal control sequences."""
        changed = {key: one_line(value) for key, value in self.model_dump().items()}
        return self.model_copy(update=changed)


@dataclass(frozen=True, slots=True)
class SearchPage:
    """`answers` are those that engines give themselves (a conversion, a definition); `silent` are engines that
    did not answer, with the reasons."""

    results: Sequence[SearchResult]
    answers: Sequence[str] = ()
    silent: Sequence[str] = ()


def open_engine(
    name: str, url: str, key_file: Path | None, ledger: LedgerTable | None = None
) -> "SearXNG | KeyedEngine | None":
    """The engine of agent.web.search ("": SearXNG where there is a `url`); None where none is configured. The `ledger`
    records the use of a key, and of a password in the address."""
    if name not in ("", "searxng") and key_file:
        from agent.web.search_services import SERVICES

        return SERVICES[name](key_file=key_file, ledger=ledger)
    used = ledger.use_of("agent.web.search_url", url) if ledger else unrecorded
    return SearXNG(url, used) if url else None


@dataclass(frozen=True)
class SearXNG:
    """The owner's SearXNG as an engine; `used` is awaited before each request."""

    url: str
    used: RecordUse = unrecorded
    name: str = "SearXNG"

    @property
    def host(self) -> str:
        """The engine's host as people are told it: without a password that the address may have."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"

    @property
    def address(self) -> str:
        parts = urlsplit(self.url)
        path = parts.path.rstrip("/")
        return urlunsplit(
            parts._replace(path=path if path.endswith("/search") else f"{path}/search")
        )

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
        asked = {"time_range": time, "language": language, "categories": category}
        form = {"q": query, "format": "json", "pageno": str(page)}
        await self.used()
        mend = f"Start SearXNG at {self.host}, or change agent.web.search_url"
        form |= {k: v for k, v in asked.items() if v}
        response, found = await ask_engine(self, self.address, mend, params=form)
        if response.status == 403:
            raise SearchRefused(
                "The search engine does not give results to programs. The owner can mend that (docs/web.md); go on without a search.",
                "Turn its JSON form on: search.formats must list json in SearXNG's settings.yml.",
            )
        if response.status == 429:
            raise SearchRefused(
                "The search engine takes this for a bot and refuses for now. Wait a minute, or go on without a search.",
                "Turn its limiter off (server.limiter: false), or let this machine pass it (limiter.toml, pass_ip).",
            )
        if not isinstance(found, dict) or (response.status >= 400 and "error" not in found):
            raise SearchRefused(
                "What answers at the search engine's address is not SearXNG. The owner can mend that (docs/web.md).",
                f"It answered {response.status} without JSON; agent.web.search_url must be SearXNG's address, as a browser shows it.",
            )
        if error := found.get("error"):
            raise SearchRefused(
                f"The search engine refused that: {one_line(str(error))[:200]}. Change the words or options.",
                "Look at SearXNG's own log.",
            )
        return page_of(found)


async def ask_engine(
    engine: "SearXNG | KeyedEngine", url: str, mend: str, **sent: Any
) -> tuple[aiohttp.ClientResponse, Any]:
    """The answer and its JSON, None where it is none: to a form (`params`) by GET, else by POST. SearchRefused where
    nothing answers; `mend` begins what the owner can do."""
    session, method = open_session(), "GET" if "params" in sent else "POST"
    try:
        async with (
            asyncio.timeout(SECONDS),
            session,
            session.request(method, url, allow_redirects=False, **sent) as response,
        ):
            return response, parsed_json(await read_bounded(response, MOST_BYTES))
    except TimeoutError:
        raise SearchRefused(
            f"The search engine did not answer within {SECONDS} s. {AWAY}",
            f"Look whether {engine.name} at {engine.host} is overloaded.",
        ) from None
    except (aiohttp.ClientError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else ""
        raise SearchRefused(
            f"The search engine cannot be reached. {AWAY}",
            f"{mend} ({reason or type(error).__name__}).",
        ) from None
    except ValueError:
        return response, None


def page_of(found: dict[str, Any]) -> SearchPage:
    """The results in an answer, without unreadable ones; SearchRefused where no engine has answered."""
    results = []
    for each in listed(found.get("results")):
        try:
            result = SearchResult.model_validate(each).plain
        except ValidationError:
            continue
        if result.url.startswith(("http://", "https://")):
            results.append(result)
    silent = [
        one_line(": ".join(map(str, each)) if isinstance(each, list) else str(each))[:100]
        for each in listed(found.get("unresponsive_engines"))
    ]
    given = (
        each.get("answer") if isinstance(each, dict) else each
        for each in listed(found.get("answers"))
    )
    answers = [one_line(each) for each in given if isinstance(each, str)]
    if silent and not results:
        raise SearchRefused(
            f"No engine answered ({'; '.join(silent[:5])}). Try again in a minute, with --category or with other words.",
            "Engines block busy addresses for a while; SearXNG's preferences show which of them answer.",
        )
    return SearchPage(results, [answer for answer in answers if answer], silent)


def listed(value: object) -> list[Any]:
    """The first MOST_ENTRIES of a list, as checking each takes time; none for anything else."""
    return value[:MOST_ENTRIES] if isinstance(value, list) else []


def one_line(text: str) -> str:
    return " ".join(clean(text).split())
