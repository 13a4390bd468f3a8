"""Markdown to the content of Matrix messages: a plain body, and HTML of what apps show
(https://spec.matrix.org/v1.16/client-server-api/#mroommessage-msgtypes); long texts in parts.

The plain body is the Markdown itself. No picture is named that an app would fetch from elsewhere.
"""

import re
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from bot.markdown_dialect import as_html, html_renderer

if TYPE_CHECKING:
    from markdown_it.renderer import RendererHTML

PART_BYTES = 12_000  # of Markdown; an event has 65,536, encrypted and with its HTML
HTML_BYTES = 30_000
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")


def message_content(text: str, kind: str = "m.text") -> dict[str, Any]:
    """The content of an m.room.message."""
    content: dict[str, Any] = {"msgtype": kind, "body": text}
    html = as_html(text, renderer())
    if html != f"<p>{escape(text, quote=False)}</p>" and len(html.encode()) <= HTML_BYTES:
        content |= {"format": "org.matrix.custom.html", "formatted_body": html}
    return content


@cache
def renderer() -> "RendererHTML":
    return html_renderer({"spoiler_open": "<span data-mx-spoiler>", "spoiler_close": "</span>"})


def split(text: str, most: int = PART_BYTES) -> list[str]:
    """The text in parts of at most so many bytes of UTF-8, cut between paragraphs where it can be; a block
    of code that is cut is closed and opened again."""
    parts: list[str] = []
    lines: list[str] = []
    size, fence = 0, ""
    for line in text.split("\n"):
        for piece in pieces(line, most // 2):
            room = most - len(fence) * 2 - 8
            if lines and size + len(piece.encode()) + 1 > room:
                kept = 0 if fence else paragraph_end(lines)
                rest = lines[kept:] if kept else []
                done = lines[:kept] if kept else lines
                parts.append("\n".join([*done, fence] if fence else done).strip("\n"))
                lines = [fence] if fence else rest
                size = sum(len(each.encode()) + 1 for each in lines)
            lines.append(piece)
            size += len(piece.encode()) + 1
        if found := FENCE.match(line):
            mark = found[1]
            if not fence:
                fence = mark
            elif mark[0] == fence[0] and len(mark) >= len(fence) and line.strip() == mark:
                fence = ""
    parts.append("\n".join(lines).strip("\n"))
    return [part for part in parts if part.strip()] or [text]


def paragraph_end(lines: list[str]) -> int:
    """How many of the lines end with a whole paragraph, at least half of them; 0 where none does."""
    found = [n for n in range(len(lines) // 2, len(lines)) if n and not lines[n].strip()]
    return found[-1] if found else 0


def pieces(line: str, most: int) -> list[str]:
    """A line in pieces of at most so many bytes, between words where it can be."""
    if len(line.encode()) <= most:
        return [line]
    found: list[str] = []
    while len(line.encode()) > most:
        head = line.encode()[:most].decode("utf-8", "ignore")
        cut = head.rfind(" ") + 1 or len(head)
        found.append(line[:cut])
        line = line[cut:]
    return [*found, line]
