"""Who gets anything from the owner's page: whoever has the key, from the page itself, under its name."""

import asyncio
import json
import os
from pathlib import Path

import aiohttp
import pytest

from bot.page.access import KEY, PageRefused, load_key
from bot.page.server import static_file
from fakes.page_state import fill_state
from fakes.patience import SECONDS, soon

from .conftest import Visitor, served, visiting

READ = [
    "/api/session",
    "/api/now",
    "/api/drawings",
    "/api/turns",
    "/api/turns/t00001",
    "/api/turns/t00001/prompt",
    "/api/chats",
    "/api/chat?chat=cli",
    "/api/changes?chat=cli",
    "/api/messages?conversation=1",
    "/api/export?chat=cli",
    "/api/jobs",
    "/api/deliveries",
    "/api/people",
    "/api/settings",
    "/api/logs",
    "/api/live",
]


@pytest.mark.parametrize("path", READ)
async def test_without_a_session_nothing_is_told(visitor: Visitor, path: str) -> None:
    async with aiohttp.ClientSession() as stranger:
        for headers in ({}, {"Cookie": "voltaire-page-0=x"}):
            async with stranger.get(f"{visitor.page.origin}{path}", headers=headers) as answer:
                assert answer.status == 403
                assert "voltaire page" in await answer.text()


async def test_every_view_answers_its_session(visitor: Visitor) -> None:
    for path in READ[:-1]:
        answer = await visitor.get(path)
        assert answer.status == 200, path
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8766"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=lambda headers: " ".join(headers.values()),
)
async def test_other_names_and_sites_get_nothing(visitor: Visitor, headers: dict[str, str]) -> None:
    for path in ("/api/now", "/static/main.js"):
        assert (await visitor.get(path, **headers)).status == 403


async def test_a_change_needs_the_sessions_own_word(visitor: Visitor) -> None:
    url, origin = f"{visitor.page.origin}/api/do/freeze", visitor.page.origin
    good = {"Origin": origin, "X-Voltaire-Change": visitor.token}
    refused = [
        {**good, "X-Voltaire-Change": ""},
        {**good, "X-Voltaire-Change": "stale" * 9},
        {**good, "Origin": "https://evil.example"},
        {"X-Voltaire-Change": visitor.token},
        {**good, "Content-Type": "text/plain"},
    ]
    for headers in refused:
        async with visitor.http.post(url, data=b"{}", headers=headers) as answer:
            assert answer.status == 403, headers
    assert (await visitor.json("/api/now"))["frozen"] is None
    assert (await visitor.press("freeze"))[0] == 200
    assert (await visitor.json("/api/now"))["frozen"] is not None


async def test_the_cookie_alone_yields_no_change_token(visitor: Visitor) -> None:
    """A server at another port of the host is sent the cookie, too."""
    for path in [*READ[:-1], "/", "/static/main.js", "/?key=", "/?change="]:
        answer = await visitor.get(path)
        told = f"{await answer.text()} {answer.headers} {answer.url}"
        assert len(visitor.token) > 20 and visitor.token not in told, path
    cookies = {c.key: c.value for c in visitor.http.cookie_jar}
    async with aiohttp.ClientSession(cookies=cookies) as http:
        thief = Visitor(http, visitor.page)
        assert (await thief.press("freeze"))[0] == 403
    assert (await visitor.press("freeze"))[0] == 200


