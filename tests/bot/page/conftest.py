"""A page over a state of its own, with the control API of a backend that has a card."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from backend.client import BackendClient
from bot.cli.page import make_change, talk
from bot.cli.status import status_json
from bot.page.server import ServedPage, serve_page
from bot.settings import Settings
from fakes.page_state import backend_with_card, fill_state


@dataclass
class Visitor:
    """A browser's requests without a browser: a cookie jar, and the page's own headers."""

    http: aiohttp.ClientSession
    page: ServedPage
    token: str = ""

    async def get(self, path: str, **headers: str) -> aiohttp.ClientResponse:
        return await self.http.get(f"{self.page.origin}{path}", headers=headers)

    async def json(self, path: str) -> Any:
        answer = await self.get(path)
        assert answer.status == 200, await answer.text()
        return await answer.json()

    async def press(self, change: str, **fields: Any) -> tuple[int, str]:
        """(status, what is told or why not)"""
        headers = {"Origin": self.page.origin, "X-Voltaire-Change": self.token}
        url = f"{self.page.origin}/api/do/{change}"
        async with self.http.post(url, json=fields, headers=headers) as answer:
            if answer.status == 200:
                return 200, str((await answer.json())["told"])
            return answer.status, await answer.text()


def settings_of(folder: Path, **page: Any) -> Settings:
    return Settings(
        state={"dir": folder},
        backend={"socket": str(folder / "b.sock")},
        telegram={"owners": [111]},
        page=page,
    )


@asynccontextmanager
async def served(
    folder: Path, listen: str = "127.0.0.1:0", **page: Any
) -> AsyncIterator[ServedPage]:
    settings = settings_of(folder, **page)
    async with (
        BackendClient(folder / "b.sock") as backend,
        serve_page(
            settings,
            backend,
            status_json,
            partial(make_change, settings),
            partial(talk, settings, backend),
            listen,
        ) as running,
    ):
        yield running


def change_token(answer: aiohttp.ClientResponse) -> str:
    """The token that the page's address was exchanged for."""
    return answer.history[0].headers["Location"].removeprefix("/#change=")


@asynccontextmanager
async def visiting(page: ServedPage) -> AsyncIterator[Visitor]:
    """Somebody who has opened the address."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as http:
        visitor = Visitor(http, page)
        async with http.get(page.address) as answer:
            assert answer.status == 200 and not re.search("key=", str(answer.url))
            visitor.token = change_token(answer)
        yield visitor


@pytest.fixture
async def visitor(tmp_path: Path) -> AsyncIterator[Visitor]:
    await fill_state(tmp_path / "voltaire.db", turns=40)
    async with (
        backend_with_card(tmp_path / "b.sock"),
        served(tmp_path) as page,
        visiting(page) as someone,
    ):
        yield someone
