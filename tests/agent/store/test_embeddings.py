import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent.memory.notes import ChatMemory
from agent.memory.search import Embedder, EmbeddingsUnavailable, SemanticSearch
from agent.store import Store
from tests.agent.store.test_notes import said

# Words that mean the same share a direction.
DIRECTIONS = {
    "car": 0,
    "automobile": 0,
    "vehicle": 0,
    "soup": 1,
    "broth": 1,
    "house": 2,
    "building": 2,
}


def vector(text: str) -> list[float]:
    found = [0.01, 0.01, 0.01]
    for word in re.findall(r"\w+", text.lower()):
        if word in DIRECTIONS:
            found[DIRECTIONS[word]] += 1.0
    return found


@asynccontextmanager
async def embedding_server() -> AsyncIterator[tuple[str, list[list[str]]]]:
    """A server of the OpenAI form, and the inputs that it was asked for."""
    asked: list[list[str]] = []

    async def embeddings(request: web.Request) -> web.Response:
        texts = (await request.json())["input"]
        asked.append(texts)
        rows = [{"index": n, "embedding": vector(text)} for n, text in enumerate(texts)]
        return web.json_response({"data": rows[::-1]})

    app = web.Application()
    app.router.add_post("/v1/embeddings", embeddings)
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}/v1", asked


async def test_what_means_the_same_is_found_without_its_words(store: Store) -> None:
    await said(store, "cli", "I parked the automobile behind the church", reply="")
    await said(store, "cli", "the broth needs more salt I think", reply="")
    await store.notes.add("cli", "lives in a yellow building")
    await said(store, "tg:2", "my vehicle stands in another chat altogether", reply="")
    async with embedding_server() as (url, asked):
        meaning = SemanticSearch(store, Embedder(url))
        assert await meaning.embed("cli") == 3
        assert await meaning.embed("cli") == 0
        assert await meaning.embed("tg:2") == 1
        memory = ChatMemory(store, "cli", "UTC", meaning)
        assert [m.text for m in await memory.recall("car", 5)] == [
            "the person: I parked the automobile behind the church"
        ]
        assert [m.text for m in await memory.recall("house", 5)] == ["lives in a yellow building"]
        assert asked[-1] == ["house"]


async def test_a_changed_note_gets_a_new_vector_and_a_deleted_one_is_not_found(
    store: Store,
) -> None:
    note, _ = await store.notes.add("cli", "drives a car")
    async with embedding_server() as (url, _):
        meaning = SemanticSearch(store, Embedder(url))
        await meaning.embed("cli")
        await store.notes.correct("cli", note.id, "eats soup")
        assert await meaning.nearest("cli", "vehicle") == []
        assert await meaning.embed("cli") == 1
        assert [f.text for f in await meaning.nearest("cli", "broth")] == ["eats soup"]
        await store.notes.delete("cli", note.id)
        assert await meaning.nearest("cli", "broth") == []


async def test_without_the_server_words_alone_serve(store: Store) -> None:
    await store.notes.add("cli", "drives a car")
    gone = SemanticSearch(store, Embedder("http://127.0.0.1:9"))
    with pytest.raises(EmbeddingsUnavailable):
        await gone.embed("cli")
    memory = ChatMemory(store, "cli", "UTC", gone)
    assert [m.text for m in await memory.recall("cars", 5)] == ["drives a car"]
