"""Suggestions for a name or line that does not exist: the most similar ones, found in bounded time."""

import difflib
import heapq
import time
from collections.abc import Iterable

COMPARED_CHARACTERS = 200
SECONDS = 0.05  # on the event loop; a thread may take longer


def nearest(
    word: str, candidates: Iterable[str], count: int, likeness: float, seconds: float = SECONDS
) -> list[str]:
    """The candidates most similar to the word (difflib's ratio, at least `likeness`), best first.

    difflib is cubic in the worst case, and candidates may be hostile: only their beginnings are
    compared, and only as many as `seconds` allow.
    """
    matcher = difflib.SequenceMatcher(b=word[:COMPARED_CHARACTERS])
    end = time.monotonic() + seconds
    found = []
    for candidate in candidates:
        if time.monotonic() > end:
            break
        matcher.set_seq1(candidate[:COMPARED_CHARACTERS])
        ratio = min(matcher.real_quick_ratio(), matcher.quick_ratio())
        if ratio >= likeness and (ratio := matcher.ratio()) >= likeness:
            found.append((ratio, candidate))
    return [candidate for _, candidate in heapq.nlargest(count, found)]
