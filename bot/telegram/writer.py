"""Collects rendered text: gaps between blocks, indentation, open spans."""

from collections.abc import Iterator
from contextlib import contextmanager

from bot.telegram.styled import Kind, Span, Styled


class Writer:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._spans: list[Span] = []
        self._open: list[Kind] = []
        self._gap = 0
        self._indent = ""
        self._fresh = True  # nothing stands before us in this block

    @property
    def styled(self) -> Styled:
        spans = sorted(self._spans, key=lambda s: (s.start, -s.end))
        return Styled("".join(self._pieces), tuple(spans))

    def gap(self, lines: int) -> None:
        """At least so many line breaks before what comes next."""
        if not self._fresh:
            self._gap = max(self._gap, lines)

    def write(self, text: str) -> None:
        if text:
            self._close_gap()
            self._put(text.replace("\n", "\n" + self._indent))
            self._fresh = False

    def mark(self, marker: str) -> None:
        """A list item's marker: the block after it follows on the same line."""
        self._close_gap()
        self._put(marker)
        self._fresh = True

    def open(self, kind: Kind) -> bool:
        return kind in self._open

    @contextmanager
    def span(self, kind: Kind, argument: str = "") -> Iterator[None]:
        if kind in self._open:
            yield
            return
        self._close_gap()
        self._open.append(kind)
        start = self._length
        yield
        self._open.remove(kind)
        if self._length > start:
            self._spans.append(Span(kind, start, self._length, argument))

    @contextmanager
    def indented(self, by: str) -> Iterator[None]:
        before, self._indent = self._indent, self._indent + by
        yield
        self._indent = before

    @contextmanager
    def flush_left(self) -> Iterator[None]:
        """Without indentation, as code must be to be copied; on a line of its own."""
        before, self._indent = self._indent, ""
        if self._fresh and self._length and not self._pieces[-1].endswith("\n"):
            self._gap = 1
        yield
        self._indent = before

    def _close_gap(self) -> None:
        if self._gap:
            self._put("\n" * self._gap + self._indent)
            self._gap = 0

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)
