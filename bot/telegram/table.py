"""A table in one width, where it is narrow enough for a phone."""

import unicodedata
from collections.abc import Callable, Sequence

from markdown_it.tree import SyntaxTreeNode as Node

from bot.telegram import markdown_dialect

# What a phone shows of a code block without wrapping: about 35 columns.
_COLUMNS = 35


def table(node: Node, text: Callable[[Node | str], str]) -> str | None:
    """The table's lines, aligned, or None where it is too wide."""
    cells = [[text(cell) for cell in row] for row in markdown_dialect.rows(node)]
    count = max(map(len, cells))
    filled = [row + [""] * (count - len(row)) for row in cells]
    widths = [max(map(_width, column)) for column in zip(*filled, strict=True)]
    if sum(widths) + 3 * (count - 1) > _COLUMNS or any("\n" in c for row in cells for c in row):
        return None
    header, *body = (_line(row, widths) for row in filled)
    return "\n".join([header, "─┼─".join("─" * width for width in widths), *body])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True))
    return " │ ".join(padded).rstrip()


def _width(text: str) -> int:
    """In columns of a monospaced font."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
