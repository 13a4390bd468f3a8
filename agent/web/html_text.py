"""The text of an HTML page, as a person would read it.

A scanner of our own, linear in the page's size: html.parser reads unclosed comments and tags
anew from each start (minutes for 4 MiB), the fast tree builder (selectolax) is quadratic in depth,
and what finds "the article" (trafilatura, readability) loses forum answers and price tables.
"""

import re
import sys
from collections import defaultdict
from html import unescape

from agent.sandbox.output_buffer import clean

RAW = {"script", "style", "iframe", "xmp", "noembed", "noframes"}  # no tags within
HIDDEN = {"noscript", "template", "svg", "canvas", "select", "nav"}
BLOCKS = set(
    "address article aside blockquote br dd details div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hr legend li main nav ol p pre section summary table tr ul".split()
)
MARKS = {f"h{level}": "#" * level + " " for level in range(1, 7)} | dict.fromkeys(
    ("td", "th"), " | "
)
MARKS["li"] = "- "

MARKUP = re.compile(r"<(?=[a-zA-Z!?]|/.)", re.DOTALL)
TAG_START = re.compile(r"</?[a-zA-Z]")
TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*+)(?:[^>=]|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+>""")
SPACE = re.compile(r"[ \t\r\n\f]+")
KEPT_SPACE = "\xa0"  # of <pre>


def html_text(html: str) -> str:
    """Title, then blocks of text; headings and list items are marked as in Markdown.

    What is not closed (a comment, a tag, a script) takes the rest of the page, as in a browser.
    """
    page = PageText()
    at: int | None = 0
    while at is not None:
        markup = MARKUP.search(html, at)
        page.add_text(html[at : markup.start() if markup else None])
        at = after_markup(html, markup.start(), page) if markup else None
    return page.text()


def main(charset: str, kind: str) -> None:
    """From standard input to output (UTF-8): a page's text, without what drives terminals.

    Run by an isolated interpreter (agent.web.fetch.page_text).
    """
    page = sys.stdin.buffer.read()
    try:
        text = page.decode(charset, "replace")
    except (LookupError, ValueError):
        text = page.decode("utf-8", "replace")
    text = clean(html_text(text) if kind == "html" else text)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def after_markup(html: str, at: int, page: "PageText") -> int | None:
    """Tell the page of a tag; where the text goes on, None where it does not."""
    if html.startswith("<!--", at):
        end = html.find("-->", at + 2)
        return None if end < 0 else end + 3
    if not TAG_START.match(html, at):  # a declaration, or an end tag without a name
        end = html.find(">", at)
        return None if end < 0 else end + 1
    tag = TAG.match(html, at)
    if tag is None:
        return None
    name = tag[2].lower()
    if tag[1]:
        page.end(name)
    elif name in RAW:
        close = re.compile(rf"</{name}\b", re.IGNORECASE).search(html, tag.end())
        return close.start() if close else None
    else:
        page.start(name)
    return tag.end()


class PageText:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._title: list[str] = []
        self._in_title = False
        self._pre = 0  # depth of <pre>, where line breaks count
        self._hidden_from: defaultdict[str, list[int]] = defaultdict(list)

    def start(self, name: str) -> None:
        self._in_title = name == "title" and not self._title and not any(self._hidden_from.values())
        self._pre += name == "pre"
        if name in BLOCKS:
            self._pieces.append("\n")
        if name in MARKS:
            self._pieces.append(MARKS[name])
        if name in HIDDEN:
            self._hidden_from[name].append(len(self._pieces))

    def end(self, name: str) -> None:
        self._in_title = False
        self._pre -= name == "pre" and self._pre > 0
        if name in HIDDEN and self._hidden_from[name]:
            del self._pieces[self._hidden_from[name].pop() :]
        if name in BLOCKS:
            self._pieces.append("\n")

    def add_text(self, raw: str) -> None:
        text = unescape(raw)
        if self._in_title:
            self._title.append(text)
        elif self._pre:
            self._pieces.append(text.replace(" ", KEPT_SPACE))
        else:
            self._pieces.append(SPACE.sub(" ", text))

    def text(self) -> str:
        lines = [line.rstrip(" ") for line in "".join(self._pieces).split("\n")]
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(line.removeprefix(" ") for line in lines))
        title = " ".join("".join(self._title).split())
        parts = (title, body.strip(" \n"))
        return "\n\n".join(part for part in parts if part).replace(KEPT_SPACE, " ")
