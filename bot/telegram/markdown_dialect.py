"""Where our reading of Markdown differs from CommonMark's: nothing that a person may miss is dropped."""

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock, reference, table
from markdown_it.rules_block.table import escapedSplit, getLine
from markdown_it.rules_inline import StateInline, autolink
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode as Node

_LANGUAGE = re.compile(r"[\w+#./-]{1,30}")
# The rule of pandoc: no space inside the dollars, no digit behind the closing one.
_INLINE_MATHS = re.compile(
    r"\$\$.+?\$\$|\\\(.+?\\\)|\\\[.+?\\\]|\$(?!\s)[^$\n]+(?<![\s\\])\$(?!\d)", re.DOTALL
)
_BLOCK_MATHS = {"$$": "$$", "\\[": "\\]"}


def install(parser: MarkdownIt) -> MarkdownIt:
    around: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("fence", "maths", _block_maths, around)
    parser.block.ruler.at("reference", _definition)
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("escape", "maths", _inline_maths)
    parser.inline.ruler.at("autolink", _autolink)
    return parser


def language(info: str) -> tuple[str, str]:
    """A fence's language, and whatever else its first line says."""
    words = info.strip().split(maxsplit=1)
    if not words or not _LANGUAGE.fullmatch(words[0]):
        return "", info.strip()
    return words[0], words[1] if len(words) > 1 else ""


def links(tokens: Sequence[Token]) -> set[str]:
    """The targets of all links that are used."""
    return {str(t.attrs.get("href") or t.attrs.get("src")) for t in _flat(tokens) if t.attrs}


def rows(node: Node) -> list[list[Node | str]]:
    """A table's cells, the header first; cells beyond the header's as their source text."""
    return [
        [*(cell.children[0] for cell in row.children), *row.meta.get("beyond", ())]
        for part in node.children
        for row in part.children
    ]


def _flat(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flat(token.children or ())


def _inline_maths(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    found = _INLINE_MATHS.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.pending += found.group()
    state.pos = found.end()
    return True


def _block_maths(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    first = _line(state, start)
    closing = _BLOCK_MATHS.get(first[:2])
    if closing is None or state.is_code_block(start):
        return False
    last = start
    while closing not in (first[2:] if last == start else _line(state, last)):
        last += 1
        if last >= end or state.isEmpty(last) or state.sCount[last] < state.blkIndent:
            return False
    if not _line(state, last).rstrip().endswith(closing):
        return False
    if not silent:
        _push(state, "maths", start, last + 1)
    return True


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _push(state: StateBlock, kind: str, start: int, stop: int) -> Token:
    token = state.push(kind, "", 0)
    token.map = [start, stop]
    token.content = state.getLines(start, stop, state.blkIndent, False).strip("\n")
    token.block = True
    state.line = stop
    return token


def _definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A link definition, kept: it is shown where no link uses it."""
    known = dict(state.env.get("references", {}))
    if not reference(state, start, end, silent):
        return False
    if not silent:
        new = [v for k, v in state.env["references"].items() if k not in known]
        stop = state.line
        _push(state, "definition", start, stop).meta["href"] = new[0]["href"] if new else None
    return True


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    before = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    for token in [] if silent else state.tokens[before:]:
        if token.type == "tr_open" and token.map and token.map[0] > start:
            token.meta["beyond"] = _beyond(state, start, token.map[0])
    return True


def _beyond(state: StateBlock, header: int, row: int) -> list[str]:
    return _cells(getLine(state, row))[len(_cells(getLine(state, header))) :]


def _cells(line: str) -> list[str]:
    cells = [cell.strip() for cell in escapedSplit(line.strip())]
    cells = cells[1:] if cells and not cells[0] else cells
    return cells[:-1] if cells and not cells[-1] else cells


def _autolink(state: StateInline, silent: bool) -> bool:
    """Only web addresses: `Vec<std::string>` and `Jane <jane@example.org>` are text."""
    if not state.src.startswith(("<http://", "<https://"), state.pos):
        return False
    return autolink(state, silent)
