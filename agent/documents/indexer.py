"""Reads waiting documents and watches the owner's folders in the background, while no turn runs."""

import asyncio
import heapq
import logging
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from agent.aio import set_within
from agent.documents.reading import DocumentReader, UnreadableDocument
from agent.errors import NoSandbox
from agent.files import is_document
from agent.memory.search import (
    ANSWER_SECONDS,
    BATCH,
    BATCH_SECONDS,
    Embedder,
    EmbeddingsUnavailable,
    nearest,
)
from agent.sandbox.output_buffer import clean
from agent.store.database import storable
from agent.store.documents import DocumentTable, SavedPassage, sign_code
from agent.store.errors import StoreError

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0  # between two looks into the folders
LOOK_SHARE = 0.02  # share of the time that looking into large folders may take
SHARE = 0.2  # share of the time spent working, on up to two cores; the rest is pause
PATIENCE_SECONDS = 60.0  # how long a document waits for running turns to end
MOST_BYTES = 256 << 20  # of one file
MOST_FILES = 20_000  # of one folder


CANDIDATES = 200


@dataclass
class SignCodes:
    """Sign codes of the passages that one chat may see, in order of id."""

    ids: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)

    def nearest(self, asked: int) -> list[int]:
        order = heapq.nsmallest(
            CANDIDATES, range(len(self.ids)), key=lambda n: (self.codes[n] ^ asked).bit_count()
        )
        return [self.ids[n] for n in order]


@dataclass
class PassageMeaning:
    table: DocumentTable
    embedder: Embedder
    _known: dict[str, SignCodes] = field(default_factory=dict)  # by chat

    async def nearest(
        self, chat: str, folders: Collection[str], query: str, limit: int
    ) -> list[SavedPassage]:
        """Best first; empty when the embedding server does not answer."""
        try:
            [asked] = await self.embedder.vectors([query], ANSWER_SECONDS)
        except EmbeddingsUnavailable as error:
            log.warning("no search by meaning: %s", error)
            return []
        model, known = self.embedder.model, self._known.setdefault(chat, SignCodes())
        new = await self.table.codes(chat, folders, model, known.ids[-1] if known.ids else 0)
        known.ids += [id for id, _ in new]
        known.codes += [int.from_bytes(code, "big") for _, code in new]
        ids = await asyncio.to_thread(known.nearest, int.from_bytes(sign_code(asked), "big"))
        found = await self.table.vectors(chat, folders, model, ids)
        if len(found) < len(ids):
            del self._known[chat]  # documents were removed: read all codes again next time
        return nearest(asked, found, limit)

    async def embed(self) -> int:
        """Embed up to BATCH passages that have no vector yet; returns how many. Raises EmbeddingsUnavailable."""
        found = await self.table.without_vector(self.embedder.model, BATCH)
        if found:
            texts = [f"{one.heading}\n{one.text}".strip() for one in found]
            vectors = await self.embedder.vectors(texts, BATCH_SECONDS)
            await self.table.put_vectors(self.embedder.model, found, vectors)
        return len(found)


async def read_next(
    table: DocumentTable, reader: DocumentReader, ids: Collection[int] | None = None
) -> bool:
    """Read the next waiting document (of `ids`, if given); return whether there was one. Raises NoSandbox when
    nothing can be read now."""
    document = await table.begin(ids)
    if document is None:
        return False
    try:
        passages, facts = await reader.read(
            document.chat or "", document.folder or "", document.path
        )
    except UnreadableDocument as error:
        await table.fail(document, str(error))
    else:
        rows = [(one.page, one.heading, one.text) for one in passages]
        await table.finish(document, rows, facts.unit, facts.pages, " ".join(facts.notes))
    finally:
        table.release(document)
    return True


def nameable(path: str) -> bool:
    """Whether a document can be shown and cited by this path: it fits on a line and hides nothing."""
    return "\n" not in path and "\t" not in path and clean(path) == path == storable(path)


def files_of(folder: Path) -> Iterator[tuple[str, tuple[int, float]]]:
    """The relative path, size and mtime of each document below a folder that is not empty, following no links. A file
    that is being written gets a new mtime, so it is read again after its last change."""
    for place, folders, names, fd in os.fwalk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(filter(is_document, names)):
            path = str(Path(place, name).relative_to(folder))
            with suppress(OSError):  # deleted meanwhile
                entry = os.stat(name, dir_fd=fd, follow_symlinks=False)
                fits = stat.S_ISREG(entry.st_mode) and 0 < entry.st_size <= MOST_BYTES
                if fits and nameable(path):
                    yield path, (entry.st_size, entry.st_mtime)


async def follow_folders(table: DocumentTable, folders: Mapping[str, Path]) -> None:
    """Sync the table with the first MOST_FILES documents of the folders. A folder that is not there now keeps its
    documents."""
    await table.keep_folders(folders)
    for name, folder in folders.items():
        if folder.is_dir():
            files = await asyncio.to_thread(
                lambda at: dict(islice(files_of(at), MOST_FILES)), folder
            )
            await table.sync_folder(name, files)
        else:
            log.warning("agent.documents.%s: %s is not there, or may not be read", name, folder)


@dataclass
class DocumentIndexer:
    """Runs beside the chats until cancelled; `busy` tells whether a turn runs."""

    table: DocumentTable
    reader: DocumentReader
    busy: Callable[[], bool]
    meaning: PassageMeaning | None = None
    look_seconds: float = LOOK_SECONDS
    share: float = SHARE
    _look_at: float = 0.0  # on the loop's clock

    async def run(self) -> None:
        while True:
            self.table.added.clear()
            try:
                while await self.run_once():
                    pass
            except (NoSandbox, EmbeddingsUnavailable, StoreError, OSError) as error:
                log.warning("documents are not read: %s", error)
            except Exception:  # one document must not end the bot
                log.exception("documents are not read")
            await set_within(self.table.added, self.look_seconds)

    async def run_once(self) -> bool:
        """Read one document or embed one batch of passages, then pause; False when there was nothing to do."""
        loop = asyncio.get_running_loop()
        if (began := loop.time()) >= self._look_at:
            await follow_folders(self.table, self.reader.folders)
            took = loop.time() - began
            self._look_at = loop.time() + max(self.look_seconds, took / LOOK_SHARE)
        patience = loop.time() + PATIENCE_SECONDS
        while self.busy() and loop.time() < patience:
            await asyncio.sleep(0.2)
        began = loop.time()
        worked = await read_next(self.table, self.reader)
        if not worked and self.meaning:
            worked = bool(await self.meaning.embed())
        if worked:
            await asyncio.sleep((loop.time() - began) * (1 / self.share - 1))
        return worked
