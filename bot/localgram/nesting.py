"""Which entities may lie in which: TDLib's `fix_entities`, in short.

Quotes do not overlap; links, mentions and code do not overlap each other or cross a quote's
border; styles are cut at every border they cross, and there are none inside code.
"""

import itertools

from bot.localgram.wire import Json

QUOTES = frozenset({"blockquote", "expandable_blockquote"})
STYLES = frozenset({"bold", "italic", "underline", "strikethrough", "spoiler"})
CODE = frozenset({"code", "pre"})


def order(entity: Json) -> tuple[int, int]:
    return entity["offset"], -entity["length"]


def end(entity: Json) -> int:
    return int(entity["offset"] + entity["length"])


def overlap(one: Json, other: Json) -> bool:
    return bool(one["offset"] < end(other) and other["offset"] < end(one))


def nested(entities: list[Json]) -> list[Json]:
    quotes = _apart([entity for entity in entities if entity["type"] in QUOTES])
    whole = [entity for entity in entities if entity["type"] not in QUOTES | STYLES]
    whole = _apart([entity for entity in whole if not any(_cross(entity, q) for q in quotes)])
    styles: list[Json] = []
    for style in sorted((e for e in entities if e["type"] in STYLES), key=order):
        if not any(s["type"] == style["type"] and overlap(s, style) for s in styles):
            styles += _cut(style, [*quotes, *whole, *styles])
    code = [entity for entity in whole if entity["type"] in CODE]
    bare = [style for style in styles if not any(overlap(style, c) for c in code)]
    return sorted([*quotes, *whole, *bare], key=order)


def _apart(entities: list[Json]) -> list[Json]:
    """Of those that overlap, the first stays."""
    kept: list[Json] = []
    for entity in sorted(entities, key=order):
        if not kept or entity["offset"] >= end(kept[-1]):
            kept.append(entity)
    return kept


def _cross(one: Json, other: Json) -> bool:
    inside = other["offset"] <= one["offset"] and end(one) <= end(other)
    around = one["offset"] <= other["offset"] and end(other) <= end(one)
    return overlap(one, other) and not inside and not around


def _cut(style: Json, others: list[Json]) -> list[Json]:
    borders = {style["offset"], end(style)}
    for other in others:
        if _cross(style, other) or other["type"] in CODE:
            borders |= {
                b for b in (other["offset"], end(other)) if style["offset"] < b < end(style)
            }
    points = sorted(borders)
    return [
        {**style, "offset": first, "length": last - first}
        for first, last in itertools.pairwise(points)
    ]
