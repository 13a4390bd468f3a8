"""Servers that an owner named, and that answer without an end, too deep, or compressed."""

import gzip
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp import web

from agent.bounded_json import LONGEST, MOST_VALUES, parsed_json
from agent.errors import AgentError
from agent.memory.search import Embedder, EmbeddingsUnavailable
from agent.voice.speech_to_text import ServerRecognizer
from bot.matrix import homeserver
from bot.matrix.homeserver import Homeserver, HomeserverAway

NO_BOX: Any = None  # a server needs none
BLOCK = b"[" * (1 << 16)
ANSWERS: dict[str, Callable[[], Iterator[bytes]]] = {
    "endless": lambda: itertools.repeat(BLOCK),
    "deep": lambda: iter([BLOCK]),
    "many values": lambda: iter([b"[" + b"[]," * MOST_VALUES + b"0]"]),
    "no JSON": lambda: iter([b"\xff\xfe"]),
    "compressed": lambda: iter([gzip.compress(b'{"data": [], "text": ""}')]),
}


@asynccontextmanager
async def answering(blocks: Iterator[bytes], sent: list[int]) -> AsyncIterator[str]:
    """A server that answers whatever is asked with these blocks, and how many bytes it could send."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            for block in blocks:
                await response.write(block)
                sent[0] += len(block)
        return response

    app = web.Application(client_max_size=1 << 20)
    app.router.add_route("*", "/{any:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("kind", ANSWERS)
async def test_such_an_embedding_server_gives_no_vectors(kind: str) -> None:
    sent = [0]
    async with answering(ANSWERS[kind](), sent) as url:
        with pytest.raises(EmbeddingsUnavailable):
            await Embedder(url).vectors(["a"], 30.0)
    assert sent[0] < 4 * LONGEST


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e999", "1e39", "0", "NaN", "null", '"1"'])
async def test_vectors_of_no_numbers_are_none(number: str) -> None:
    said = f'{{"data": [{{"index": 0, "embedding": [{number}, {number}]}}]}}'
    async with answering(iter([said.encode()]), [0]) as url:
        with pytest.raises(EmbeddingsUnavailable):
            await Embedder(url).vectors(["a"], 30.0)


@pytest.mark.parametrize("kind", ANSWERS)
async def test_such_a_transcription_server_did_not_take_it(kind: str) -> None:
    sent = [0]
    async with answering(ANSWERS[kind](), sent) as url:
        with pytest.raises(AgentError, match="did not accept it"):
            await ServerRecognizer(url).words(NO_BOX, b"RIFF")
    assert sent[0] < 4 * LONGEST


@pytest.mark.parametrize("words", [",", '",', "[{:,", "\\,", '\\"[', "é,\n", "]}", '{"a": [1, 2]}'])
def test_marks_in_words_are_no_values(words: str) -> None:
    """Nine messages of commas would otherwise keep a homeserver's answer from ever being read."""
    answer = {"events": [{"body": words * (MOST_VALUES // 8)} for _ in range(9)]}
    assert parsed_json(json.dumps(answer).encode()) == answer


@pytest.mark.parametrize("value", ['""', '"a":""', '"\\",["', "[]", "1", '{"":{}}'])
def test_values_are_counted_beside_strings(value: str) -> None:
    inside = ",".join([value] * (MOST_VALUES + 1))
    with pytest.raises(ValueError, match="more than 500,000 values"):
        parsed_json((f"{{{inside}}}" if ":" in value[:6] else f"[{inside}]").encode())


@pytest.mark.parametrize("kind", ["endless", "deep", "many values", "no JSON"])
async def test_such_a_homeserver_is_away(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homeserver, "LONGEST_ANSWER", LONGEST)
    sent = [0]
    async with answering(ANSWERS[kind](), sent) as url:
        app = Homeserver(url)
        try:
            with pytest.raises(HomeserverAway):
                await app.get("/_matrix/client/v3/sync")
        finally:
            await app.close()
    assert sent[0] < 4 * LONGEST
