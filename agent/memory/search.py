"""Ranking what was found again: bm25 over one chat's candidates, and recency. Pure."""

import math
import re
import unicodedata
from collections.abc import Sequence

from agent.store.search import SearchHit, forms, terms

K1, B = 1.2, 0.75  # Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009
HALF_LIFE_DAYS = 90.0
RECENT_SHARE = 0.3  # of the score that age can take away
NOTE_WEIGHT = 1.5  # notes are what was meant to be kept
SNIPPET = 300  # characters


def rank(query: str, found: Sequence[SearchHit], now: float, limit: int) -> list[SearchHit]:
    """The best matches first. Words count by how rare they are among the candidates."""
    wanted = [term_pattern(term) for term in terms(query)]
    texts = [fold(one.text) for one in found]
    lengths = [max(1, len(text.split())) for text in texts]
    average = sum(lengths) / len(lengths) if lengths else 1.0
    counts = [[len(word.findall(text)) for word in wanted] for text in texts]
    rarity = [_idf(sum(1 for row in counts if row[i]), len(found)) for i in range(len(wanted))]
    scored = [
        (bm25(row, rarity, length / average) * age_and_kind_weight(one, now), one)
        for one, row, length in zip(found, counts, lengths, strict=True)
    ]
    best = sorted(scored, key=lambda pair: (-pair[0], -pair[1].at))
    return distinct([one for score, one in best if score > 0 or not wanted])[:limit]


def snippet(text: str, query: str, most: int = SNIPPET) -> str:
    """The part of a text around the first word of the query, on one line."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    folded = fold(line)
    places = [folded.find(fold(term)) for term in terms(query)]
    first = min((place for place in places if place >= 0), default=0)
    start = max(0, min(first - most // 3, len(line) - most))
    return ("... " if start else "") + line[start : start + most] + " ..."


def fold(text: str) -> str:
    """Lower case without diacritics, of the same length wherever the text is precomposed."""
    if text.isascii():
        return text.lower()
    return "".join(unicodedata.normalize("NFD", c)[0] for c in text.lower())


def term_pattern(term: str) -> re.Pattern[str]:
    """A word with one of its endings; in scripts without spaces, and in compounds, anywhere."""
    either = "|".join(re.escape(fold(form)) for form in forms(term))
    inside = "" if len(term) < 4 and term.isascii() else f"|{re.escape(fold(term))}"
    return re.compile(rf"(?<![^\W_])(?:{either})(?![^\W_]){inside}")


def _idf(holding: int, of: int) -> float:
    return math.log(1 + (of - holding + 0.5) / (holding + 0.5)) + 0.1


def bm25(counts: Sequence[int], rarity: Sequence[float], length: float) -> float:
    return sum(
        idf * n * (K1 + 1) / (n + K1 * (1 - B + B * length))
        for n, idf in zip(counts, rarity, strict=True)
    )


def age_and_kind_weight(one: SearchHit, now: float) -> float:
    days = max(0.0, now - one.at) / 86_400
    recency = 1 - RECENT_SHARE * (1 - math.exp2(-days / HALF_LIFE_DAYS))
    return recency * (NOTE_WEIGHT if one.kind == "note" else 1.0)


def distinct(found: Sequence[SearchHit]) -> list[SearchHit]:
    """Each text once: people repeat themselves, and questions come back in answers."""
    seen: dict[str, SearchHit] = {}
    for one in found:
        seen.setdefault(" ".join(fold(one.text).split()), one)
    return list(seen.values())
