"""What is asked before a request goes out: as narrow as it can be seen, for the owner's list and beyond it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.sandbox.hosts import HostRequest, Hosts, ListedHost
from agent.tools.bash import bash
from fakes.sandbox_box import Box, opened
from fakes.web_server import Site


@pytest.fixture
async def box(tmp_path: Path, web: Site) -> AsyncIterator[Box]:
    """Its list has the site for reading, and for POST below /v1/."""
    hosts = Hosts((web.host, f"POST {web.host}/v1/"), lambda address: True)
    async with opened(tmp_path, hosts=hosts) as sandboxes:
        yield Box(await sandboxes.of("cli"))


def scopes(box: Box) -> list[str]:
    return [scope for _, scope in box.asked]


UNASKED = ["curl -s {url}/a?b=c", "curl -sI {url}/a", "curl -s -d x {url}/v1/items", "curl -sp {url}/t"]  # fmt: skip


@pytest.mark.parametrize("command", UNASKED, ids=["get", "head", "listed", "tunnel"])
async def test_what_the_list_has_is_not_asked(box: Box, web: Site, command: str) -> None:
    await box.use(bash, command=command.format(url=f"http://{web.host}"))
    assert (len(web.seen), box.asked) == (1, [])


ASKED = {
    "post": ("curl -s -d x {url}/a?b=c", "POST {url}/a"),
    "method": ("curl -s -X DELETE {url}/v1/a", "DELETE {url}/v1/a"),
    "lower case": ("curl -s -X get {url}/a", "get {url}/a"),
    "beside the path": ("curl -s -d x {url}/v10", "POST {url}/v10"),
    "out of the path": ("curl -s --path-as-is -d x {url}/v1/../a", "POST {url}/v1/../a"),
    "out, encoded": ("curl -s --path-as-is -d x {url}/v1/%2e%2E/a", "POST {url}/v1/%2e%2E/a"),
    "in a tunnel": ("curl -sp -d x {url}/a", "POST {url}/a"),
}


@pytest.mark.parametrize(("command", "wish"), ASKED.values(), ids=ASKED.keys())
async def test_what_it_does_not_have_asks(box: Box, web: Site, command: str, wish: str) -> None:
    box.allows = False
    url = f"http://{web.host}"
    await box.use(bash, command=command.format(url=url))
    assert scopes(box) == [f"request:{wish.format(url=url)} by /usr/bin/curl"]
    assert web.seen == []


async def test_the_question_shows_what_is_known(box: Box, web: Site) -> None:
    url = f"http://{web.host}/a?b=c"
    assert await box.text(bash, command=f"curl -s -d x {url}") == "hello"
    [(what, _)] = box.asked
    first, second, *_ = what.splitlines()
    assert (first, second) == (f"POST {url}", "by /usr/bin/curl, for:")
    assert f"curl -s -d x {url}" in what


async def test_allowed_once_is_for_that_request_of_that_command(box: Box, web: Site) -> None:
    url = f"http://{web.host}"
    send = "curl -s -d x"
    await box.use(bash, command=f"{send} {url}/a; {send} {url}/a; {send} {url}/a?secret; {send} {url}/b")  # fmt: skip
    assert [what.splitlines()[0] for what, _ in box.asked] == [
        f"POST {url}/{path}" for path in ("a", "a?secret", "b")
    ]
    await box.use(bash, command=f"{send} {url}/a")
    assert len(box.asked) == 4


async def test_at_the_same_time_the_same_is_asked_once(box: Box, web: Site) -> None:
    command = f"for i in 1 2 3; do curl -s -d x http://{web.host}/a & done; wait"
    assert await box.text(bash, command=command) == "hello" * 3
    assert len(box.asked) == 1


async def test_a_touched_chat_is_asked_about_reading_as_narrowly(box: Box, web: Site) -> None:
    box.tainted = True
    url = f"http://{web.host}"
    await box.use(bash, command=f"curl -s {url}/a; curl -s {url}/?secret; curl -sk https://{web.host}")  # fmt: skip
    assert scopes(box) == [f"network:GET {url}/a", f"network:GET {url}/", f"network:{web.host}"]
    assert web.seen == [f"{web.host}/a", f"{web.host}/?secret"]


async def test_the_program_that_asks(box: Box, web: Site) -> None:
    script = f"import urllib.request as u; u.urlopen('http://{web.host}/a', b'x')"
    own = "cp /usr/bin/curl 'my curl'; ./my*curl -s -d x"
    await box.use(bash, command=f'python3 -c "{script}"; {own} http://{web.host}/b')
    [python, copy] = scopes(box)
    assert python.partition(" by ")[2].startswith("/usr/bin/python3")
    assert copy.endswith(" by ?")  # a name with a space could be read as something else


LIST = ("docs.lan", "GET wiki.lan/open/", "* all.lan", "CONNECT tls.lan", "PUT put.lan:81/x")


@pytest.mark.parametrize(
    ("method", "host", "target", "listed"),
    [
        ("GET", "docs.lan", "/a?b", True),
        ("HEAD", "Docs.lan.", "/", True),
        ("CONNECT", "docs.lan", "", True),
        ("POST", "docs.lan", "/a", False),
        ("OPTIONS", "docs.lan", "/a", False),
        ("HEAD", "wiki.lan", "/open/a", True),
        ("GET", "wiki.lan", "/open", False),
        ("GET", "wiki.lan", "/?/open/", False),
        ("GET", "wiki.lan", "/open/%252e%252e/a", False),
        ("GET", "wiki.lan", "/open/..;/a", False),
        ("CONNECT", "wiki.lan", "", False),
        ("DELETE", "all.lan", "/a", True),
        ("CONNECT", "all.lan", "", True),
        ("CONNECT", "tls.lan", "", True),
        ("GET", "tls.lan", "/", False),
        ("PUT", "put.lan", "/x/y", False),
    ],
)
def test_what_an_entry_covers(method: str, host: str, target: str, listed: bool) -> None:
    assert Hosts(LIST).marked(HostRequest(method, host, 80, target)).listed is listed
    assert Hosts(LIST).allow(host, 80) is (host != "put.lan")


@pytest.mark.parametrize("target", ["/x", "/x/y"])
def test_a_port_and_a_path(target: str) -> None:
    assert Hosts(LIST).marked(HostRequest("PUT", "put.lan", 81, target)).listed
    assert not Hosts(LIST).marked(HostRequest("PUT", "put.lan", 81, f"{target}y/../../z")).listed


@pytest.mark.parametrize("entry", ["https://a.org", "a.org:x", "get a.org", "POST a b", "u@a", ""])
def test_entries_that_are_none(entry: str) -> None:
    with pytest.raises(ValueError, match="is no host"):
        ListedHost.parse(entry)


async def test_a_question_holds_up_no_more_than_its_command(box: Box, web: Site) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def permit(request: HostRequest) -> None:
        asked.set()
        await answered.wait()

    url = f"http://{web.host}/"
    waiting = asyncio.create_task(box.sandbox.run(f"curl -s {url}", permit=permit))
    await asked.wait()
    assert await box.text(bash, command=f"curl -s {url}") == "hello"
    answered.set()
    assert (await waiting).output == "hello"