async def test_a_session_ends_with_the_page(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    async with served(tmp_path) as page, visiting(page) as old:
        port = page.origin.rpartition(":")[2]
        cookies = {c.key: c.value for c in old.http.cookie_jar}
    async with (
        served(tmp_path, f"127.0.0.1:{port}") as again,
        aiohttp.ClientSession(cookies=cookies) as http,
        http.get(f"{again.origin}/api/now") as answer,
    ):
        assert answer.status == 403


async def test_a_ticket_opens_once(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    async with served(tmp_path) as page, aiohttp.ClientSession() as http:
        address = page.once
        assert page.access.key not in address
        async with http.get(address, allow_redirects=False) as first:
            assert first.status == 303
            cookie = first.headers["Set-Cookie"]
            assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        async with http.get(address, allow_redirects=False) as second:
            assert second.status == 403
        async with http.get(f"{page.origin}/?key=wrong", allow_redirects=False) as wrong:
            assert wrong.status == 403


def test_the_key_is_its_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / KEY
    key = load_key(path, create=True)
    assert path.stat().st_mode & 0o777 == 0o600 and len(key) >= 40
    assert load_key(path, create=True) == key
    for mode in (0o640, 0o604, 0o660):
        path.chmod(mode)
        with pytest.raises(PageRefused, match="can be read by others"):
            load_key(path, create=True)
    path.chmod(0o600)
    path.write_text("short")
    with pytest.raises(PageRefused, match="at least 24"):
        load_key(path, create=True)
    if os.geteuid() == 0:
        path.write_text("x" * 40)
        os.chown(path, 12345, -1)
        with pytest.raises(PageRefused, match="can be read by others"):
            load_key(path, create=True)


async def test_beyond_this_machine_a_key_file_says_that_it_is_meant(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    with pytest.raises(PageRefused, match="nothing is encrypted"):
        async with served(tmp_path, "0.0.0.0:0"):
            pass
    key = tmp_path / "page.key"
    key.write_text("k" * 40)
    key.chmod(0o600)
    async with served(tmp_path, "0.0.0.0:0", key_file=key) as page:
        assert "nothing is encrypted" in page.exposed
    for wrong in ("8766", "127.0.0.1", "127.0.0.1:x", ":8766", "127.0.0.1:99999"):
        with pytest.raises(PageRefused, match="must look like"):
            async with served(tmp_path, wrong):
                pass


@pytest.mark.parametrize(
    "path", ["/static/../server.py", "/static/%2e%2e%2fserver.py", "/static/server.py", "/static/"]
)
async def test_only_the_pages_files_are_served(visitor: Visitor, path: str) -> None:
    assert (await visitor.get(path)).status == 404


def test_the_page_is_small() -> None:
    folder = Path("bot/page/static")
    assert sum(file.stat().st_size for file in folder.iterdir()) < 100_000
    for file in folder.iterdir():
        assert static_file(file.name).status == 200
        text = file.read_text("utf-8")
        assert "http://" not in text.replace("http://www.w3.org/", "") and "https://" not in text
        assert "innerHTML" not in text and "style=" not in text


async def test_nothing_looks_while_nobody_does(visitor: Visitor) -> None:
    live = visitor.page.live
    assert not live.looking
    answers = [await visitor.get("/api/live") for _ in range(2)]
    for answer in answers:
        assert (await answer.content.readline()).startswith(b"retry")
    assert live.looking
    answers[0].close()
    async with asyncio.timeout(SECONDS):
        while (await answers[1].content.readline()) != b"event: now\n":
            pass
    assert live.looking
    answers[1].close()
    await soon(lambda: not live.looking)


async def test_what_has_not_changed_is_not_told_again(visitor: Visitor) -> None:
    live = visitor.page.live
    async with live.listening() as events:
        told = {"running": [], "at": 100.5}
        await live.publish(told)
        await live.publish({**told, "at": 102.5})
        await live.publish({**told, "at": 104.5, "uncertain": 1})
        await live.publish({**told, "at": 112.5, "uncertain": 1})
        sent = [json.loads(events.get_nowait().partition("data: ")[2])["at"] for _ in range(3)]
        assert sent == [100.5, 104.5, 112.5] and events.empty()


async def test_a_prompt_is_rendered_by_the_server(visitor: Visitor, tmp_path: Path) -> None:
    found = await visitor.json("/api/turns/t00039/rendered")
    assert found["why"] == "" and found["text"].count("<|im_start|>system\n") == 1
    last = found["text"].rpartition("<|im_start|>")[2]
    asked = await visitor.json("/api/turns/t00039")
    assert last.startswith("user\n") and asked["turn"]["asked"] in last
    assert '"name": "bash"' in found["text"]
    assert (await visitor.get("/api/turns/none/rendered")).status == 404


async def test_without_a_server_it_is_told_why(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    async with served(tmp_path) as page, visiting(page) as visitor:
        found = await visitor.json("/api/turns/t00000/rendered")
        assert found["text"] == "" and found["why"]
