"""Nobody but this machine may ask, and no web page may ask for it."""

import aiohttp
import pytest

from fakes.localgram import Localgram, Person
from fakes.words import saying

from .conftest import TOKEN, Raw, png


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "127.0.0.1@evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/events", f"/bot{TOKEN}/getMe"])
async def test_others_are_refused(
    raw: Raw, alice: Person, path: str, headers: dict[str, str]
) -> None:
    async with raw.http.get(raw.url + path, headers=headers) as response:
        assert response.status == 403
        assert (await response.json())["description"] == saying("only this machine")


async def test_loopback_by_either_name_is_served(raw: Raw, gram: Localgram, alice: Person) -> None:
    for name in ("127.0.0.1", "localhost"):
        origin = f"http://{name}:{gram.port}"
        headers = {"Host": f"{name}:{gram.port}", "Origin": origin, "Sec-Fetch-Site": "same-origin"}
        async with raw.http.get(raw.url + "/", headers=headers) as response:
            assert response.status == 200


async def test_the_page_with_a_key_is_closed_to_other_users(http: aiohttp.ClientSession) -> None:
    async def status(url: str) -> int:
        async with http.get(url, allow_redirects=False) as response:
            return response.status

    async with Localgram(TOKEN, key="k3y") as gram:
        alice = gram.user("Alice", id=5, started=True)
        ways = ["/", "/?key=other", "/?key=", "/api/events?key=k3y", "/api/events"]
        assert {await status(gram.url + way) for way in ways} == {403}
        send = {"text": "x"}
        async with http.post(f"{gram.url}/api/send", json=send) as refused:
            assert refused.status == 403
        assert alice.messages() == []
        jar = aiohttp.CookieJar(unsafe=True)  # of a host that is an address
        async with aiohttp.ClientSession(cookie_jar=jar) as browser:
            async with browser.get(gram.page) as entered:
                assert (entered.status, str(entered.url)) == (200, f"{gram.url}/")
            async with browser.post(f"{gram.url}/api/send", json=send) as sent:
                assert sent.status == 200
        assert [message.text for message in alice.messages()] == ["x"]
        async with http.post(f"{gram.url}/bot{TOKEN}/getMe") as answered:
            assert answered.status == 200


async def test_the_page_may_load_nothing_from_elsewhere(raw: Raw, alice: Person) -> None:
    async with raw.http.get(raw.url + "/") as response:
        policy = response.headers["Content-Security-Policy"]
        text = await response.text()
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "http://" not in text
    assert "https://" not in text


async def test_forms_of_other_sites_are_no_json(raw: Raw, alice: Person) -> None:
    url = f"{raw.url}/api/send"
    async with raw.http.post(url, data={"text": "x"}) as response:
        assert response.status == 415
    assert alice.messages() == []


async def test_files_that_could_be_pages_are_only_downloads(raw: Raw, alice: Person) -> None:
    page = await alice.send_file("document", b"<script>alert(1)</script>", "x.html")
    photo = await alice.send_file("photo", png())

    async def head(unique: str) -> tuple[str, str, str]:
        async with raw.http.get(f"{raw.url}/api/files/{unique}") as response:
            policy = response.headers["Content-Security-Policy"]
            return response.content_type, response.headers["Content-Disposition"], policy

    assert page.media is not None
    assert photo.media is not None
    sandbox = "sandbox; default-src 'none'"
    download = ("application/octet-stream", 'attachment; filename="x.html"', sandbox)
    assert await head(page.media.file.unique) == download
    inline = ("image/jpeg", 'inline; filename="photo.jpg"', sandbox)
    assert await head(photo.media.file.unique) == inline


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/static/../page.py", 404),
        ("/static/none.js", 404),
        ("/api/files/none", 404),
    ],
)
async def test_what_is_not_there(raw: Raw, alice: Person, path: str, status: int) -> None:
    async with raw.http.get(raw.url + path) as response:
        assert response.status == status
