from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.documents.library import Library
from agent.documents.reading import DocumentReader
from agent.sandbox.sandbox import Sandboxes
from agent.store import Store, open_store
from fakes import sandbox_box


@dataclass
class Shelf:
    """A store, sandboxes, and one folder that the owner has named: handbook."""

    store: Store
    reader: DocumentReader
    folder: Path

    def library(self, chat: str = "cli") -> Library:
        return Library(self.store.documents, self.reader, chat)

    async def file(self, path: str, content: bytes, chat: str = "cli") -> None:
        """A file in the workspace of a chat."""
        box = await self.reader.sandboxes.of(chat)
        await box.files.mark()  # from now on it is recorded where files come from
        await box.files.write(path, content)

    async def passages(self, name: str, content: bytes) -> list[tuple[int, str, str]]:
        """(page, heading, text) of a document."""
        await self.file(name, content)
        passages, _ = await self.reader.read("cli", "", name)
        return [(one.page, one.heading, one.text) for one in passages]


@pytest.fixture
async def sandboxes(tmp_path: Path) -> AsyncIterator[Sandboxes]:
    async with sandbox_box.opened(tmp_path / "state") as opened:
        yield opened


@pytest.fixture
async def shelf(tmp_path: Path, sandboxes: Sandboxes) -> AsyncIterator[Shelf]:
    folder = tmp_path / "handbook"
    folder.mkdir()
    for each in (folder, *folder.parents):  # tools may act as another user
        if each.is_relative_to(tmp_path):
            each.chmod(0o755)
    async with open_store(tmp_path / "state" / "voltaire.db") as store:
        yield Shelf(store, DocumentReader(sandboxes, {"handbook": folder}), folder)
