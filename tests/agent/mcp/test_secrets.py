"""Secrets that a server's program never sees: its proxy ends TLS for the hosts they are bound to."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent.mcp.config import SecretBinding
from agent.mcp.tls_termination import CertificateAuthority, EchoScrubber
from fakes.sandbox_box import Box
from fakes.tool_servers import FakeServers, mcp
from fakes.web_server import Site, site
from fakes.words import saying

SECRET = "qX7-secret-of-the-api-41"
BEARER = {"Authorization": "Bearer $API_TOKEN"}


@dataclass
class Api:
    """Two HTTPS hosts on loopback, which the bot trusts; the secret is bound to the first."""

    servers: FakeServers
    bound: Site
    other: Site
    file: Path

    async def open(self, *network: str, header: str = "authorization", **section: Any) -> Box:
        secret = SecretBinding("API_TOKEN", str(self.file), self.bound.host, header)
        entries = network or (f"* {self.bound.host}", f"* {self.other.host}", self.other.host)
        given: dict[str, Any] = {"secrets": [secret], "allow": ["fetch", "run"]} | section
        box = await self.servers.open(network=entries, **given)
        assert box.servers
        box.servers.reachable = lambda address: True
        return box


async def fetch(box: Box, url: str, **given: Any) -> str:
    return await mcp(box, f"tea fetch - <<< '{json.dumps({'url': url, **given})}'")


@pytest.fixture
async def api(
    servers: FakeServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Api]:
    authority = CertificateAuthority()
    (tmp_path / "authority.pem").write_bytes(authority.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    (tmp_path / "token").write_text(f"{SECRET}\n")
    tls = authority.context("localhost")
    async with site(tls) as bound, site(tls) as other:
        yield Api(servers, bound, other, tmp_path / "token")


def sent(site: Site) -> str:
    return b"".join(map(bytes, site.sent)).decode()


async def test_the_host_gets_the_secret_and_the_program_a_placeholder(api: Api) -> None:
    box = await api.open()
    answer = await fetch(box, f"https://{api.bound.host}/v1?q=a%2Fb", headers=BEARER)
    assert answer.startswith("200 ") and answer.endswith("hello")
    assert api.bound.seen == [f"{api.bound.host}/v1?q=a%2Fb"]
    assert f"Authorization: Bearer {SECRET}\n" in sent(api.bound)
    code = f'[os.environ["API_TOKEN"][:12], "{SECRET[:6]}" "{SECRET[6:12]}" in str(os.environ)]'
    assert await mcp(box, f"tea run code='{code}'") == "['placeholder-', False]"
    files = '[str(p) for d in ("/tmp", "/workspace", "/etc") for p in Path(d).rglob("*") if p.is_file()]'
    seen = await mcp(box, f"tea run code='{files}'")
    assert "/tmp/voltaire-ca.pem" in seen
    holds = f'[p for p in {files} if b"{SECRET[:6]}" b"{SECRET[6:12]}" in Path(p).read_bytes()]'
    assert await mcp(box, f"tea run code='{holds}'") == "[]"


async def test_a_body_and_a_basic_authorization_go_through(api: Api) -> None:
    box = await api.open()
    await mcp(
        box,
        'tea run code=\'__import__("urllib.request").request.urlopen('
        '__import__("urllib.request").request.Request('
        f'"https://{api.bound.host}/v1", b"x" * 300000, '
        '{"Authorization": "Basic " + __import__("base64").b64encode('
        '("ada:" + os.environ["API_TOKEN"]).encode()).decode()})).status\'',
    )
    coded = b64encode(f"ada:{SECRET}".encode()).decode()
    assert f"Authorization: Basic {coded}\n" in sent(api.bound)
    assert sent(api.bound).endswith("x" * 300000)


ELSEWHERE = {
    "another header": ("https://{bound}/a", {"X-Key": "$API_TOKEN"}),
    "the query": ("https://{bound}/a?k=$API_TOKEN", {}),
    "another host": ("https://{other}/a", BEARER),
}


@pytest.mark.parametrize(("url", "headers"), ELSEWHERE.values(), ids=ELSEWHERE.keys())
async def test_the_secret_goes_nowhere_else(api: Api, url: str, headers: dict[str, str]) -> None:
    box = await api.open()
    address = url.format(bound=api.bound.host, other=api.other.host)
    answer = await fetch(box, address, headers=headers)
    assert SECRET not in sent(api.bound) + sent(api.other)
    if headers.get("X-Key"):
        told = f"The placeholder of API_TOKEN may stand in the header authorization of requests to {api.bound.host} alone."
        assert answer.startswith(f"tea was refused: {told}") or told in answer
        assert api.bound.seen == []


async def test_another_host_whose_tls_is_ended_gets_no_secret(api: Api) -> None:
    box = await api.open(f"* {api.bound.host}", f"{api.other.host}/")
    answer = await fetch(box, f"https://{api.other.host}/a", headers=BEARER)
    assert answer == saying("API_TOKEN", "header authorization")
    assert api.other.seen == []


async def test_by_plain_http_the_placeholder_does_not_leave(api: Api) -> None:
    async with site() as plain:
        box = await api.open(f"* {api.bound.host}", f"* {plain.host}")
        answer = await fetch(box, f"http://{plain.host}/a", headers=BEARER)
        assert answer == saying("holds the secret", "API_TOKEN")
        assert "Bearer" not in sent(plain)
        assert (await fetch(box, f"http://{plain.host}/b")).endswith("hello")


async def test_a_redirect_takes_no_secret_along(api: Api) -> None:
    away = {"Location": f"https://{api.other.host}/away"}
    api.bound.pages["/a"] = lambda: web.Response(status=302, headers=away)
    near = {"Location": "/b"}
    api.bound.pages["/near"] = lambda: web.Response(status=302, headers=near)
    box = await api.open()
    assert "hello" in await fetch(box, f"https://{api.bound.host}/a", headers=BEARER)
    assert api.other.seen == [f"{api.other.host}/away"]
    assert "Authorization: Bearer placeholder-" in sent(api.other)
    assert SECRET in sent(api.bound) and SECRET not in sent(api.other)
    assert "hello" in await fetch(box, f"https://{api.bound.host}/near", headers=BEARER)
    assert sent(api.bound).count(SECRET) == 3


async def test_what_a_host_repeats_is_the_placeholder_again(api: Api) -> None:
    coded = b64encode(f"key={SECRET}".encode()).decode()
    headers = {"X-Echo": f"you sent {SECRET}", "Set-Cookie": f"k={SECRET}"}
    text = f"Bearer {SECRET}! {coded} {SECRET.encode().hex()} end"
    api.bound.pages["/echo"] = lambda: web.Response(text=text, headers=headers)
    box = await api.open()
    answer = await fetch(box, f"https://{api.bound.host}/echo", headers=BEARER)
    assert answer.startswith("200 ") and answer.endswith(" end")
    assert answer.count("placeholder-") == 5
    for form in (SECRET, SECRET.encode().hex(), b64encode(SECRET.encode()).decode()[:20]):
        assert form not in answer


async def test_an_answer_that_cannot_be_looked_through_is_not_given(api: Api) -> None:
    api.bound.pages["/zip"] = lambda: web.Response(body=b"?", headers={"Content-Encoding": "gzip"})
    box = await api.open()
    answer = await fetch(box, f"https://{api.bound.host}/zip")
    assert answer.startswith("502 ") and answer == saying("localhost", "cannot be looked through")


async def test_with_tls_ended_grants_are_by_method_and_path(api: Api) -> None:
    host = api.bound.host
    box = await api.open(f"{host}/v1/", f"POST {host}/v1/items", secrets=())
    assert (await fetch(box, f"https://{host}/v1/a")).startswith("200")
    assert (await fetch(box, f"https://{host}/v1/items", method="POST")).startswith("200")
    assert (await fetch(box, f"https://{host}/v1/a", method="HEAD")).startswith("200")
    for method, path in (("GET", "/v2"), ("POST", "/v1/a"), ("GET", "/v1/%2e%2e/v2")):
        answer = await fetch(box, f"https://{host}{path}", method=method)
        assert answer == saying(f"{method} https://{host}{path} ", "not in the network")
        assert "tea was refused: " in answer
    assert api.bound.seen == [f"{host}/v1/a", f"{host}/v1/items", f"{host}/v1/a"]


async def test_a_host_that_is_not_who_it_says_gets_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    box = await api.open()
    answer = await fetch(box, f"https://{api.bound.host}/a", headers=BEARER)
    assert answer.startswith("502 localhost ") and "ClientConnectorCertificateError" in answer
    assert api.bound.seen == []


async def test_a_private_address_gets_nothing(api: Api) -> None:
    box = await api.open()
    assert box.servers
    box.servers.reachable = lambda address: False
    answer = await fetch(box, f"https://{api.bound.host}/a", headers=BEARER)
    assert "not public" in answer and api.bound.seen == []


async def test_a_secret_that_cannot_be_read_is_told(api: Api) -> None:
    api.file.write_text("two words")
    assert await mcp(await api.open(), "tea") == saying("API_TOKEN of tea", "one word")
    api.file.unlink()
    assert await mcp(await api.open(), "tea") == saying("API_TOKEN of tea", "cannot be read")


async def test_an_owner_reads_how_secrets_are_kept(api: Api) -> None:
    box = await api.open(env_file="/dev/null")
    assert box.servers
    (line,) = await box.servers.report()
    assert line == saying("gets the values", "env_file")
    assert line == saying("never sees API_TOKEN", f"only to {api.bound.host}")


def test_an_echo_is_found_however_it_is_cut() -> None:
    text, echo = b"a secretive secret secre", {b"secret": b"*", b"ret s": b"+"}
    for first in range(len(text)):
        for second in range(first, len(text)):
            scrubber = EchoScrubber(echo)
            pieces = (text[:first], text[first:second], text[second:])
            found = b"".join(map(scrubber.feed, pieces)) + scrubber.feed(b"", last=True)
            assert found == b"a *ive * secre"
