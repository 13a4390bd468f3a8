"""Markdown as models write it, to text with spans that Telegram cannot refuse.

Raw text survives: HTML and generics are text here, maths is left as it was
written, and whatever markdown would drop (an unused link definition, cells
beyond the header's, a code fence's further words) is shown.
"""

import re
from collections.abc import Callable
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode as Node

from bot.telegram import markdown_dialect
from bot.telegram.render import plain
from bot.telegram.styled import Styled
from bot.telegram.table import table
from bot.telegram.writer import Writer

_LINKABLE = re.compile(r"https?://[\w-]+(\.[\w-]+)+(:\d+)?([/?#]|$)", re.ASCII)
_NESTING = 60

Cells = list[Node | str]


def page(markdown: str) -> Styled:
    """The text and spans of a Markdown source; too deeply nested sources come as plain text."""
    source = plain(markdown)
    environment: dict[str, object] = {}
    tokens = _parser().parse(source.text, environment)
    if any(token.level >= _NESTING for token in tokens):
        return source
    return _Page(tokens).styled


@cache
def _parser() -> MarkdownIt:
    options = {"html": False, "breaks": True, "maxNesting": _NESTING + 1}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    return markdown_dialect.install(parser)


class _Page:
    """One rendering: walks the tree, writes to a Writer."""

    def __init__(self, tokens: list[Token]) -> None:
        self.out = Writer()
        self._links = markdown_dialect.links(tokens)
        self._blocks(Node(tokens))

    @property
    def styled(self) -> Styled:
        return self.out.styled

    def _blocks(self, node: Node) -> None:
        for child in node.children:
            _RENDER.get(child.type, _Page._text)(self, child)

    def _text(self, node: Node) -> None:
        self.out.write(node.content)

    def _break(self, node: Node) -> None:
        self.out.write("\n")

    def _paragraph(self, node: Node) -> None:
        self.out.gap(1 if node.hidden else 2)
        self._blocks(node)

    def _heading(self, node: Node) -> None:
        self.out.gap(2)
        with self.out.span("bold"):
            self._blocks(node)
        self.out.gap(2)

    def _rule(self, node: Node) -> None:
        self.out.gap(2)
        self.out.write("⸻")

    def _quote(self, node: Node) -> None:
        self.out.gap(2)
        inner = self.out.open("blockquote")
        with self.out.span("blockquote"):
            self.out.mark("│ " if inner else "")
            with self.out.indented("│ " if inner else ""):
                self._blocks(node)
        self.out.gap(2)

    def _list(self, node: Node) -> None:
        first = int(node.attrs.get("start", 1))
        ordered = node.type == "ordered_list"
        for number, item in enumerate(node.children, first):
            self._item(item, f"{number}. " if ordered else "• ")
        self.out.gap(2)

    def _item(self, node: Node, marker: str) -> None:
        tight = all(child.type != "paragraph" or child.hidden for child in node.children)
        self.out.gap(1 if tight else 2)
        self.out.mark(marker)
        with self.out.indented(" " * len(marker)):
            self._blocks(node)
        self.out.gap(1)

    def _code_block(self, node: Node) -> None:
        language, rest = markdown_dialect.language(node.info)
        code = f"{rest}\n{node.content}" if rest else node.content
        self._pre(code.rstrip("\n"), language)

    def _pre(self, code: str, language: str = "") -> None:
        if not code.strip():
            return
        self.out.gap(2)
        with self.out.flush_left(), self.out.span("pre", language):
            self.out.write(code)
        self.out.gap(2)

    def _maths(self, node: Node) -> None:
        self._pre(node.content.strip("\n"))

    def _definition(self, node: Node) -> None:
        if node.meta["href"] not in self._links:
            self.out.gap(1)
            self.out.write(node.content)

    def _table(self, node: Node) -> None:
        self.out.gap(2)
        rows, lines = markdown_dialect.rows(node), table(node, self._cell)
        if lines is not None:
            self._pre(lines)
            return
        for number, row in enumerate(rows[1:] or rows[:1]):
            self._record(rows[0], row, whole=number == 0)
        self.out.gap(2)

    def _cell(self, node: Node | str) -> str:
        """A cell's text alone, for tables in one width."""
        if isinstance(node, str):
            return node
        page = _Page([])
        page._links = self._links
        page._blocks(node)
        return page.styled.text

    def _record(self, header: Cells, row: Cells, *, whole: bool) -> None:
        """A row of a table too wide for a phone: a line for each cell; a whole one names the empty too."""
        self.out.gap(2)
        for index, cell in enumerate(row):
            if whole or self._cell(cell):
                self._field(
                    header[index] if header is not row and index < len(header) else "", cell
                )

    def _field(self, name: Node | str, cell: Node | str) -> None:
        self.out.gap(1)
        if title := self._cell(name):
            with self.out.span("bold"):
                self.out.write(f"{title}:")
            self.out.write(" ")
        self._blocks(cell) if isinstance(cell, Node) else self.out.write(cell)

    def _code(self, node: Node) -> None:
        if self.out.open("text_link"):
            self.out.write(node.content)
            return
        with self.out.span("code"):
            self.out.write(node.content)

    def _link(self, node: Node) -> None:
        href = str(node.attrs.get("href") or node.attrs.get("src") or "")
        label = self._cell(node) or node.content or href
        title = f" ({node.attrs['title']})" if node.attrs.get("title") else ""
        if not _LINKABLE.match(href) or self.out.open("text_link"):
            # Telegram would not open it: the target is shown instead.
            self._label(node, label)
            self.out.write(f" ({href})" if href and href != label else "")
        else:
            with self.out.span("text_link", href):
                self._label(node, label)
        self.out.write(title)

    def _label(self, node: Node, label: str) -> None:
        self._blocks(node) if node.children else self.out.write(label)


def _styled_as(kind: str) -> Callable[[_Page, Node], None]:
    def write(page: _Page, node: Node) -> None:
        with page.out.span(kind):  # type: ignore[arg-type]
            page._blocks(node)

    return write


_RENDER: dict[str, Callable[[_Page, Node], None]] = {
    "inline": _Page._blocks,
    "softbreak": _Page._break,
    "hardbreak": _Page._break,
    "paragraph": _Page._paragraph,
    "heading": _Page._heading,
    "hr": _Page._rule,
    "blockquote": _Page._quote,
    "bullet_list": _Page._list,
    "ordered_list": _Page._list,
    "fence": _Page._code_block,
    "code_block": _Page._code_block,
    "maths": _Page._maths,
    "definition": _Page._definition,
    "table": _Page._table,
    "code_inline": _Page._code,
    "link": _Page._link,
    "image": _Page._link,
    "strong": _styled_as("bold"),
    "em": _styled_as("italic"),
    "s": _styled_as("strikethrough"),
}
