"""/mcp: an owner signs in to a server of tools, from a phone that cannot reach the bot's machine."""

from pathlib import Path

from agent.mcp.config import ServerConfig
from agent.mcp.servers import open_servers
from agent.store import open_store
from bot.messaging_apps import Apps
from bot.texts import TEXTS
from fakes.bot_running import TelegramScenario
from fakes.mcp_oauth import sign_in_server
from fakes.patience import soon
from fakes.sandbox_box import opened
from fakes.words import saying


async def test_an_owner_signs_in_by_messages(scenario: TelegramScenario, tmp_path: Path) -> None:
    async with (
        sign_in_server() as server,
        opened(tmp_path / "state") as sandboxes,
        open_store(tmp_path / "pins.db") as store,
        open_servers([ServerConfig("tea", url=server.url)], sandboxes, tmp_path, store) as servers,
    ):
        scenario.services = lambda run: {"servers": servers}
        async with scenario.open() as run:
            owner = scenario.owner
            asked = await owner.ask("/mcp tea")
            link = next(line for line in asked.text.splitlines() if line.startswith("http"))
            told = TEXTS.sign_in.format(name="tea", host=server.url.split("/")[2], link=link)
            assert asked.text == told
            assert (await owner.ask("/mcp tea")).text == told  # the same link again
            wrong = await owner.ask("/mcp tea http://127.0.0.1:1/callback?code=a&state=b")
            assert wrong.text == saying("another sign-in", "link of tea")
            back = await server.browse(link, follow=False)
            done = await owner.ask(f"/mcp tea {back}")
            assert done.text == saying("signed in to tea")
            assert (await owner.ask("/mcp")).text == saying(" signed in): ", "no tool allowed")
            assert (await owner.ask("/mcp coffee")).text == saying("no server named coffee", " tea")
            # A turn that needs it sends the link to the owner by itself.
            Apps([run.bot]).ask_to_sign_in(servers, "tea")
            await soon(lambda: servers.signing_in.get("tea") is not None)
            waiting = servers.signing_in["tea"]
            assert waiting
            again = TEXTS.sign_in.format(name="tea", host=waiting.host, link=waiting.link)
            await soon(lambda: any(each.text == again for each in owner.messages()))
