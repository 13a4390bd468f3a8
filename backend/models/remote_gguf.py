"""The header of a model that is still at the hub: a few megabytes are read in place of all of it.

    header = read_remote_header(source)

So that a person knows what fits before fourteen gigabytes are downloaded.
"""

import io
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

from backend.models.gguf_header import Header, read_open
from backend.models.profile import Source
from backend.models.pull import PullError, remote_file

PIECE = 2 << 20  # bytes read at once: the tokens of a vocabulary take some megabytes
SECONDS = 30.0  # for each piece


def read_remote_header(source: Source) -> Header:
    """PullError says why the hub could not be read, NotAModel that the file is none. Blocks."""
    if source.repo is None or source.file is None:
        raise PullError("The profile names no repository to look at.")
    remote = remote_file(source)
    if remote.size is None:
        raise PullError(f"The hub does not tell the size of {source.file}.")
    file = RangeFile(remote.url, remote.size, remote.headers)
    try:
        return read_open(io.BufferedReader(file, PIECE), remote.size, source.file)
    except (OSError, HTTPException) as error:
        raise PullError(f"The hub broke off ({error}); try again.") from None


class RangeFile(io.RawIOBase):
    """A file at a URL, read by HTTP range requests."""

    def __init__(self, url: str, size: int, headers: Mapping[str, str]) -> None:
        self.url, self.size, self.headers = url, size, headers
        self.position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        self.position = start + offset
        return self.position

    def readinto(self, buffer: Any) -> int:
        last = min(self.position + len(buffer), self.size) - 1
        if last < self.position:
            return 0
        headers = {**self.headers, "Range": f"bytes={self.position}-{last}"}
        request = urllib.request.Request(self.url, headers=headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            if answer.status != 206:
                raise OSError("it sends no parts of files")
            piece = answer.read(last - self.position + 1)
        buffer[: len(piece)] = piece
        self.position += len(piece)
        return len(piece)
