"""Addresses of the web in canonical form, so that they can be compared, and those in somebody's words."""

import re
from collections.abc import Iterator

from yarl import URL

LONGEST = 2000  # characters of an address
OPENING = "<([{\"'`*_|“‘«"
CLOSING = ">)]}\"'`*_|”’».,;:!?…"
WITHOUT_SCHEME = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::\d+)?(?:[/?#].*)?", re.I)


def canonical(address: str) -> str:
    """The address in the form of a request: no fragment, no default port, host in lower case, with a path; empty
    for anything that is no address of the web, or names a user."""
    if len(address) > LONGEST:
        return ""
    try:
        url = URL(address.strip())
        if url.scheme not in ("http", "https") or not url.host or url.user or url.password:
            return ""
        return str(url.with_fragment(None).with_path(url.path or "/", keep_query=True))
    except (ValueError, IndexError):  # yarl raises the latter for "http://[]@"
        return ""


def addresses_in(text: str) -> set[str]:
    """All words that may be meant as an address, in `canonical` form; one without a scheme with both."""
    return {found for word in text.split() for each in readings(word) if (found := canonical(each))}


def readings(word: str) -> Iterator[str]:
    """The addresses that a word may contain: from where one begins, with and without the signs that may close a
    sentence or bracket."""
    start = re.search(r"https?://", word, re.IGNORECASE)
    rest = word[start.start() :] if start else word.lstrip(OPENING)
    while rest:
        if start:
            yield rest
        elif WITHOUT_SCHEME.fullmatch(rest):
            yield from (f"https://{rest}", f"http://{rest}")
        if rest[-1] not in CLOSING:
            return
        rest = rest[:-1]
