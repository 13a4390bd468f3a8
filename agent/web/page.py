"""The text of an HTML page, as a person would read it. Pure."""

import re
from html.parser import HTMLParser

_SILENT = {"script", "style", "noscript", "template", "svg", "canvas", "iframe", "select"}
_BLOCKS = set(
    "address article aside blockquote br dd details div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hr legend li main nav ol p pre section summary table tr ul".split()
)
_FIRM = "\xa0"  # a space that stays
_LOOSE = re.compile(r"[ \t\r\n\f]+")
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}


def text_of(html: str) -> str:
    """Title, then blocks of text; headings and list items are marked as in Markdown."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._pieces: list[str] = []
        self._silent = 0
        self._kept = 0  # depth of <pre>, where line breaks count
        self._in_title = False
        self._title = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in _SILENT
        self._kept += tag == "pre"
        self._in_title = tag == "title"
        if tag in _BLOCKS:
            self._pieces.append("\n")
        if tag in ("td", "th"):
            self._pieces.append(" | ")
        self._pieces.append(_HEADINGS.get(tag, "- " if tag == "li" else ""))

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in _SILENT))
        self._kept = max(0, self._kept - (tag == "pre"))
        self._in_title = False
        if tag in _BLOCKS:
            self._pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title += data
        elif not self._silent:
            self._pieces.append(data.replace(" ", _FIRM) if self._kept else _LOOSE.sub(" ", data))

    def text(self) -> str:
        lines = [line.rstrip() for line in "".join(self._pieces).split("\n")]
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(line.removeprefix(" ") for line in lines))
        title = " ".join(self._title.split())
        return "\n\n".join(part for part in (title, body.strip()) if part).replace(_FIRM, " ")
