"""A command's way out: none, or the proxy, to listed public hosts."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from agent.errors import ToolError
from agent.sandbox.hosts import Hosts, is_public
from agent.sandbox.sandbox import CommandResult
from agent.tools.bash import bash
from agent.tools.files import read_file
from agent.trust import Taint
from fakes.patience import limits
from fakes.sandbox_box import Box, opened
from fakes.web_server import Site
from fakes.words import saying


@pytest.fixture
async def box(tmp_path: Path, web: Site) -> AsyncIterator[Box]:
    async with opened(tmp_path, hosts=web.hosts()) as sandboxes:
        yield Box(await sandboxes.of("cli"))


async def test_an_allowed_host_is_reached_and_marks_the_turn(box: Box, web: Site) -> None:
    output = await box.use(bash, command=f"curl -sS http://{web.host}/a?b=c")
    assert (output.text, box.strangers) == ("hello", [web.host])
    assert (web.seen, box.asked) == ([f"{web.host}/a?b=c"], [])


async def test_what_was_loaded_once_marks_later_turns_too(box: Box, web: Site) -> None:
    await box.use(bash, command=f"curl -sS http://{web.host}/a")
    await box.use(bash, command="ls")
    assert box.strangers == []  # nothing of it was kept
    await box.use(bash, command=f"curl -sS http://{web.host}/a -o page")
    await box.use(read_file, path="page")
    assert box.strangers == [web.host]
    await box.use(bash, command="rm -rf /workspace/* /workspace/../strangers.json")
    await box.use(bash, command="ls")
    assert box.strangers == [web.host]


async def test_a_tunnel(box: Box, web: Site) -> None:
    assert await box.text(bash, command=f"curl -sSp http://{web.host}/t") == "hello"
    assert web.seen == [f"{web.host}/t"]


async def test_after_strangers_text_the_owner_is_asked(box: Box, web: Site) -> None:
    box.tainted = True
    command = f"curl -sS http://{web.host}/; curl -sS http://{web.host}/again"
    assert await box.text(bash, command=command) == "hellohello"
    assert [scope for _, scope in box.asked] == [
        f"network:GET http://{web.host}/{path}" for path in ("", "again")
    ]
    box.allows = False
    assert (await box.text(bash, command=command)).splitlines() == [saying("owner said no")] * 2


async def test_asking_does_not_use_up_the_time(box: Box, web: Site) -> None:
    async def approve(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
        await asyncio.sleep(1.5 * seconds)

    box.approve = approve
    for seconds in limits():
        said = await box.text(bash, command=f"curl -sS http://{web.host}/", seconds=seconds)
        if said == "hello":
            break
    assert said == "hello"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("curl -sS http://example.org/", "example.org:80 is not among the hosts"),
        ("curl -sSp http://127.0.0.1:{port}/", "response 403"),
        ("curl -sS http://localhost:1/", "localhost:1 is not among the hosts"),
        ("curl -sS -x '' http://127.0.0.1:{port}/", "Failed to connect"),
        ("curl -sS -x '' http://192.0.2.1/", "connect"),
        ("curl -sS -X BREW ftp://localhost:{port}/", "curl"),
        ("printf 'nonsense\\r\\n\\r\\n' | timeout 60 bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; cat >&3; cat <&3'", "takes CONNECT"),
    ],
)  # fmt: skip
async def test_everything_else_is_not(box: Box, web: Site, command: str, said: str) -> None:
    output = await box.use(bash, command=command.replace("{port}", str(web.port)))
    assert said in output.text
    assert (web.seen, box.strangers) == ([], [])


async def test_an_address_that_is_not_public(tmp_path: Path, web: Site) -> None:
    async with opened(tmp_path, hosts=web.hosts(reachable=False)) as sandboxes:
        box = Box(await sandboxes.of("cli"))
        told = await box.text(bash, command=f"curl -sS http://{web.host}/")
        assert told == saying("localhost", "not public")
    assert web.seen == []


async def test_without_permission_to_ask_there_is_no_network(box: Box, web: Site) -> None:
    ran = await box.sandbox.run(
        f"curl -sS -m 2 http://{web.host}/ 2>/dev/null; env | grep -c proxy"
    )
    assert (ran, web.seen) == (CommandResult(1, "0\n"), [])


async def test_nothing_is_left_open(box: Box, web: Site) -> None:
    command = f"exec 3<>/dev/tcp/127.0.0.1/3128; curl -sS http://{web.host}/; sleep 600"
    for seconds in limits():
        said = await box.text(bash, command=command, seconds=seconds)
        if said.startswith("hello"):
            break
    assert said.startswith("hello")
    tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    assert [t for t in tasks if "serve" in repr(t.get_coro()) and "proxy" in repr(t)] == []


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
        *("0.0.0.0", "224.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "::", "fe80::1%eth0"),
        *("fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2001:db8::1", "64:ff9b::a83f:8110"),
        *("::127.0.0.1", "::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8", "fec0::1", "168.63.129.16"),
        *("::ffff:168.63.129.16", "64:ff9b:1::808:808", "2002:808:808::1", "2001::1", "3fff::1"),
        *("192.0.0.192", "192.88.99.1", "5f00::1", "100::1", "fd00:ec2::254"),
        *(
            "200::1",
            "3ff::1",
            "100:0:0:1::1",
            "4000::1",
            "e000::1",
        ),  # meshes, and what nobody was given
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert is_public(address) is False


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_addresses_that_are(address: str) -> None:
    assert is_public(address) is True


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("docs.python.org", 443, True),
        ("docs.python.org", 80, True),
        ("DOCS.python.org.", 443, True),
        ("docs.python.org", 22, False),
        ("evil-docs.python.org", 443, False),
        ("docs.python.org.evil.org", 443, False),
        ("a.example.org", 443, True),
        ("example.org", 443, False),
        ("evilexample.org", 443, False),
        ("git.lan", 8443, True),
        ("git.lan", 443, False),
    ],
)
def test_the_list_of_hosts(host: str, port: int, allowed: bool) -> None:
    hosts = Hosts(("docs.python.org", "*.example.org", "git.lan:8443"))
    assert hosts.allow(host, port) is allowed


async def test_listening_needs_a_sandbox(box: Box) -> None:
    with pytest.raises((OSError, ToolError)):
        await box.sandbox.config.user.listen(2**22 - 1)
