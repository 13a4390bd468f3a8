"""The documents that one chat may see: its own, and those of the owner's folders."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agent.documents.indexer import MOST_FILES, PassageMeaning, follow_folders, nameable, read_next
from agent.documents.reading import DocumentReader
from agent.errors import StrangersWords, ToolError
from agent.memory.search import reciprocal_ranks
from agent.nearest import nearest
from agent.store.documents import DocumentTable, SavedDocument, SavedPassage

FOLDER_SECONDS = 5.0  # how long a command reads documents of folders that wait
PATIENCE_SECONDS = 60.0  # how long it waits for a document that another task is reading
POLL_SECONDS = 0.1
NAMES = "names of documents"  # the source of strangers' text in a chat
BEING_READ = "it is being read; try again in a minute."
POOL = 30  # passages of each ranking that are fused


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage that a search found; `score` is 1 for the first of one ranking, 2 for the first of both."""

    document: SavedDocument
    passage: SavedPassage
    score: float


@dataclass(frozen=True)
class Library:
    """What the command `docs` does; each failure is a ToolError with advice. `alone`: no indexer runs in this
    process, so each call looks through the folders itself."""

    table: DocumentTable
    reader: DocumentReader
    chat: str
    meaning: PassageMeaning | None = None
    alone: bool = False

    async def documents(self) -> list[SavedDocument]:
        """All documents, once the waiting ones have been read."""
        await self._catch_up()
        return await self._seen()

    @staticmethod
    def full(documents: Sequence[SavedDocument]) -> list[str]:
        """A sentence for each folder that has reached its limit of documents."""
        counts = Counter(one.folder for one in documents if one.folder is not None)
        most = f"of a folder {MOST_FILES:,} documents are read at most"
        return [f"{name} is full: {most}." for name, n in counts.items() if n >= MOST_FILES]

    async def search(self, query: str, limit: int, name: str = "") -> Sequence[FoundPassage]:
        """The best matching passages first, of one document if `name` is given."""
        await self._catch_up()
        only = self._named(name, await self._seen()).id if name else None
        pool, folders = POOL if self.meaning else limit, self.reader.folders
        rankings = [await self.table.search(self.chat, folders, query, pool, only)]
        if self.meaning:
            rankings.append(await self.meaning.nearest(self.chat, folders, query, pool))
        passages = {
            one.id: one for ranking in rankings for one in ranking if only in (None, one.document)
        }
        scores = reciprocal_ranks(
            *([one.id for one in ranking if one.id in passages] for ranking in rankings)
        )
        best = sorted(passages.values(), key=lambda one: -scores[one.id])[:limit]
        documents = await self.table.get({one.document for one in best})
        return [
            FoundPassage(documents[one.document], one, round(60 * scores[one.id], 2))
            for one in best
            if one.document in documents
        ]

    async def _catch_up(self) -> None:
        """Read this chat's waiting documents, or wait while another task reads them. Those of folders only
        when no indexer runs, and for FOLDER_SECONDS."""
        clock = asyncio.get_running_loop().time
        began = clock()
        if self.alone:
            await follow_folders(self.table, self.reader.folders)
        while clock() - began < PATIENCE_SECONDS:
            in_time = self.alone and clock() - began < FOLDER_SECONDS
            waiting = await self.table.waiting(self.chat, self.reader.folders if in_time else ())
            if not waiting:
                return
            if not await read_next(self.table, self.reader, waiting):
                await asyncio.sleep(POLL_SECONDS)

    async def show(
        self, name: str, first: int, last: int
    ) -> tuple[SavedDocument, Sequence[SavedPassage]]:
        """The text of these pages."""
        document = self._named(name, await self.documents())
        if document.state != "ready":
            raise ToolError(document.note or f"{document.title}: {BEING_READ}")
        if first > document.pages:
            raise ToolError(f"{document.title} has {document.length}.")
        return document, await self.table.pages(document.id, first, last)

    async def add(self, path: str) -> SavedDocument:
        """Read a file of the workspace and index its text."""
        box = await self.reader.sandboxes.of(self.chat)
        place = box.files.resolve(path)
        if place.repo:
            raise ToolError(f"{path} is in a repository: copy it into /workspace first.")
        if not nameable(place.path):
            raise ToolError("Its name has a line break or what cannot be shown: rename it first.")
        with await box.files.open(path) as file:
            size = file.seek(0, 2)
        added = await self.table.add(self.chat, place.path, size, 0.0)
        await read_next(self.table, self.reader, [added.id])
        await self._catch_up()  # another task may have begun it
        read = (await self.table.get([added.id])).get(added.id)
        if read is None:
            raise ToolError(f"{path} was forgotten while it was read.")
        if read.state != "ready":
            raise ToolError(f"{read.title}: {read.note or BEING_READ}")
        return read

    async def forget(self, name: str) -> SavedDocument:
        """Delete a document's indexed text; its file stays."""
        document = self._named(name, await self._seen())
        if document.folder is not None:
            raise ToolError(
                f"{document.title} belongs to a folder of the owner's, who alone can take it out."
            )
        await self.table.forget(document.id)
        return document

    async def missing_pages(self, text: str) -> list[str]:
        """A sentence for each citation in a text, such as "contract.pdf, page 40", of a page that the document
        does not have."""
        wrong = []
        seen = await self._seen() if PAGE_NAMED.search(text) else []
        for document in (one for one in seen if one.pages and one.file_name in text):
            names = "|".join(re.escape(name) for name in {document.title, document.file_name})
            for cited in re.finditer(rf"(?<!\w)(?:{names})(?!\w)", text):
                named = PAGE_NAMED.match(text, cited.end())
                most = max(map(int, re.findall(r"\d+", named[1]))) if named else 0
                if most > document.pages:
                    has = f"{document.title} has {document.length}"
                    wrong.append(f"{has}, no {document.unit} {most}.")
        return list(dict.fromkeys(wrong))

    async def _seen(self) -> list[SavedDocument]:
        return await self.table.seen_by(self.chat, self.reader.folders)

    def _named(self, name: str, documents: Sequence[SavedDocument]) -> SavedDocument:
        wanted = name.removeprefix("/workspace/")
        for key in ("title", "path", "file_name"):
            if found := [one for one in documents if getattr(one, key) == wanted]:
                if len(found) > 1:
                    either = " or ".join(one.title for one in found[:4])
                    raise StrangersWords(f"There are several {name}: say {either}.", NAMES)
                return found[0]
        # A name typed by hand has ordinary spaces where the file's may have others.
        if len(same := [one for one in documents if spaced(one.title) == spaced(wanted)]) == 1:
            return same[0]
        near = nearest(wanted, (one.title for one in documents), 1, 0.4)
        absent = f"There is no document {name}."
        if near:
            raise StrangersWords(f"{absent} Did you mean {near[0]}?", NAMES)
        raise ToolError(f"{absent} docs list shows what there is.")


def spaced(name: str) -> str:
    """Replace other white space by ordinary spaces."""
    return " ".join(name.split())


# After a document's name: "page 3", ", S. 3-5", " (pp. 3, 4)", "#page=3", "Seite 3", "página 3".
PAGE_NAMED = re.compile(
    r"[\s,;:#()\[\]*_`\"'“”„«»–—-]{0,6}"
    r"(?:pages?|pp?\.|parts?|chapters?|seiten?|s\.|kapitel|teil|chapitre|páginas?|págs?\.|capítulo)"
    r"[\s=]{0,2}(\d{1,6}(?:\s?(?:[-–,]|and|und|et|y|to|bis)\s?\d{1,6})*)",
    re.IGNORECASE,
)
