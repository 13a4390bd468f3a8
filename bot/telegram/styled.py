"""Text with styled spans: builds it, splits it into messages, converts it to Telegram's form.

Offsets are Python's own; Telegram counts in UTF-16 units, which only `units`
and `entities` know.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from telegram import MessageEntity

SpanKind = Literal[
    "bold",
    "italic",
    "strikethrough",
    "spoiler",
    "code",
    "pre",
    "text_link",
    "blockquote",
    "expandable_blockquote",
]

# https://core.telegram.org/bots/api#sendmessage: "1-4096 characters after entities parsing".
# Telegram counts code points by reports; UTF-16 units are never fewer, so they are the safe side.
TEXT_UNITS = 4096
CAPTION_UNITS = 1024
ENTITIES = 100
# Endings of files that are top-level domains, too: Telegram makes links of such names.
LINKED = "md py rs sh so cc ml mk tf ps zip mov pub map java data properties".split()
FILE_NAME = re.compile(
    r"(?<![\w@/.:~-])(?:~/|\.{0,2}/)?(?!www\.)[\w-][\w.-]*"
    rf"\.(?:{'|'.join([*LINKED, *map(str.upper, LINKED)])})(?::\d+)*(?![\w@/-]|\.\w)"
)


@dataclass(frozen=True, slots=True)
class Span:
    """A style on a part of a text. `argument` is the URL of a text_link, or the language of a pre."""

    kind: SpanKind
    start: int
    end: int
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Styled:
    """A text with its spans. `spans` are sorted by start, the outer before the inner."""

    text: str
    spans: tuple[Span, ...] = ()

    def part(self, start: int, end: int) -> "Styled":
        """The text from start to end; spans that cross an edge are clipped, so fences stay balanced."""
        inside = (s for s in self.spans if s.start < end and s.end > start)
        spans = (
            replace(s, start=max(s.start, start) - start, end=min(s.end, end) - start)
            for s in inside
        )
        return Styled(self.text[start:end], tuple(spans))

    def within(self, kind: SpanKind, argument: str = "") -> "Styled":
        """The whole text inside one more span."""
        if not self.text:
            return self
        return Styled(self.text, (Span(kind, 0, len(self.text), argument), *self.spans))

    def __add__(self, other: "Styled") -> "Styled":
        offset = len(self.text)
        moved = (replace(s, start=s.start + offset, end=s.end + offset) for s in other.spans)
        return Styled(self.text + other.text, (*self.spans, *moved))


def plain(text: str) -> Styled:
    """Text without any span; lone surrogates, which UTF-8 cannot hold, are replaced."""
    return Styled(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def prose(text: str) -> Styled:
    """Plain text with file names as code, so that Telegram does not turn them into links."""
    styled = plain(text)
    names = (Span("code", *found.span()) for found in FILE_NAME.finditer(styled.text))
    return Styled(styled.text, tuple(names))


def join(parts: Iterable[Styled], separator: str = "\n") -> Styled:
    """The non-empty parts, with the separator between them."""
    joined = Styled("")
    for part in parts:
        if part.text:
            joined = joined + Styled(separator if joined.text else "") + part
    return joined


def units(text: str) -> int:
    """Length in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


def fits(styled: Styled, limit: int = TEXT_UNITS) -> bool:
    return units(styled.text) <= limit and len(styled.spans) <= ENTITIES


def entities(styled: Styled) -> list["MessageEntity"]:
    """The spans in Telegram's form."""
    from telegram import MessageEntity

    offsets = [0, *accumulate(2 if c > "\uffff" else 1 for c in styled.text)]
    return [
        MessageEntity(
            type=span.kind,
            offset=offsets[span.start],
            length=offsets[span.end] - offsets[span.start],
            url=span.argument if span.kind == "text_link" else None,
            language=(span.argument or None) if span.kind == "pre" else None,
        )
        for span in styled.spans
    ]


def split(styled: Styled, limit: int = TEXT_UNITS) -> list[Styled]:
    """Parts that each fit one message, cut at paragraphs, else lines, else words."""
    parts: list[Styled] = []
    start = skip_space(styled, 0)
    while start < len(styled.text):
        end = cut_point(styled, start, limit)
        part = styled.part(start, end)
        if part.text.strip():
            parts.append(part.part(0, len(part.text.rstrip())))
        start = skip_space(styled, end)
    return parts


def head(styled: Styled, limit: int) -> Styled:
    """The beginning that fits, with an ellipsis where something is missing."""
    parts = split(styled, limit - 2)
    if len(parts) < 2:
        return parts[0] if parts else Styled("")
    return parts[0] + Styled("\n…")


def tail(styled: Styled, limit: int) -> Styled:
    """The newest part that fits, with an ellipsis where something is missing."""
    if fits(styled, limit):
        return styled
    start = max(0, len(styled.text) - limit // 2)
    newline = styled.text.find("\n", start)
    if 0 <= newline < len(styled.text) - limit // 4:
        start = newline + 1
    elif start < (space := styled.text.find(" ", start)) < len(styled.text) - limit // 4:
        start = space + 1
    while sum(s.end > start for s in styled.spans) > ENTITIES:
        start = min(s.end for s in styled.spans if s.end > start)
    return Styled("…\n") + styled.part(start, len(styled.text))


def skip_space(styled: Styled, start: int) -> int:
    """The position after white space that Telegram would trim, without the indentation of code."""
    text = styled.text
    while start < len(text) and text[start] in " \n":
        if text[start] == " " and any(
            s.kind == "pre" and s.start <= start < s.end for s in styled.spans
        ):
            break
        start += 1
    return start


def cut_point(styled: Styled, start: int, limit: int) -> int:
    """Where the part that begins at `start` ends: within the limits of units and entities."""
    end = min(len(styled.text), start + limit)
    while (excess := units(styled.text[start:end]) - limit) > 0:
        end -= (excess + 1) // 2
    inside = [s for s in styled.spans if s.start < end and s.end > start]
    if len(inside) > ENTITIES:
        end = inside[ENTITIES].start
    end = max(end, start + 1)
    if end >= len(styled.text):
        return len(styled.text)
    size = end - start
    for separator, least in (("\n\n", size // 2), ("\n", size // 4), (" ", size // 8)):
        found = styled.text.rfind(separator, start + least, end + 1)
        if found > start:
            return found
    return end


class StyledWriter:
    """Collects rendered text: gaps between blocks, indentation, open spans."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._spans: list[Span] = []
        self._open: list[SpanKind] = []
        self._gap = 0
        self._indent = ""
        self._fresh = True  # nothing stands before us in this block

    @property
    def styled(self) -> Styled:
        spans = sorted(self._spans, key=lambda s: (s.start, -s.end))
        return Styled("".join(self._pieces), tuple(spans))

    def gap(self, lines: int) -> None:
        """Require at least so many line breaks before the next text."""
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

    def open(self, kind: SpanKind) -> bool:
        return kind in self._open

    @contextmanager
    def span(self, kind: SpanKind, argument: str = "") -> Iterator[None]:
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
        """Write on lines of their own without indentation, so that code can be copied."""
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
