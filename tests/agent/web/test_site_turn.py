"""A turn that finds a fact on a site of several pages: search, redirect, pieces, address cited; no other chat finds it."""

import secrets
from pathlib import Path

from aiohttp import web

from agent.approvals import Approvals
from agent.context import user_message
from agent.context.window import ModelWindow
from agent.memory.notes import ChatMemory
from agent.messages import ToolResult
from agent.sandbox.hosts import WholeWeb
from agent.sandbox.sandbox import Sandboxes
from agent.store import Incoming, Store, open_store
from agent.tools.bash import bash
from agent.tools.context import ToolContext
from agent.tools.memory import recall
from agent.turn.conversation import StoredJournal
from agent.turn.loop import run_turn
from agent.turn.turn import Turn
from agent.web.browser import Browser, PageCache
from agent.web.search import SearXNG
from fakes.gpu_queue_local import LocalGpuQueue
from fakes.model_scripted import Line, ScriptedModel, calls, says
from fakes.sandbox_box import opened
from fakes.searxng import Searx, result, searxng
from fakes.web_server import Site, site
from fakes.words import saying

TOWER = "The tower of Altenberg is 93 metres high."
SHARED = PageCache()


async def ask(
    store: Store, boxes: Sandboxes, searx: Searx, chat: str, words: str, *lines: Line
) -> tuple[str, list[str]]:
    """The answer of a turn of a chat, and what its tools gave."""
    tools = [bash, recall]
    schemas = tuple(tool.schema for tool in tools)
    model = ScriptedModel.of(*lines, n_ctx=1 << 16)
    incoming = Incoming(chat, "test", secrets.token_hex(8), words)
    await store.inbox.add(incoming)
    window = ModelWindow(store, model, LocalGpuQueue(), schemas)
    rows = await store.inbox.waiting(chat)
    message = await user_message.render(window, rows, "UTC")
    begun = await store.turns.begin(secrets.token_hex(8), rows, message)
    everywhere = WholeWeb(lambda address: True)
    browser = Browser(chat, store.addresses, SearXNG(searx.url), cache=SHARED, hosts=everywhere)
    context = ToolContext(
        await boxes.of(chat), notes=ChatMemory(store, chat, "UTC"), browser=browser
    )
    journal = StoredJournal(store, begun, window, "UTC")
    turn = Turn(model, journal, tools, schemas, context, Approvals(store.approvals, None))
    finished = await run_turn(turn, lambda event: None)
    given = [m.text for m in model.requests[-1].messages if isinstance(m, ToolResult)]
    return finished.text, given


def towns(served: Site) -> None:
    """Pages: a list that leads on by a redirect to a long text."""
    text = "\n".join(f"<p>Town {n} lies on a river.</p>" for n in range(1, 900))
    text += f"<p>{TOWER}</p>" + "<p>More of it elsewhere.</p>" * 5
    page = f"<html><body><main><h1>Towns</h1>{text}</main></body></html>"
    served.pages["/list"] = lambda: web.Response(status=301, headers={"Location": "/towns/all"})
    served.pages["/towns/all"] = lambda: web.Response(text=page, content_type="text/html")


async def test_a_fact_of_a_site_is_found_and_cited_and_not_known_elsewhere(tmp_path: Path) -> None:
    async with (
        site() as served,
        searxng() as searx,
        open_store(tmp_path / "voltaire.db") as store,
        opened(tmp_path / "state") as boxes,
    ):
        towns(served)
        found, at = f"http://{served.host}/list", f"http://{served.host}/towns/all"
        searx.results = [result(found, "Towns", "All of them.")]
        answer = f"It is 93 metres high ({at})."
        text, given = await ask(
            store, boxes, searx, "tg:1", "How high is the tower of Altenberg?",
            calls("bash", command="web search tower Altenberg"),
            calls("bash", command=f"web read {found} | head -3"),
            calls("bash", command=f"web read {found} --grep altenberg"),
            calls("bash", command=f"web read {found} --from 1795 | head -8"),
            says(answer),
        )  # fmt: skip
        search, begin, line, piece = given
        assert text == answer
        assert search == saying("1. Towns", found)
        assert begin.startswith(at)  # where it was found at last
        number = line.partition(":")[0]
        assert line == f"{number}: {TOWER}"
        assert TOWER in piece or int(number) < 1795
        assert served.seen == [f"{served.host}/list", f"{served.host}/towns/all"]  # read once

        text, given = await ask(
            store, boxes, searx, "tg:2", "And how high is it?",
            calls("recall", query="tower of Altenberg 93 metres"),
            calls("bash", command=f"web read {found}"),
            says("I do not know."),
        )  # fmt: skip
        remembered, refused = given
        assert "93" not in remembered and remembered == saying("nothing found")
        assert refused == saying("nobody can be asked") and len(served.seen) == 2
