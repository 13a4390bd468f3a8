"""Ranks what a search finds: by words and recency, and by meaning.

Vectors come from a server with /v1/embeddings (llama-server --embeddings, or any other). It is optional:
when none is configured, or it does not answer, words alone count.
"""

import asyncio
import heapq
import logging
import math
from array import array
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import aiohttp

from agent.bounded_json import PLAIN, bounded_json
from agent.store import Store
from agent.store.ledger import RecordUse, unrecorded
from agent.store.search import SearchHit, Vector
from agent.store.terms import first_match, fold

log = logging.getLogger(__name__)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

HALF_LIFE_DAYS = 90.0
RECENT_SHARE = 0.3  # share of the score that age can take away
NOTE_WEIGHT = 1.5  # notes were kept on purpose
SNIPPET = 300  # characters
LOOKED_THROUGH = 50_000  # characters of a text: 1 MB takes 14 s, in which nobody is answered

ANSWER_SECONDS = 3.0  # a person waits for it
BATCH_SECONDS = 60.0
BATCH = 16
TEXT_CHARACTERS = 2_000  # of one text; embedding models read about 512 tokens
NEAR = 0.35  # cosine below which things have little to do with each other
MOST = 20


def rank(found: Sequence[SearchHit], now: float, limit: int) -> list[SearchHit]:
    """The best matches first, each text once; of equal ones the newer."""

    def weight(one: SearchHit) -> tuple[float, float]:
        return one.score * age_and_kind_weight(one, now), one.at

    return distinct(sorted(found, key=weight, reverse=True))[:limit]


def snippet(text: str, query: str, most: int = SNIPPET) -> str:
    """The part of a text around the first word of the query, on one line."""
    line = " ".join(text[:LOOKED_THROUGH].split())
    if len(line) <= most:
        return line
    start = max(0, min(first_match(line, query) - most // 3, len(line) - most))
    return ("... " if start else "") + line[start : start + most] + " ..."


def age_and_kind_weight(one: SearchHit, now: float) -> float:
    days = max(0.0, now - one.at) / 86_400
    recency = 1 - RECENT_SHARE * (1 - math.exp2(-days / HALF_LIFE_DAYS))
    return recency * (NOTE_WEIGHT if one.kind == "note" else 1.0)


def distinct(found: Sequence[SearchHit]) -> list[SearchHit]:
    """Keep each text once: people repeat themselves, and answers repeat questions."""
    seen: dict[tuple[str, str], SearchHit] = {}
    for one in found:
        head, rest = one.text[:LOOKED_THROUGH], one.text[LOOKED_THROUGH:]
        seen.setdefault((" ".join(fold(head).split()), rest), one)
    return list(seen.values())


class EmbeddingsUnavailable(Exception):
    """The embedding server gave no vectors; `str` says why."""


@dataclass(frozen=True)
class Embedder:
    """`url` with or without /v1; `model` is the name to ask for, under which vectors are stored. `used` is
    awaited before each request."""

    url: str
    model: str = "default"
    socket: Path | None = None  # a UNIX socket on which it is asked
    used: RecordUse = unrecorded

    async def vectors(self, texts: Sequence[str], seconds: float) -> list[Vector]:
        """A vector of unit length for each text."""
        await self.used()
        body = {"model": self.model, "input": [text[:TEXT_CHARACTERS] for text in texts]}
        try:
            async with (
                asyncio.timeout(seconds),  # aiohttp's own may swallow a cancellation
                aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=None),
                    connector=aiohttp.UnixConnector(str(self.socket)) if self.socket else None,
                    headers=PLAIN,
                    auto_decompress=False,
                ) as session,
                session.post(
                    f"{self.url.rstrip('/').removesuffix('/v1')}/v1/embeddings", json=body
                ) as answer,
            ):
                answer.raise_for_status()
                rows = (await bounded_json(answer))["data"]
            found = [
                unit_vector(row["embedding"]) for row in sorted(rows, key=lambda row: row["index"])
            ]
        except (
            *(aiohttp.ClientError, TimeoutError, KeyError, TypeError, ValueError),
            OverflowError,
        ) as error:
            raise EmbeddingsUnavailable(f"{type(error).__name__}: {error}") from error
        if len(found) != len(texts):
            raise EmbeddingsUnavailable(f"{len(found)} vectors for {len(texts)} texts")
        return found


@dataclass(frozen=True)
class SemanticSearch:
    """Recall by meaning."""

    store: Store
    embedder: Embedder

    async def nearest(self, chat: str, query: str) -> list[SearchHit]:
        """What is nearest to the query in meaning, best first; empty when the embedding server does not answer."""
        try:
            [asked] = await self.embedder.vectors([query], ANSWER_SECONDS)
        except EmbeddingsUnavailable as error:
            log.warning("no recall by meaning: %s", error)
            return []
        known = await self.store.embeddings.all(chat, self.embedder.model)
        return await asyncio.to_thread(nearest, asked, known, MOST)

    async def embed(self, chat: str) -> int:
        """Embed up to BATCH texts that have no vector yet; returns how many. Raises EmbeddingsUnavailable."""
        found = await self.store.embeddings.missing(chat, self.embedder.model, BATCH)
        if found:
            vectors = await self.embedder.vectors([one.text for one in found], BATCH_SECONDS)
            await self.store.embeddings.put(chat, self.embedder.model, found, vectors)
        return len(found)


def fused(
    by_words: Sequence[SearchHit], by_meaning: Sequence[SearchHit], limit: int
) -> list[SearchHit]:
    """Merge two rankings by reciprocal rank fusion."""
    rankings = [[(one.kind, one.id) for one in ranking] for ranking in (by_words, by_meaning)]
    known = {(one.kind, one.id): one for one in (*by_words, *by_meaning)}
    scores = reciprocal_ranks(*rankings)
    return [known[key] for key in sorted(scores, key=lambda key: -scores[key])][:limit]


def reciprocal_ranks(*rankings: Sequence[K]) -> dict[K, float]:
    """Reciprocal rank fusion: the score of each item of the rankings (Cormack et al., SIGIR 2009: k = 60)."""
    scores: dict[K, float] = {}
    for ranking in rankings:
        for rank, one in enumerate(ranking):
            scores[one] = scores.get(one, 0.0) + 1 / (60 + rank)
    return scores


def nearest(asked: Vector, known: Sequence[tuple[T, Vector]], limit: int) -> list[T]:
    """What is nearest in meaning, best first, with a cosine of NEAR at least.

    The cosine of unit vectors follows from their distance, which Python computes in C: 2,000 of 768
    numbers take about 35 ms of CPU. An extension of SQLite would take 5 ms, but many builds of Python
    cannot load extensions.
    """
    query = tuple(asked)
    scored = [
        (1 - math.dist(query, vector) ** 2 / 2, one)
        for one, vector in known
        if len(vector) == len(query)
    ]
    best = heapq.nlargest(limit, scored, key=lambda pair: pair[0])
    return [one for score, one in best if score >= NEAR]


def unit_vector(values: Sequence[float]) -> Vector:
    vector = array("f", values)
    length = math.hypot(*vector)
    if not 0 < length < math.inf:
        raise ValueError("a vector without a length")
    return array("f", (value / length for value in vector))
