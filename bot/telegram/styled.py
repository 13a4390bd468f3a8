"""Text with styled spans, in Python's own string offsets, and how it is cut to fit messages.

Telegram counts entity offsets in UTF-16 units; only `units` and `entities` know that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from telegram import MessageEntity

Kind = Literal[
    "bold",
    "italic",
    "strikethrough",
    "code",
    "pre",
    "text_link",
    "blockquote",
    "expandable_blockquote",
]

# https://core.telegram.org/bots/api#sendmessage: "1-4096 characters after entities parsing".
# Telegram is said to count code points; UTF-16 units are never fewer, so they are the safe side.
TEXT_UNITS = 4096
CAPTION_UNITS = 1024
ENTITIES = 100


@dataclass(frozen=True, slots=True)
class Span:
    """`argument` is the URL of a text_link, or the language of a pre."""

    kind: Kind
    start: int
    end: int
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Styled:
    """`spans` are sorted by start, the outer before the inner."""

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

    def within(self, kind: Kind, argument: str = "") -> "Styled":
        """The whole text inside one more span."""
        if not self.text:
            return self
        return Styled(self.text, (Span(kind, 0, len(self.text), argument), *self.spans))

    def __add__(self, other: "Styled") -> "Styled":
        offset = len(self.text)
        moved = (replace(s, start=s.start + offset, end=s.end + offset) for s in other.spans)
        return Styled(self.text + other.text, (*self.spans, *moved))


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
    start = _skip_space(styled, 0)
    while start < len(styled.text):
        end = _end(styled, start, limit)
        part = _trimmed(styled.part(start, end))
        if part.text:
            parts.append(part)
        start = _skip_space(styled, end)
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
    start = newline + 1 if 0 <= newline < len(styled.text) - limit // 4 else start
    while sum(s.end > start for s in styled.spans) > ENTITIES:
        start = min(s.end for s in styled.spans if s.end > start)
    return Styled("…\n") + styled.part(start, len(styled.text))


def _skip_space(styled: Styled, start: int) -> int:
    """Past white space that Telegram would trim; the indentation of code stays."""
    text = styled.text
    while start < len(text) and text[start] in " \n":
        if text[start] == " " and _in_code(styled.spans, start):
            break
        start += 1
    return start


def _in_code(spans: Sequence[Span], position: int) -> bool:
    return any(s.kind == "pre" and s.start <= position < s.end for s in spans)


def _end(styled: Styled, start: int, limit: int) -> int:
    hard = _capped(styled, start, _reach(styled.text, start, limit))
    if hard >= len(styled.text):
        return len(styled.text)
    room = hard - start
    for separator, least in (("\n\n", room // 2), ("\n", room // 4), (" ", room // 8)):
        found = styled.text.rfind(separator, start + least, hard + 1)
        if found > start:
            return found
    return hard


def _reach(text: str, start: int, limit: int) -> int:
    end = min(len(text), start + limit)
    while (excess := units(text[start:end]) - limit) > 0:
        end -= (excess + 1) // 2
    return max(end, start + 1)


def _capped(styled: Styled, start: int, end: int) -> int:
    inside = [s for s in styled.spans if s.start < end and s.end > start]
    if len(inside) <= ENTITIES:
        return end
    return max(inside[ENTITIES].start, start + 1)


def _trimmed(part: Styled) -> Styled:
    return part.part(0, len(part.text.rstrip()))
