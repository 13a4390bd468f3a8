"""What the tools themselves count: bytes and hosts of commands and pages, files, sent files."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.budgets import PORTION, CallBudget, DailyBudgets
from agent.errors import ToolError
from agent.store import Store, open_store
from agent.tools.bash import bash
from agent.tools.context import ToolContext
from agent.tools.send_file import send_file
from agent.tools.tool import Call, Output, Tool
from agent.tools.web import web_fetch
from agent.trust import Taint
from agent.web.fetch import Fetcher
from fakes.sandbox_box import Box, opened
from fakes.web_server import Site, site

LIMITS = {"calls": 0, "bytes": 1 << 20, "hosts": 1, "files": 3, "jobs": 0}


@pytest.fixture
async def web() -> AsyncIterator[Site]:
    async with site() as served:
        yield served


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "v.db") as store:
        yield store


class Counted(Box):
    """A Box whose calls count, and whose owner allows nothing beyond."""

    store: Store
    web: Site

    async def use(self, tool: Tool, **arguments: Any) -> Output:
        async def deny(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
            if scope.startswith("budget:"):
                self.asked.append((what, scope))
                raise ToolError("No more today.")

        budget = CallBudget(DailyBudgets(self.store.budgets, LIMITS), "cli", deny, tool.name)
        context = ToolContext(self.sandbox, file_sender=self, web=Fetcher(self.web.hosts()))
        call = Call("1", "turn", "cli", context, deny, budget=budget)
        return await tool.run(call, arguments)

    async def used(self) -> dict[str, int]:
        budgets = DailyBudgets(self.store.budgets, LIMITS)
        rows = await self.store.budgets.used("cli", budgets.today())
        return {one.kind: one.used for one in rows}


@pytest.fixture
async def box(tmp_path: Path, web: Site, store: Store) -> AsyncIterator[Counted]:
    async with opened(tmp_path / "s", hosts=web.hosts()) as sandboxes:
        counted = Counted(await sandboxes.of("cli"))
        counted.store, counted.web = store, web
        yield counted


async def test_bytes_that_commands_send_and_hosts_they_reach(box: Counted, web: Site) -> None:
    post = f"curl -sS --data-binary @big http://{web.host}/"
    make = "head -c 400000 /dev/zero > big"
    assert (await box.use(bash, command=f"{make}; {post}; {post}")).text == "hellohello"
    used = await box.used()
    assert 800_000 < used["bytes"] < 800_000 + PORTION  # the rest of a portion is given back
    assert used["hosts"] == 1
    seen = len(web.seen)
    text = (await box.use(bash, command=f"{post}; {post}")).text
    assert box.asked[0][1] == "budget:bytes"
    assert "hellohello" not in text
    assert (await box.used())["bytes"] <= LIMITS["bytes"]
    assert len(web.seen) <= seen + 1


async def test_files_that_a_command_writes(box: Counted) -> None:
    await box.use(bash, command="touch a b; cat /dev/null")
    assert await box.used() == {"files": 2}
    await box.use(bash, command="ls; cat a")
    assert await box.used() == {"files": 2}
    await box.use(bash, command="touch a c; mkdir d; echo > d/e")
    assert await box.used() == {"files": 5}


async def test_a_page_and_a_file(box: Counted, web: Site) -> None:
    url = f"http://{web.host}/{'x' * 100}"
    await box.use(web_fetch, url=url)
    await box.use(bash, command="head -c 1000 /dev/zero > a")
    await box.use(send_file, path="a")
    assert await box.used() == {"bytes": len(url) + 1000, "hosts": 1, "files": 1}
    await box.use(bash, command="head -c 1100000 /dev/zero > a")
    with pytest.raises(ToolError, match="No more today"):
        await box.use(send_file, path="a")
    assert len(box.sent) == 1
