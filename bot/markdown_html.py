"""Markdown to HTML, in the tags that messaging apps show. A picture becomes a link: apps would fetch it from
another server."""

import re
from html import escape
from typing import TYPE_CHECKING, Any

from bot.markdown_dialect import NESTING, parser

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

LINKABLE = re.compile(r"(?:https?|mailto|matrix):|https://matrix\.to/", re.IGNORECASE)


def as_html(text: str, renderer: "RendererHTML") -> str:
    """HTML, or the escaped source where it is nested too deeply."""
    markdown = parser()
    tokens = markdown.parse(text)
    if any(token.level >= NESTING for token in tokens):
        return f"<p>{escape(text, quote=False)}</p>"
    return renderer.render(tokens, markdown.options, {}).strip()


def html_renderer(tags: "Mapping[str, str]") -> "RendererHTML":
    """`tags`: one app's tags, by the type of markdown-it's token."""
    from markdown_it.renderer import RendererHTML

    made = RendererHTML()

    def source(tokens: "Sequence[Token]", index: int, *_: Any) -> str:
        return f"<p>{escape(tokens[index].content, quote=False)}</p>\n"

    def code(tokens: "Sequence[Token]", index: int, *_: Any) -> str:
        return f"<pre><code>{escape(tokens[index].content, quote=False)}</code></pre>\n"

    def picture(tokens: "Sequence[Token]", index: int, *_: Any) -> str:
        token = tokens[index]
        address, words = str(token.attrs.get("src") or ""), token.content
        shown = escape(words or address, quote=False)
        if not LINKABLE.match(address):
            return shown
        return f'<a href="{escape(address)}">{shown}</a>'

    def item(tokens: "Sequence[Token]", index: int, *_: Any) -> str:
        """Apps number items themselves: after a gap in the numbers, a new list begins."""
        meta = tokens[index].meta
        return f'</ol>\n<ol start="{meta["number"]}">\n<li>' if meta.get("gap") else "<li>"

    def row_end(tokens: "Sequence[Token]", index: int, *_: Any) -> str:
        """Add the cells that have no column in the header."""
        start = max(n for n in range(index) if tokens[n].type == "tr_open")
        beyond = tokens[start].meta.get("beyond", ())
        return "".join(f"<td>{escape(cell, quote=False)}</td>" for cell in beyond) + "</tr>\n"

    rules: dict[str, Any] = {
        "list_item_open": item,
        "tr_close": row_end,
        "maths": code,
        "definition": source,
        "image": picture,
        **{name: lambda *_, tag=tag: tag for name, tag in tags.items()},
    }
    made.rules |= rules
    return made
