"""Markdown as models write it: markdown-it with other rules where CommonMark's would drop text that a person may
miss. Each messaging app renders the tokens in its own form."""

import re
import unicodedata
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock, reference, table
from markdown_it.rules_block.table import escapedSplit, getLine
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline, autolink, emphasis, text
from markdown_it.token import Token

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

# The rule of pandoc: no space inside the dollars, no digit behind the closing one.
INLINE_MATHS = re.compile(
    r"\$\$.+?\$\$|\\\(.+?\\\)|\\\[.+?\\\]|\$(?!\s)[^$\n]+(?<![\s\\])\$(?!\d)", re.DOTALL
)
# Between two marks that touch no word outside: `a||b` is code, `||x||` a norm.
SPOILER = re.compile(r"(?<![\w|])\|\|(?=[^\s|])([^\n]+?[^\s|])\|\|(?![\w|])")
DUNDER = re.compile(r"__[a-z][a-z0-9_]*__(?!\w)")  # a name such as __init__
ATTRIBUTE, SUFFIX = re.compile(r"\w\.\Z"), re.compile(r"\.\w")  # self._x, init__.py
BLOCK_MATHS = {"$$": "$$", "\\[": "\\]"}
NESTING = 60


@cache
def parser() -> MarkdownIt:
    options = {"html": False, "breaks": True, "maxNesting": NESTING + 1}
    return install(MarkdownIt("commonmark", options).enable(["table", "strikethrough"]))


def install(parser: MarkdownIt) -> MarkdownIt:
    around: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("fence", "maths", block_maths, around)
    parser.block.ruler.at("reference", link_definition)
    parser.block.ruler.at("table", table_with_all_cells, {"alt": ["paragraph", "reference"]})
    parser.core.ruler.after("block", "item_numbers", item_numbers)
    parser.inline.ruler.before("escape", "maths", inline_maths)
    parser.inline.ruler.at("text", text_up_to_bars)
    parser.inline.ruler.before("emphasis", "spoiler", spoiler)
    parser.inline.ruler.at("emphasis", emphasis_between_words)
    parser.inline.ruler.at("autolink", web_autolink)
    return parser


def item_numbers(state: StateCore) -> None:
    """Items keep the numbers that they were written with, which people may refer to; one that repeats the number of
    the item before (`1. 1. 1.`) gets the next. `gap`: its number does not follow that of the item before."""
    lists: list[tuple[str, int]] = []
    for token in state.tokens:
        if token.type in ("ordered_list_open", "bullet_list_open"):
            lists.append(("", 0))
        elif token.type in ("ordered_list_close", "bullet_list_close"):
            lists.pop()
        elif token.type == "list_item_open" and token.info:
            written, before = lists[-1]
            number = before + 1 if token.info == written else int(token.info)
            lists[-1] = token.info, number
            token.meta |= {"number": number, "gap": bool(written) and number != before + 1}


