"""Where tasks are played: sandboxes and a database of their own, and a small web that is made up.

Nothing of the owner's is seen there, so that a task is the same on every machine, and nothing that a model
does in it stays. Pages go through the reader of real ones; no request leaves the machine.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from agent.documents.library import Library
from agent.documents.reading import DocumentReader
from agent.errors import ToolError
from agent.evaluate.tasks import EvalTask, TaskPage, TurnRecorder
from agent.sandbox.hosts import Permit
from agent.sandbox.limits import SandboxLimits
from agent.sandbox.sandbox import Sandbox, Sandboxes, open_sandboxes
from agent.shell.registry import scripts
from agent.skills import GUIDE, Skill, SkillShelf, front_matter
from agent.store import Store, open_store
from agent.tools.context import ToolContext
from agent.web.addresses import addresses_in
from agent.web.browser import Browser, WebPage
from agent.web.fetch import page_text
from agent.web.search import SearchPage, SearchResult, SearXNG, TimeRange

SNIPPET = 160  # characters of a page that a search shows


@dataclass(frozen=True)
class Stage:
    """What the tasks of one run are played on."""

    folder: Path
    sandboxes: Sandboxes
    store: Store

    async def context(
        self, task: EvalTask, sandbox: Sandbox, recorder: TurnRecorder, *, plan: bool = True
    ) -> ToolContext:
        """What the tools of a task work with, once its documents and skills are there."""
        chat = sandbox.chat
        shelf = SkillShelf(self.folder)
        for name, guide in task.skills.items():
            about = front_matter(guide)["description"]
            await asyncio.to_thread(
                shelf.add, Skill(name, about, self.folder / name, {GUIDE: (guide.encode(), False)})
            )
        library = Library(self.store.documents, DocumentReader(self.sandboxes, {}), chat)
        for path in task.documents:
            await library.add(path)
        browser = None
        if task.pages:
            pages = {page.url: page for page in task.pages}
            engine = TaskEngine("https://search.example", pages=task.pages)
            browser = TaskWeb(chat, self.store.addresses, engine, pages=pages)
            await browser.found(addresses_in(task.ask))  # the person wrote them
        return ToolContext(
            sandbox=sandbox,
            notes=recorder,
            jobs=recorder,
            plans=recorder if plan else None,
            file_sender=recorder,
            browser=browser,
            documents=lambda: library,
            skills=partial(offered, task, shelf),
        )

    async def clear(self, task: EvalTask) -> None:
        """Take the task's skills away."""
        for name in task.skills:
            await asyncio.to_thread(SkillShelf(self.folder).remove, name)


def offered(task: EvalTask, shelf: SkillShelf) -> list[tuple[str, str]]:
    return [(pin.name, pin.description) for pin in shelf.offered() if pin.name in task.skills]


@asynccontextmanager
async def open_stage(
    parent: Path,
    limits: SandboxLimits,
    *,
    zone: str = "UTC",
    report: Callable[[], str] = str,
) -> AsyncIterator[Stage]:
    """In a folder below `parent` that is gone afterwards. `report` gives /host.txt."""
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=parent, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        async with (
            open_sandboxes(
                folder, limits=limits, repos=(), zone=zone, report=report, programs=scripts()
            ) as sandboxes,
            open_store(folder / "voltaire.db") as store,
        ):
            yield Stage(folder, sandboxes, store)


@dataclass(frozen=True)
class TaskEngine(SearXNG):
    """Finds a task's pages by the words that they have in common with a query, the most first."""

    pages: Sequence[TaskPage] = ()

    async def search(
        self,
        query: str,
        *,
        time: TimeRange = "",
        language: str = "",
        category: str = "",
        page: int = 1,
    ) -> SearchPage:
        asked = set(query.lower().split())
        hits = [(len(asked & each.words), each) for each in self.pages]
        best = sorted((hit for hit in hits if hit[0]), key=lambda hit: -hit[0])
        found = [
            SearchResult(url=each.url, title=each.title, content=each.plain[:SNIPPET])
            for _, each in best
        ]
        return SearchPage(found if page == 1 else [])


@dataclass(frozen=True)
class TaskWeb(Browser):
    """A task's pages are all that there is of the web."""

    pages: Mapping[str, TaskPage] = field(default_factory=dict)

    async def read(self, address: str, permit: Permit, sandbox: Sandbox) -> WebPage:
        page = self.pages.get(address)
        if page is None:
            raise ToolError(f"{address} answered 404 Not Found.")
        text = await page_text(page.html.encode(), "utf-8", html=True, address=address)
        read = WebPage(address, text.strip("\n"), self.cache.clock())
        self.cache.put(self.chat, address, read)
        return read
