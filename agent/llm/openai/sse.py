"""Bytes of an event stream to the JSON values in it. Pure; keeps only the unfinished line."""

import json
from collections.abc import Iterator
from typing import Any

DONE = "[DONE]"
LONGEST_LINE = 32 * 1024 * 1024


class StreamTooLong(Exception):
    """One line outgrew `LONGEST_LINE` bytes."""


class Events:
    """Feed it bytes as they come, split anywhere; it yields each event's JSON value, or `DONE`.

    Only `data:` lines (and `error:`, an old form of llama-server) count: comments
    are keep-alives, other fields mean nothing here. What is no JSON is passed over.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[Any]:
        self._line += chunk
        if len(self._line) > LONGEST_LINE:
            raise StreamTooLong
        *lines, rest = self._line.split(b"\n")
        self._line = bytearray(rest)
        for line in lines:
            yield from self._take(line.rstrip(b"\r"))

    def close(self) -> Iterator[Any]:
        """What the stream ended in the middle of, if it is whole."""
        line, self._line = bytes(self._line), bytearray()
        yield from self._take(line)
        yield from self._dispatch()

    def _take(self, line: bytes | bytearray) -> Iterator[Any]:
        if not line:
            yield from self._dispatch()
            return
        name, _, value = bytes(line).partition(b":")
        if name in (b"data", b"error"):
            self._data.append(value.decode("utf-8", "replace").strip())

    def _dispatch(self) -> Iterator[Any]:
        lines, self._data = self._data, []
        if not lines:
            return
        whole = parse("\n".join(lines))
        # Some servers leave out the blank lines between events.
        yield from [whole] if whole is not None else filter(None, map(parse, lines))


def parse(text: str) -> Any:
    """A JSON value, `DONE`, or None for what is neither."""
    if text == DONE:
        return DONE
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
