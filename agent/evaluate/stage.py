"""Where tasks run: sandboxes and a database of their own, and a small made-up web.

Nothing of the owner's is seen there, so that a task is the same on every machine, and nothing that a model
does there stays. Pages go through the reader of real ones; no request leaves the machine.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
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
from agent.tools.registry import chosen, shell_names
from agent.web.browser import Browser, WebPage, addresses_in
from agent.web.fetch import page_text
from agent.web.search import SearchPage, SearchResult, SearXNG, TimeRange

SNIPPET = 160  # characters of a page that a search shows


@dataclass(frozen=True)
class Stage:
    """What the tasks of one run share."""

    folder: Path
    sandboxes: Sandboxes
    store: Store

    async def context(
        self, task: EvalTask, sandbox: Sandbox, recorder: TurnRecorder
    ) -> ToolContext:
        """Add the task's documents and skills; what its tools work with."""
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
            plans=recorder,
            file_sender=recorder,
            browser=browser,
            documents=lambda: library,
            skills=lambda: [
                (pin.name, pin.description) for pin in shelf.offered() if pin.name in task.skills
            ],
        )

    async def clear(self, task: EvalTask) -> None:
        """Remove the task's skills."""
        for name in task.skills:
            await asyncio.to_thread(SkillShelf(self.folder).remove, name)


@asynccontextmanager
async def open_stage(
    parent: Path,
    limits: SandboxLimits,
    *,
    zone: str = "UTC",
    report: Callable[[], str] = str,
) -> AsyncIterator[Stage]:
    """A stage in a new folder below `parent`, which is deleted afterwards. `report` gives /host.txt."""
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=parent, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        async with (
            open_sandboxes(
                folder,
                limits=limits,
                repos=(),
                zone=zone,
                report=report,
                programs={**scripts(), **shell_names(chosen(()))},
            ) as sandboxes,
            open_store(folder / "voltaire.db") as store,
        ):
            yield Stage(folder, sandboxes, store)


@dataclass(frozen=True)
class TaskEngine(SearXNG):
    """Finds a task's pages by the words that they share with a query, those with the most first."""

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
    """A web that consists of a task's pages."""

    pages: Mapping[str, TaskPage] = field(default_factory=dict)

    async def read(
        self, address: str, permit: Permit, sandbox: Sandbox, *, load: Permit | None = None
    ) -> WebPage:
        page = self.pages.get(address)
        if page is None:
            raise ToolError(f"{address} answered 404 Not Found.")
        text = await page_text(page.html.encode(), "utf-8", html=True, address=address)
        read = WebPage(address, text.strip("\n"), self.cache.clock())
        self.cache.put(self.chat, address, read)
        return read
