"""An owner signs in to the server of an address: a real one of the SDK, with its authorization server."""

import asyncio
import json
import logging
import socket
import stat
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from agent.channels import NoChannels
from agent.errors import ToolError
from agent.mcp import oauth
from agent.mcp.oauth import SignIn
from agent.mcp.servers import ToolServers
from fakes.mcp_oauth import Accounts, SignInServer, sign_in_server
from fakes.sandbox_box import Box
from fakes.tool_servers import FakeServers, mcp
from fakes.words import saying


@pytest.fixture
async def server() -> AsyncIterator[SignInServer]:
    async with sign_in_server() as served:
        yield served


LINK_SENT = saying("tea wants", "sign in first", "nothing was done", "sent the link")


async def opened(
    servers: FakeServers, server: SignInServer, chat: str = "cli"
) -> tuple[Box, ToolServers]:
    box = await servers.open(chat=chat, command=(), url=server.url)
    assert box.servers
    return box, box.servers


async def signed_in(tools: ToolServers, server: SignInServer) -> None:
    async def show(sign_in: SignIn) -> None:
        assert "You can close this page" in await server.browse(sign_in.link)

    assert await tools.sign_in("tea", show)


@dataclass
class Owner(NoChannels):
    """Somebody who is asked to sign in."""

    ask: Callable[[str], object]

    def ask_to_sign_in(self, servers: ToolServers, name: str) -> bool:
        self.ask(name)
        return True


