"""The header of a model that is still at the hub: a few megabytes are read in place of all of it.

    header = peek(source)

So that a person knows what fits before fourteen gigabytes are on their way.
"""

import io
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

from backend.models.gguf_header import Header, read_open
from backend.models.profile import Source
from backend.models.pull import PullError, metadata

PIECE = 2 << 20  # bytes read at once: the words of a vocabulary take some megabytes
SECONDS = 30.0  # for each piece


def peek(source: Source) -> Header:
    """Read the header at the hub; PullError says why it cannot be, NotAModel that it is none. Blocks."""
    if source.repo is None or source.file is None:
        raise PullError("The profile names no repository to look at.")
    found = metadata(source)
    if found.size is None:
        raise PullError(f"The hub does not tell the size of {source.file}.")
    far = _Far(found.url, found.size, found.headers)
    try:
        return read_open(io.BufferedReader(far, PIECE), found.size, source.file)
    except (OSError, HTTPException) as error:
        raise PullError(f"The hub broke off ({error}); try again.") from None


class _Far(io.RawIOBase):
    """A file at a URL, read by ranges."""

    def __init__(self, url: str, size: int, headers: Mapping[str, str]) -> None:
        self._url, self._size, self._headers = url, size, headers
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        last = min(self._at + len(buffer), self._size) - 1
        if last < self._at:
            return 0
        headers = {**self._headers, "Range": f"bytes={self._at}-{last}"}
        request = urllib.request.Request(self._url, headers=headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            if answer.status != 206:
                raise OSError("it sends no parts of files")
            piece = answer.read(last - self._at + 1)
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)
