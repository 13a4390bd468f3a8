"""Passages by meaning, with vectors of a real llama.cpp server."""

from importlib.resources import files
from pathlib import Path

import pytest

from agent.documents import indexer
from agent.documents.indexer import PassageMeaning
from agent.memory.search import Embedder
from agent.store.documents import sign_code
from fakes.llama_embedded import serve
from tests.agent.documents.conftest import Shelf

VECTORS = ("--embedding", "--pooling", "mean", "-b", "2048", "-ub", "2048")
TOPICS = "bees wool trains soup violins glaciers taxes bread".split()


async def test_the_signs_find_what_the_cosine_finds(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "CANDIDATES", 8)  # of 24
    texts = [
        f"Page {n} tells of {topic}: how {topic} are made, {n} times."
        for n in range(3)
        for topic in TOPICS
    ]
    table = shelf.store.documents
    document = await table.add("cli", "a.txt", 1, 0.0)
    begun = await table.begin([document.id])
    assert begun
    await table.finish(
        begun, [(n, "", text) for n, text in enumerate(texts, 1)], "page", len(texts)
    )
    pocket = Path(str(files("backend.embedded") / "pocket.gguf"))
    async with serve(pocket, 2048, more=VECTORS, key="") as server:
        embedder = Embedder(server.url)
        by_meaning = PassageMeaning(table, embedder)
        while await by_meaning.embed():
            pass
        for asked in (3, 14):
            found = await by_meaning.nearest("cli", [], texts[asked], 3)
            assert found[0].text == texts[asked]
        await shelf.store.chats.open("other")
        assert await by_meaning.nearest("other", [], texts[3], 3) == []
        [vector] = await embedder.vectors([texts[0]], 100)
    assert len(sign_code(vector)) == (len(vector) + 7) // 8 >= 8
