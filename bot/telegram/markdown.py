"""Markdown as models write it, to text with spans that Telegram cannot refuse.

Raw text survives: HTML and generics are text here, maths is left as it was
written, and whatever Markdown would drop (an unused link definition, cells
beyond the header's, a code fence's further words) is shown.

markdown-it is loaded with the first text, not at the start of the program.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bot.telegram.styled import FILE_NAME, SpanKind, Styled, StyledWriter, plain

if TYPE_CHECKING:
    from markdown_it.token import Token
    from markdown_it.tree import SyntaxTreeNode as Node

LINKABLE = re.compile(r"https?://[\w-]+(\.[\w-]+)+(:\d+)?([/?#]|$)", re.ASCII)
FENCE_LANGUAGE = re.compile(r"[\w+#./-]{1,30}")
FENCE_TITLE = re.compile(r"""(?:title|file|filename)=(["']?)([^"'\s]+)\1""")
SPANS: dict[str, SpanKind] = {
    "strong": "bold",
    "em": "italic",
    "s": "strikethrough",
    "spoiler": "spoiler",
    "heading": "bold",
}
TABLE_COLUMNS = 35  # what a phone shows of a code block without wrapping, about


def render(markdown: str) -> Styled:
    """The text and spans of a Markdown source; too deeply nested sources come as plain text."""
    from markdown_it.tree import SyntaxTreeNode

    from bot.markdown_dialect import NESTING, parser

    source = plain(markdown)
    environment: dict[str, object] = {}
    tokens = parser().parse(source.text, environment)
    if any(token.level >= NESTING for token in tokens):
        return source
    renderer = Renderer(link_targets(tokens))
    renderer.children(SyntaxTreeNode(tokens))
    return renderer.out.styled


def link_targets(tokens: "Sequence[Token]") -> set[str]:
    """The targets of all links that are used."""

    def flat(tokens: "Sequence[Token]") -> "Iterator[Token]":
        for token in tokens:
            yield token
            yield from flat(token.children or ())

    return {str(t.attrs.get("href") or t.attrs.get("src")) for t in flat(tokens) if t.attrs}


class Renderer:
    """Writes a document's nodes, each type by the method `render_TYPE`, as text else."""

    def __init__(self, links: set[str]) -> None:
        self.out = StyledWriter()
        self._links = links

    def children(self, node: "Node") -> None:
        for child in node.children:
            getattr(self, f"render_{child.type}", self.render_text)(child)

    def render_text(self, node: "Node") -> None:
        self.words(node.content)

    def words(self, text: str) -> None:
        """Text, with the names of files as code (`FILE_NAME`), but for those that are a link's own."""
        written = 0
        for name in () if self.out.open("text_link") else FILE_NAME.finditer(text):
            self.out.write(text[written : name.start()])
            with self.out.span("code"):
                self.out.write(name.group())
            written = name.end()
        self.out.write(text[written:])

    render_inline = children

    def render_softbreak(self, _: "Node") -> None:
        self.out.write("\n")

    render_hardbreak = render_softbreak

    def render_paragraph(self, node: "Node") -> None:
        self.out.gap(1 if node.hidden else 2)
        self.children(node)

    def render_heading(self, node: "Node") -> None:
        self.out.gap(2)
        self.render_span(node)
        self.out.gap(2)

    def render_hr(self, _: "Node") -> None:
        self.out.gap(2)
        self.out.write("⸻")

    def render_blockquote(self, node: "Node") -> None:
        self.out.gap(2)
        bar = "│ " if self.out.open("blockquote") else ""  # Telegram does not nest quotes
        with self.out.span("blockquote"):
            self.out.mark(bar)
            with self.out.indented(bar):
                self.children(node)
        self.out.gap(2)

    def render_bullet_list(self, node: "Node") -> None:
        for item in node.children:
            marker = f"{item.meta['number']}. " if node.type == "ordered_list" else "• "
            tight = all(child.type != "paragraph" or child.hidden for child in item.children)
            self.out.gap(1 if tight else 2)
            self.out.mark(marker)
            with self.out.indented(" " * len(marker)):
                self.children(item)
            self.out.gap(1)
        self.out.gap(2)

    render_ordered_list = render_bullet_list

    def render_fence(self, node: "Node") -> None:
        """The language is the first word behind the fence where it looks like one; other words, a title
        among them, stand above the code."""
        words = node.info.strip().split(maxsplit=1)
        named = bool(words) and FENCE_LANGUAGE.fullmatch(words[0])
        rest = node.info.strip() if not named else words[1] if len(words) > 1 else ""
        if rest:
            titled = FENCE_TITLE.fullmatch(rest)
            self.out.gap(2)
            # As code: Telegram would make a link of a name such as add.py.
            with self.out.span("code" if titled else "bold"):
                self.out.write(titled[2] if titled else rest)
        self.code_block(node.content.rstrip("\n"), words[0] if named else "")

    render_code_block = render_fence

    def render_maths(self, node: "Node") -> None:
        self.code_block(node.content.strip("\n"))

    def code_block(self, code: str, language: str = "") -> None:
        if not code.strip():
            return
        self.out.gap(2)
        with self.out.flush_left(), self.out.span("pre", language):
            self.out.write(code)
        self.out.gap(2)

    def render_definition(self, node: "Node") -> None:
        if node.meta["href"] not in self._links:
            self.out.gap(1)
            self.out.write(node.content)

    def render_table(self, node: "Node") -> None:
        """Aligned where it is narrow enough for a phone and holds no address, else a line for each cell."""
        self.out.gap(2)
        header, *body = table_rows(node)
        linked = any(child.type in ("link", "image") for child in node.walk())
        texts = [[self.text_of(cell) for cell in row] for row in [header, *body]]
        if not linked and (lines := aligned_table(texts)):
            self.code_block(lines)
            return
        for number, row in enumerate(body or [header]):
            self.out.gap(2)
            for index, cell in enumerate(row):
                if number > 0 and not self.text_of(cell):
                    continue  # empty cells are named in the first row alone
                self.out.gap(1)
                if body and index < len(header) and (title := self.text_of(header[index])):
                    with self.out.span("bold"):
                        self.out.write(f"{title}:")
                    self.out.write(" ")
                self.words(cell) if isinstance(cell, str) else self.children(cell)
        self.out.gap(2)

    def text_of(self, node: "Node | str") -> str:
        """A node's text alone."""
        if isinstance(node, str):
            return node
        renderer = Renderer(self._links)
        renderer.children(node)
        return renderer.out.styled.text

    def render_code_inline(self, node: "Node") -> None:
        if self.out.open("text_link"):
            self.out.write(node.content)
            return
        with self.out.span("code"):
            self.out.write(node.content)

    def render_link(self, node: "Node") -> None:
        href = str(node.attrs.get("href") or node.attrs.get("src") or "")
        label = self.text_of(node) or node.content or href
        if LINKABLE.match(href) and not self.out.open("text_link"):
            with self.out.span("text_link", href):
                self.children(node) if node.children else self.out.write(label)
        else:  # Telegram would not open it: the target is shown instead
            self.children(node) if node.children else self.words(label)
            self.words(f" ({href})" if href and href != label else "")
        self.words(f" ({node.attrs['title']})" if node.attrs.get("title") else "")

    render_image = render_link

    def render_span(self, node: "Node") -> None:
        with self.out.span(SPANS[node.type]):
            self.children(node)

    render_strong = render_em = render_s = render_spoiler = render_span


def table_rows(node: "Node") -> "list[list[Node | str]]":
    """A table's cells, the header first; cells beyond the header's as their source text."""
    return [
        [*(cell.children[0] for cell in row.children), *row.meta.get("beyond", ())]
        for part in node.children
        for row in part.children
    ]


def aligned_table(rows: list[list[str]]) -> str | None:
    """The lines of a table in a font of one width; None where it is too wide."""
    count = max(map(len, rows))
    filled = [row + [""] * (count - len(row)) for row in rows]
    widths = [max(map(columns, cells)) for cells in zip(*filled, strict=True)]
    if sum(widths) + 3 * (count - 1) > TABLE_COLUMNS or any("\n" in c for row in rows for c in row):
        return None
    padded = [
        [c + " " * (width - columns(c)) for c, width in zip(row, widths, strict=True)]
        for row in filled
    ]
    header, *body = (" │ ".join(row).rstrip() for row in padded)
    return "\n".join([header, "─┼─".join("─" * width for width in widths), *body])


def columns(text: str) -> int:
    """Width in a font of one width: East Asian characters take two columns, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