def inline_maths(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    found = INLINE_MATHS.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.pending += found.group()
    state.pos = found.end()
    return True


def text_up_to_bars(state: StateInline, silent: bool) -> bool:
    """End a run of text at bars, too, so that `spoiler` is tried."""
    start = state.pos
    if state.src.startswith("||", start) or not text(state, silent):
        return False
    bars = state.src.find("||", start, state.pos)
    if bars >= 0:
        if not silent:
            state.pending = state.pending[: bars - state.pos]
        state.pos = bars
    return True


def spoiler(state: StateInline, silent: bool) -> bool:
    found = SPOILER.match(state.src, state.pos) if state.src[state.pos] == "|" else None
    if found is None or found.end() > state.posMax:
        return False
    if not silent:
        end = state.posMax
        state.push("spoiler_open", "span", 1)
        state.pos, state.posMax = found.start(1), found.end(1)
        state.md.inline.tokenize(state)
        state.push("spoiler_close", "span", -1)
        state.posMax = end
    state.pos = found.end()
    return True


def emphasis_between_words(state: StateInline, silent: bool) -> bool:
    """Asterisks between two operands (2*3*4, f(x)*g(x)) begin no emphasis, a single one ends none, and
    names keep their underscores.

    Scripts without spaces between words are excepted.
    """
    begun = len(state.delimiters)
    if state.src[state.pos] == "_" and (name := DUNDER.match(state.src, state.pos)):
        if silent or (state.pos and is_operand(state.src[state.pos - 1])):
            return False
        state.pending += name.group()
        state.pos = name.end()
        return True
    start = state.pos
    if not emphasis.tokenize(state, silent):
        return False
    before, behind = state.src[:start], state.src[state.pos :]
    if state.src[start] == "*":
        # Underscores belong to a name: __main__*2.
        first, second = before.rstrip("_")[-1:], behind.lstrip("_")[:1]
        if is_operand(first, ")]") and is_operand(second, "(["):
            for delimiter in state.delimiters[begun:]:
                delimiter.open = False
                delimiter.close = delimiter.close and state.pos - start > 1
    else:
        for delimiter in state.delimiters[begun:]:
            delimiter.open = delimiter.open and not ATTRIBUTE.search(before[-2:])
            delimiter.close = delimiter.close and not SUFFIX.match(behind[:2])
    return True


def is_operand(character: str, brackets: str = "") -> bool:
    """Whether an operand may end or begin with the character."""
    narrow = character.isalnum() and unicodedata.east_asian_width(character) not in "WF"
    return narrow or (bool(character) and character in brackets)


def block_maths(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    first = line_text(state, start)
    closing = BLOCK_MATHS.get(first[:2])
    if closing is None or state.is_code_block(start):
        return False
    last = start
    while closing not in (first[2:] if last == start else line_text(state, last)):
        last += 1
        if last >= end or state.isEmpty(last) or state.sCount[last] < state.blkIndent:
            return False
    if not line_text(state, last).rstrip().endswith(closing):
        return False
    if not silent:
        push_source(state, "maths", start, last + 1)
    return True


def line_text(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def push_source(state: StateBlock, kind: str, start: int, stop: int) -> Token:
    token = state.push(kind, "", 0)
    token.map = [start, stop]
    token.content = state.getLines(start, stop, state.blkIndent, False).strip("\n")
    token.block = True
    state.line = stop
    return token


def link_definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Keep a token for a link definition, so that it can be shown if no link uses it."""
    known = dict(state.env.get("references", {}))
    if not reference(state, start, end, silent):
        return False
    if not silent:
        new = [v for k, v in state.env["references"].items() if k not in known]
        stop = state.line
        push_source(state, "definition", start, stop).meta["href"] = new[0]["href"] if new else None
    return True


def table_with_all_cells(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    before = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    for token in [] if silent else state.tokens[before:]:
        if token.type == "tr_open" and token.map and token.map[0] > start:
            token.meta["beyond"] = cells_beyond(state, start, token.map[0])
    return True


def cells_beyond(state: StateBlock, header: int, row: int) -> list[str]:
    return split_cells(getLine(state, row))[len(split_cells(getLine(state, header))) :]


def split_cells(line: str) -> list[str]:
    cells = [cell.strip() for cell in escapedSplit(line.strip())]
    cells = cells[1:] if cells and not cells[0] else cells
    return cells[:-1] if cells and not cells[-1] else cells


def web_autolink(state: StateInline, silent: bool) -> bool:
    """Link `<...>` only if it is a web address: `Vec<std::string>` and `Jane <jane@example.org>` are text."""
    if not state.src.startswith(("<http://", "<https://"), state.pos):
        return False
    return autolink(state, silent)


# -- HTML ---------------------------------------------------------------------


LINKABLE = re.compile(r"(?:https?|mailto|matrix):|https://matrix\.to/", re.IGNORECASE)


def as_html(text: str, renderer: "RendererHTML") -> str:
    """Render HTML; a source that is nested too deeply is escaped instead."""
    markdown = parser()
    tokens = markdown.parse(text)
    if any(token.level >= NESTING for token in tokens):
        return f"<p>{escape(text, quote=False)}</p>"
    return renderer.render(tokens, markdown.options, {}).strip()


def html_renderer(tags: "Mapping[str, str]") -> "RendererHTML":
    """Create a renderer with an app's HTML tags, `tags`, by the type of markdown-it's token."""
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
        """Render an item. As apps number items themselves, a new list begins after a gap in the numbers."""
        meta = tokens[index].meta
        return f'</ol>\n<ol start="{meta["number"]}">\n<li>' if meta.get("gap") else "<li>"

    def row_end(tokens: "Sequence[Token]", index: int, *_: Any) -> str:
        """Render the end of a row, with the cells beyond the header's columns."""
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
