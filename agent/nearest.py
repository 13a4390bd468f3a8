"""Names and lines like one that is not there, for advice: within a bounded time, whoever chose them."""

import difflib
import heapq
import time
from collections.abc import Iterable

COMPARED_CHARACTERS = 200
SECONDS = 0.05  # on the event loop; a thread may take longer


def nearest(
    word: str, candidates: Iterable[str], count: int, likeness: float, seconds: float = SECONDS
) -> list[str]:
    """Those most like the word (difflib's ratio), best first.

    difflib is cubic in the worst case: only beginnings are compared, and no more of the candidates
    than the seconds allow.
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