async def test_an_owner_signs_in_and_the_token_is_refreshed(
    servers: FakeServers, server: SignInServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    box, tools = await opened(servers, server)
    asked: list[str] = []
    assert await mcp(box, "tea") == saying("sign in", "voltaire mcp test tea")
    tools.channels = Owner(asked.append)
    told = await mcp(box, "tea")
    assert told == LINK_SENT and "for more" not in told
    assert asked == ["tea"]
    await signed_in(tools, server)
    kept = tools.tokens_file("tea")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    said = await mcp(box, "tea brew leaf=green")
    first = json.loads(kept.read_text())["tokens"]
    assert said.startswith("green with Bearer [a secret") and first["access_token"] not in said

    # Taken back before its time, and, by a program that was started anew, expired: refreshed, and nobody is asked.
    server.accounts.access.clear()
    assert (await mcp(box, "tea brew leaf=black")).startswith("black with Bearer [a secret")
    second = json.loads(kept.read_text())
    assert second["tokens"]["refresh_token"] != first["refresh_token"]
    kept.write_text(json.dumps({**second, "expires_at": 1.0}))
    again, _ = await opened(servers, server, "other")
    assert (await mcp(again, "tea brew leaf=white")).startswith("white with Bearer [a secret")
    assert server.accounts.refreshed == 2 and len(asked) == 1
    # The first program reads what the second has got.
    assert (await mcp(box, "tea brew leaf=old")).startswith("old with Bearer [a secret")
    assert server.accounts.refreshed == 2

    last = json.loads(kept.read_text())["tokens"]
    tokens = [
        value
        for each in (first, second["tokens"], last)
        for value in (each["access_token"], each["refresh_token"])
    ]
    assert not [each for each in tokens if each in caplog.text]
    server.accounts.access.clear()
    server.accounts.refresh.clear()
    assert await mcp(box, "tea brew leaf=gone") == LINK_SENT


async def test_a_server_may_ask_who_it_is_after_the_greeting(
    servers: FakeServers, server: SignInServer
) -> None:
    server.greets = True
    box, tools = await opened(servers, server)
    assert await mcp(box, "tea") == saying("sign in", "voltaire mcp test tea")
    await signed_in(tools, server)
    assert (await mcp(box, "tea brew leaf=green")).startswith("green with Bearer")


async def test_what_an_owner_pastes_of_a_phone(servers: FakeServers, server: SignInServer) -> None:
    _, tools = await opened(servers, server)
    links: asyncio.Queue[SignIn] = asyncio.Queue()
    signing = asyncio.create_task(tools.sign_in("tea", links.put))
    shown = await links.get()
    assert shown.host == server.url.split("/")[2]
    assert not await tools.sign_in("tea", links.put)  # the same link again
    assert await links.get() is shown
    address = await server.browse(shown.link, follow=False)
    wrong = {
        "": "neither the address",
        "what is it?": "neither the address",
        "https://example.org/": "neither the address",
        address.replace("state=", "state=x"): "another sign-in",
        address.partition("&state")[0]: "another sign-in",
    }
    for text, told in wrong.items():
        with pytest.raises(ToolError, match=told):
            tools.take_answer("tea", text)
    tools.take_answer("tea", f"  {address}\n")
    with pytest.raises(ToolError, match="has its answer already"):
        tools.take_answer("tea", address)
    assert await signing
    with pytest.raises(ToolError, match="Nobody is signing in to tea"):
        tools.take_answer("tea", address)
    # And the code alone, of a second sign-in.
    signing = asyncio.create_task(tools.sign_in("tea", links.put))
    address = await server.browse((await links.get()).link, follow=False)
    tools.take_answer("tea", address.partition("code=")[2].partition("&")[0])
    assert await signing


async def test_another_program_cannot_answer_for_the_owner(
    servers: FakeServers, server: SignInServer
) -> None:
    """The loopback port is open to all of this machine: a code without the state is not taken there."""
    _, tools = await opened(servers, server)
    links: asyncio.Queue[SignIn] = asyncio.Queue()
    signing = asyncio.create_task(tools.sign_in("tea", links.put))
    shown = await links.get()
    address = await server.browse(shown.link, follow=False)
    place = address.partition("?")[0]
    for query in ("?code=evil", "?code=evil&state=guess", "", "?error=access_denied"):
        async with aiohttp.ClientSession() as other, other.get(place + query) as answer:
            assert answer.status == 400
    assert not signing.done()
    assert "close this page" in await server.browse(shown.link)
    assert await signing


REFUSED = "The sign-in to tea was refused: access_denied"


async def test_a_sign_in_that_fails_is_one_sentence(
    servers: FakeServers, server: SignInServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, tools = await opened(servers, server)

    async def browse(sign_in: SignIn) -> None:
        await server.browse(sign_in.link)

    async def nothing(sign_in: SignIn) -> None:
        pass

    async def invents(sign_in: SignIn) -> None:
        sign_in.give("invented")

    server.accounts.refuses = True
    with pytest.raises(ToolError, match=REFUSED):
        await tools.sign_in("tea", browse)
    server.accounts.refuses = False
    with pytest.raises(ToolError, match=r"^The sign-in to tea failed: .*invalid_grant"):
        await tools.sign_in("tea", invents)
    monkeypatch.setattr(oauth, "SIGN_IN_SECONDS", 0.2)
    with pytest.raises(ToolError, match="Nobody signed in to tea within an hour"):
        await tools.sign_in("tea", nothing)
    monkeypatch.undo()
    server.hidden = ("/.well-known", "/register")
    with pytest.raises(ToolError, match=r"no new programs are taken \(Registration failed: 404"):
        await tools.sign_in("tea", browse)
    assert not tools.tokens_file("tea").exists() and tools.signing_in == {}
    assert await mcp(box, "tea") == saying("tea wants", "sign in")


async def test_an_owner_signs_in_for_more_once(servers: FakeServers, server: SignInServer) -> None:
    """A server answers a call with 403 and insufficient_scope; calls that need less go on."""
    box, tools = await opened(servers, server)
    await signed_in(tools, server)
    server.scope = "tea:strong"
    assert "brew leaf" in await mcp(box, "tea")
    told = await mcp(box, "tea brew leaf=green")
    assert told == saying("for more", "tea:strong", "voltaire mcp test tea\n")
    asked: list[str] = []
    tools.channels = Owner(asked.append)
    for _ in range(2):
        told = await mcp(box, "tea brew leaf=green")
        assert told == LINK_SENT and told == saying("for more", "tea:strong")
    assert asked == ["tea"]
    assert "brew leaf" in await mcp(box, "tea")
    # Another program knows of it, too.
    other, _ = await opened(servers, server, "other")
    assert other.servers and await other.servers.lacking("tea") == "tea:strong"
    links: list[str] = []

    async def show(sign_in: SignIn) -> None:
        links.append(sign_in.link)
        await server.browse(sign_in.link)

    assert await tools.sign_in("tea", show)
    assert "scope=tea%3Astrong" in links[0] and await tools.lacking("tea") == ""
    assert (await mcp(box, "tea brew leaf=green")).startswith("green with Bearer [a secret")
    # It is refreshed with what it allows; what comes on top is asked for beside it.
    server.accounts.access.clear()
    assert (await mcp(box, "tea brew leaf=black")).startswith("black with Bearer")
    server.scope = "tea:hot"
    assert "for more (tea:hot)" in await mcp(box, "tea brew leaf=green")
    # An owner who gives less is not asked again.
    server.accounts.withholds = True
    assert await tools.sign_in("tea", show)
    assert "scope=tea%3Astrong+tea%3Ahot" in links[1]
    told = (
        "tea does not allow this: its owner was asked for all that it wants, and did not give it."
    )
    for _ in range(2):
        assert told in await mcp(box, "tea brew leaf=green")
    assert asked == ["tea", "tea"]
    assert "brew leaf" in await mcp(box, "tea")


async def test_a_client_that_was_registered_beforehand(
    servers: FakeServers, server: SignInServer, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server.register("voltaire-1", "s3cret-of-it", f"http://127.0.0.1:{port}/callback")
        (tmp_path / "secret").write_text("s3cret-of-it\n")
        box = await servers.open(
            command=(),
            url=server.url,
            client_id="voltaire-1",
            client_secret_file=str(tmp_path / "secret"),
            callback_port=port,
        )
        assert box.servers
        with pytest.raises(ToolError, match=f"The port {port}, which .* is taken"):
            await signed_in(box.servers, server)
    await signed_in(box.servers, server)
    assert (await mcp(box, "tea brew leaf=green")).startswith("green with Bearer")
    server.accounts.access.clear()
    assert (await mcp(box, "tea brew leaf=black")).startswith("black with Bearer")
    assert server.accounts.refreshed == 1 and list(server.accounts.clients) == ["voltaire-1"]
    (tmp_path / "secret").write_text("another\n")
    with pytest.raises(ToolError, match=r"^The sign-in to tea failed: .*Invalid client_secret"):
        await signed_in(box.servers, server)
    (tmp_path / "secret").unlink()
    with pytest.raises(ToolError, match="The client_secret_file of tea cannot be read"):
        await signed_in(box.servers, server)


async def test_where_nobody_signs_in(
    servers: FakeServers, server: SignInServer, tmp_path: Path
) -> None:
    """With a header of its own a server has no sign-in, and a program has none."""
    (tmp_path / "env").write_text("Authorization=Bearer old-token\n")
    box = await servers.open(command=(), url=server.url, env_file=str(tmp_path / "env"))
    assert await mcp(box, "tea") == saying("tea refuses", "Authorization", "env_file", "401")
    program = await servers.open()
    for each in (box, program):
        assert each.servers
        with pytest.raises(ToolError, match="is no server that an owner signs in to"):
            await each.servers.sign_in("tea", lambda sign_in: asyncio.sleep(0))


@pytest.fixture
async def other(server: SignInServer) -> AsyncIterator[SignInServer]:
    """Another authorization server, whose tokens the server takes, too."""
    async with sign_in_server(Accounts(access=server.accounts.access)) as served:
        yield served


def place(server: SignInServer) -> str:
    return server.url.removesuffix("/mcp").removeprefix("http://")


async def test_what_one_authorization_server_gave_goes_to_no_other(
    servers: FakeServers, server: SignInServer, other: SignInServer
) -> None:
    """Where a server names another one, its owner signs in anew, as a new program."""
    box, tools = await opened(servers, server)
    await signed_in(tools, server)
    first = json.loads(tools.tokens_file("tea").read_text())
    server.issuer = other.url.removesuffix("mcp")
    server.accounts.access.clear()
    for chat in ("cli", "anew"):  # a program that was started anew reads what is kept
        box, tools = await opened(servers, server, chat)
        told = await mcp(box, "tea brew leaf=green")
        assert f"sign in anew, at {place(other)} and no longer at {place(server)}: volt" in told
    assert other.posted == [] and server.accounts.refreshed == 0
    before: list[str] = []

    async def show(sign_in: SignIn) -> None:
        before.append(sign_in.before)
        assert sign_in.host == place(other)
        await server.browse(sign_in.link)

    assert await tools.sign_in("tea", show)
    assert before == [place(server)] and other.posted == ["/register", "/token"]
    second = json.loads(tools.tokens_file("tea").read_text())
    assert second["client"]["client_id"] != first["client"]["client_id"]
    assert (await mcp(box, "tea brew leaf=black")).startswith("black with")
    # It is refreshed there, and its tokens do not go back to the first.
    server.accounts.access.clear()
    assert (await mcp(box, "tea brew leaf=white")).startswith("white with")
    assert (other.accounts.refreshed, server.accounts.refreshed) == (1, 0)


async def test_the_secret_of_a_registered_client_goes_to_one_authorization_server(
    servers: FakeServers, server: SignInServer, other: SignInServer, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("s3cret-of-it\n")
    section = {"client_secret_file": str(tmp_path / "secret"), "command": (), "url": server.url}
    for each, name in ((server, "voltaire-1"), (other, "voltaire-2")):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        each.register(name, "s3cret-of-it", f"http://127.0.0.1:{port}/callback")
        section |= {name: port}
    ports = {name: section.pop(name) for name in ("voltaire-1", "voltaire-2")}

    async def program(name: str) -> Box:
        return await servers.open(**section, client_id=name, callback_port=ports[name])  # type: ignore[arg-type]

    box = await program("voltaire-1")
    assert box.servers
    await signed_in(box.servers, server)
    server.issuer = other.url.removesuffix("mcp")
    server.accounts.access.clear()
    assert "sign in anew, at" in await mcp(box, "tea brew leaf=green")
    why = f"wants you to sign in at {place(other)}; its client_id is registered at {place(server)},"
    with pytest.raises(ToolError, match=why):
        await signed_in(box.servers, server)
    assert other.posted == []
    again = await program("voltaire-2")
    assert again.servers
    await signed_in(again.servers, server)
    assert (await mcp(again, "tea brew leaf=green")).startswith("green with")


async def test_a_token_is_not_refreshed_for_another_resource(
    servers: FakeServers, server: SignInServer
) -> None:
    box, tools = await opened(servers, server)
    await signed_in(tools, server)
    server.resource = server.url.removesuffix("/mcp") + "/"
    server.accounts.access.clear()
    for _ in range(2):
        told = await mcp(box, "tea brew leaf=green")
        assert told == saying("sign in", "voltaire mcp test tea")
    assert server.accounts.refreshed == 0
    await signed_in(tools, server)
    assert (await mcp(box, "tea brew leaf=green")).startswith("green with")


@pytest.mark.parametrize("asked", ["code=x", "code=x&state=", "code=x&state=y", "error=x"])
async def test_what_comes_before_there_is_a_link_is_of_no_sign_in(asked: str) -> None:
    """Any page that a browser on this machine visits can ask for the address."""
    waiting = SignIn("tea")
    with pytest.raises(ToolError, match="another sign-in"):
        waiting.give(f"http://127.0.0.1:9/callback?{asked}", typed=False)
    assert not waiting.answered.done()
