"""Answers with tables or headings as rich messages, which newer apps lay out themselves
(https://core.telegram.org/bots/api#rich-message-formatting-options, with their limits)."""

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.renderer import RendererHTML

CHARACTERS, BLOCKS, LEVELS, COLUMNS = 32_768, 500, 16, 20
CELL = re.compile(r' style="text-align:(left|center|right)"')
GAINS = {"table_open", "heading_open"}  # what entities cannot show


def rich_html(text: str) -> str | None:
    """The HTML of a rich message; None where entities show as much, or it would be beyond the limits."""
    from bot.markdown_dialect import parser  # it loads markdown-it, which a start need not wait for
    from bot.markdown_html import as_html

    tokens = parser().parse(text)
    opened = [token.type for token in tokens if token.nesting >= 0]
    columns = opened.count("th_open") + opened.count("td_open")  # of one row at most, mostly less
    rows = opened.count("tr_open")
    if GAINS.isdisjoint(opened) or len(text) > CHARACTERS or len(opened) > BLOCKS:
        return None
    if any(token.level >= LEVELS for token in tokens) or (rows and columns > COLUMNS * rows):
        return None
    html = as_html(text, renderer())
    return CELL.sub(r' align="\1"', html).replace("<br />", "<br>")


@cache
def renderer() -> "RendererHTML":
    from bot.markdown_html import html_renderer

    tags = dict.fromkeys(("thead_open", "thead_close", "tbody_open", "tbody_close"), "")
    tags |= {"spoiler_open": "<tg-spoiler>", "spoiler_close": "</tg-spoiler>"}
    return html_renderer({**tags, "table_open": "<table bordered>"})
