"""Addresses as they are asked for, so that two texts of one request are the same, and where they stand in
somebody's words."""

import re
from collections.abc import Iterator

from yarl import URL

LONGEST = 2000  # characters of an address
OPENING = "<([{\"'`*_|“‘«"
CLOSING = ">)]}\"'`*_|”’».,;:!?…"
WITHOUT_SCHEME = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?::\d+)?(?:[/?#].*)?", re.I)


def canonical(address: str) -> str:
    """The address as a request has it: no fragment, no default port, host in lower case, a path; empty for
    what is no address of the web, or names a user."""
    if len(address) > LONGEST:
        return ""
    try:
        url = URL(address.strip())
        if url.scheme not in ("http", "https") or not url.host or url.user or url.password:
            return ""
        return str(url.with_fragment(None).with_path(url.path or "/", keep_query=True))
    except (ValueError, IndexError):  # yarl's, of "http://[]@"
        return ""


def addresses_in(text: str) -> set[str]:
    """All that somebody may have meant as one, in `canonical` form; without a scheme, both."""
    return {found for word in text.split() for each in meant(word) if (found := canonical(each))}


def meant(word: str) -> Iterator[str]:
    """A word from where an address begins, and without what may close a sentence or bracket."""
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
