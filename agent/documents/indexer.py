"""Reads the documents that wait, and watches the owner's folders, slowly and while nobody waits."""

import asyncio
import logging
import os
import stat
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.aio import set_within
from agent.documents.meaning import PassageMeaning
from agent.documents.reading import DocumentReader, UnreadableDocument
from agent.errors import NoSandbox
from agent.memory.search import EmbeddingsUnavailable
from agent.store.documents import DocumentTable, readable
from agent.store.errors import StoreError

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0  # between two looks into the folders
LOOK_SHARE = 0.02  # of the time, that looks at large folders take
SHARE = 0.4  # of the time that it works; the rest is pause
PATIENCE_SECONDS = 60.0  # that a document waits for people to have their answers
MOST_BYTES = 256 << 20  # of one file
MOST_FILES = 20_000  # of one folder


async def read_next(
    table: DocumentTable, reader: DocumentReader, ids: Collection[int] | None = None
) -> bool:
    """Read the next document that waits, of these where given; whether there was one. NoSandbox where
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
    except (NoSandbox, asyncio.CancelledError):
        await asyncio.shield(table.put_back(document))
        raise
    else:
        rows = [(one.page, one.heading, one.text) for one in passages]
        await table.finish(document, rows, facts.unit, facts.pages, " ".join(facts.notes))
    return True


def files_of(folder: Path) -> dict[str, tuple[int, float]] | None:
    """Size and time of each document below a folder, by its path there; None where it cannot be seen.
    No link is followed. A file that is being written is read once more after its last change."""
    found: dict[str, tuple[int, float]] = {}
    if not folder.is_dir():
        return None
    for place, folders, names, fd in os.fwalk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(filter(readable, names)):
            path = str(Path(place, name).relative_to(folder))
            with suppress(OSError):  # it has just gone
                entry = os.stat(name, dir_fd=fd, follow_symlinks=False)
                fits = stat.S_ISREG(entry.st_mode) and entry.st_size <= MOST_BYTES
                if fits and path.isprintable() and len(found) < MOST_FILES:
                    found[path] = (entry.st_size, entry.st_mtime)
    return found


async def follow_folders(table: DocumentTable, folders: Mapping[str, Path]) -> None:
    """Have the table know what the folders hold. One that is not there now keeps its documents."""
    await table.keep_folders(folders)
    for name, folder in folders.items():
        found = await asyncio.to_thread(files_of, folder)
        if found is None:
            log.warning("agent.documents.%s: %s is not there, or may not be read", name, folder)
        else:
            await table.sync_folder(name, found)


@dataclass
class DocumentIndexer:
    """Runs beside the chats until cancelled. While `busy`, people are waiting for answers."""

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
            await set_within(self.table.added, self.look_seconds)

    async def run_once(self) -> bool:
        """Do one piece of work, and pause for it; whether there was one."""
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
