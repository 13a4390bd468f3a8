"""The text of an HTML page as a person would read it: whole, or its main part as Markdown with numbered links.

The scanner is our own and takes time linear in the page's size: html.parser rescans from each unclosed comment
or tag (minutes for 4 MiB), and the fast tree builder (selectolax) is quadratic in depth. On the saved pages of
tests/agent/web/pages trafilatura 2.3.1 loses 3 of 74 wanted passages (bylines) and 4
of 13 links, and shows 2 of 32 things beside the text; this loses and shows none. trafilatura also needs 13
packages, among them a C parser for strangers' bytes, and 0.4 s to load.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from html import unescape
from itertools import accumulate
from urllib.parse import urljoin

from agent.sandbox.output_buffer import clean

RAW = {"script", "style", "iframe", "xmp", "noembed", "noframes"}  # no tags within
HIDDEN = {"annotation", "annotation-xml", "noscript", "template", "svg", "canvas", "select", "nav"}
BLOCKS = set(
    "address article aside blockquote br dd details div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hr legend li main nav ol p pre section summary table tr ul".split()
)
CELLS = {"td", "th", "tr"}
# Of MathML: what stands before each child of an element, and behind the last.
MATH = {
    "mfrac": ("(", ")/(", ")"),
    "msqrt": ("√(", "", ")"),
    "mroot": ("√(", ")^(1/", ")"),
    **dict.fromkeys(("msup", "mover"), ("", "^(", ")")),
    **dict.fromkeys(("msub", "munder"), ("", "_(", ")")),
    **dict.fromkeys(("msubsup", "munderover"), ("", "_(", ")^(", ")")),
    **dict.fromkeys(
        (
            "math",
            "mrow",
            "mstyle",
            "mtable",
            "mtr",
            "mtd",
            "semantics",
            "mpadded",
            "menclose",
            "mi",
            "mn",
            "mo",
            "mtext",
        ),
        ("", "", ""),
    ),
}
STRUCK = {"s", "strike", "del"}
HEADINGS = {f"h{level}" for level in range(1, 7)}
MARKS = {f"h{level}": "#" * level + " " for level in range(1, 7)} | dict.fromkeys(
    ("td", "th"), " | "
)
MARKS["li"] = "- "

# What stands beside the main text: by element, by role, by words in class and id.
BESIDE = {"aside", "footer", "dialog", "menu", "button", "header"}
BESIDE_ROLES = {"navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog"}  # fmt: skip
BESIDE_WORDS = re.compile(
    r"sidebar|cookie|consent|newsletter|subscri|breadcrumb|navbar|masthead|topbar|headerlink|editsection|"
    r"pagination|(?:^|[^a-z])(?:nav|menu|header|footer|share|sharing|social|related|promo|banner|ads?|advert"
    r"|sponsor(?:ed)?|toc|popup|modal|signup|login|trending|recommended|hot)(?:[^a-z]|$)|nav(?:$|[^a-z])"
)
REGIONS = {"div", "section", "ul", "ol", "table", "span", "p", "a", "main", "article", *BESIDE}
MOST_BESIDE = 0.4  # of the text; a region with more is the text
LEAST_MAIN = 0.4  # of the text, for what calls itself the main part
LONGEST_ATTRIBUTES = 4096
LONGEST_ADDRESS = 2000
NO_EXPRESSION = 3  # the exit code for an invalid regular expression
NO_FEED = 4  # and for what is no feed
MOST_COVERED = 10_000  # cells of a page that a merged one covers
LONGEST_REPEATED = 200  # characters of a merged cell that stand again
MOST_LINKS = 5000  # that may get a number
SPAN = re.compile(r"""["']?\s*\+?(\d{1,4})""")
ATTRIBUTE = re.compile(r"""(?<![^\s"'/])([^\s=>"'/]{1,40})\s*=\s*("[^"]*"|'[^']*'|[^\s>"']+)""")

# What a browser does not show: by an attribute, or by its own style.
UNSEEN = re.compile(
    r"\shidden(?=[\s/>=])|display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE
)
QUOTED = re.compile("\"[^\"]*\"|'[^']*'")

MARKS_OF_ORDER = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
HEAD = 4096  # bytes in which a page may declare its encoding
DECLARED = re.compile(
    rb"""<meta\s[^>]{0,400}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([a-z0-9][\w.:-]{0,39})""",
    re.IGNORECASE,
)
# Names that browsers take for a wider encoding.
WIDER = {
    **dict.fromkeys(("iso-8859-1", "latin1", "ascii", "us-ascii"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
    **dict.fromkeys(("shift_jis", "x-sjis"), "cp932"),
}

MARKUP = re.compile(r"<(?=[a-zA-Z!?]|/.)", re.DOTALL)
TAG_START = re.compile(r"</?[a-zA-Z]")
TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*+)(?:[^>=]|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+>""")
SPACE = re.compile(r"[ \t\r\n\f]+")
KEPT_SPACE = "\xa0"  # of <pre>


def html_text(html: str) -> str:
    """Title, then blocks of text; headings and list items are marked as in Markdown.

    An unclosed comment, tag or script extends to the end of the page, as in a browser.
    """
    return scanned(html, PageText()).text()


def markdown(html: str, address: str) -> str:
    """The main part of a page, then after an empty line each link's number and address: "[1]: https://..."."""
    return scanned(html, MainText(address)).text()


def scanned(html: str, page: "PageText") -> "PageText":
    at: int | None = 0
    while at is not None:
        markup = MARKUP.search(html, at)
        page.add_text(html[at : markup.start() if markup else None])
        at = after_markup(html, markup.start(), page) if markup else None
    return page


def main(charset: str, kind: str, word: str) -> None:
    """Read a page from standard input, write its text to standard output (UTF-8), without control sequences.

    For kind "html" with an address as `word` that is the main part as Markdown; for kind "grep" the lines that
    match `word`; for kind "feed" its entries. An isolated interpreter runs this (agent.web.fetch.page_text).
    """
    text = decode_page(sys.stdin.buffer.read(), charset, html=kind == "html")
    if kind == "html":
        text = markdown(text, word) if word else html_text(text)
    elif kind == "grep":
        try:
            re.compile(word)
        except (re.error, OverflowError, RecursionError):
            sys.exit(NO_EXPRESSION)
        lines = enumerate(text.split("\n"), 1)
        found = (f"{n}: {line}" for n, line in lines if re.search(word, line, re.IGNORECASE))
        text = "\n".join(found)
    elif kind == "feed":
        text = "\n".join(feed_entries(text))
    sys.stdout.buffer.write(clean(text).encode("utf-8", "replace"))


def feed_entries(xml: str) -> Iterator[str]:
    """The entries of an RSS or Atom feed: id, tab, title and address."""
    from xml.etree import ElementTree

    try:
        # Entities may explode: this process has bounds of memory and time.
        parser = ElementTree.XMLParser(encoding="utf-8")  # noqa: S314
        root = ElementTree.fromstring(xml.strip(), parser)  # noqa: S314
    except ElementTree.ParseError:
        sys.exit(NO_FEED)
    for entry in root.iter():
        if entry.tag.rpartition("}")[2] in ("item", "entry"):
            found = {"id": "", "title": "", "link": ""}
            for each in entry:
                name = each.tag.rpartition("}")[2].replace("guid", "id")
                words = " ".join("".join(each.itertext()).split()) or each.get("href", "")
                if name in found and not found[name]:
                    found[name] = words
            key = found["id"] or found["link"] or found["title"]
            yield f"{key}\t{found['title']} {found['link']}".rstrip()


def decode_page(page: bytes, charset: str = "", *, html: bool) -> str:
    """Decode by the first known of byte order mark, the response's `charset`, and the page's own <meta>; without
    one as UTF-8, or as Windows-1252 if that fails, like browsers (https://encoding.spec.whatwg.org)."""
    mark = next((encoding for bom, encoding in MARKS_OF_ORDER if page.startswith(bom)), "")
    meta = DECLARED.search(page, 0, HEAD) if html else None
    own = meta[1].decode().lower() if meta else ""
    for name in (mark, charset.lower(), "" if own.startswith("utf-16") else own):
        if name:
            with suppress(LookupError, ValueError):
                return page.decode(WIDER.get(name, name), "replace")
    try:
        return page.decode()
    except UnicodeDecodeError as error:
        cut = error.end == len(page) and not page[: error.start].isascii()
        return page.decode("utf-8" if cut else "cp1252", "replace")


def after_markup(html: str, at: int, page: "PageText") -> int | None:
    """Pass the tag at `at` to the page; return the position where text goes on, None at the end."""
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
        page.start(name, tag[0])
    return tag.end()


@dataclass(frozen=True, slots=True)
class Region:
    """Pieces from `start` up to `end`, either declared as the main part or standing beside the text."""

    start: int
    end: int
    main: bool


@dataclass
class Table:
    """The cells of an open table. `covered`: by column, the first row below a merged cell and its text."""

    row: int = 0
    column: int = 0
    covered: dict[int, tuple[int, str]] = field(default_factory=dict)
    begun: int = -1  # the first piece of the open cell
    rows: int = 1  # that it covers
    columns: int = 1


class PageText:
    """Collects the text of a page from its tags and the text between them."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._title: list[str] = []
        self._in_title = False
        self._lists: list[tuple[int, str] | None] = []  # of <ol> the next item's number and form
        self._tables: list[Table] = []
        self._covered = 0  # cells so far that others cover
        self._pre = 0  # depth of <pre>, where line breaks count
        self._raised = False  # within <sup>
        self._hidden_from: defaultdict[str, list[int]] = defaultdict(list)
        self._regions: list[Region] = []  # in the order of their ends
        self._open: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        self._titled = -1  # where the newest <h1> began
        self._math: list[
            tuple[str, int]
        ] = []  # the open elements, each with how many children it has

    def start(self, name: str, tag: str) -> None:
        if name in MATH and (self._math or name == "math"):
            if self._math:
                parent, child = self._math.pop()
                self._pieces.append(MATH[parent][min(child, len(MATH[parent]) - 2)])
                self._math.append((parent, child + 1))
            if not tag.endswith("/>"):
                self._math.append((name, 0))
        if name in REGIONS:
            self._open[name].append((len(self._pieces), self._kind(name, tag, attributes_of(tag))))
        if name == "h1":
            self._titled = len(self._pieces)
        self._in_title = name == "title" and not self._title and not any(self._hidden_from.values())
        self._pre += name == "pre"
        self._raised = name == "sup" or (self._raised and name not in BLOCKS | CELLS)
        if name in CELLS:
            self._end_cell()
        if name in BLOCKS:
            self._pieces.append("\n")
            self._math = []
        if name in CELLS and self._tables:
            self._begin_cell(self._tables[-1], name, tag)
        elif name == "table":
            self._tables.append(Table())
        elif name in ("ol", "ul"):
            given = attributes_of(tag)
            begun = whole(given.get("start")), given.get("type") or "1"
            self._lists.append(begun if name == "ol" else None)
        if name == "li" and self._lists and (item := self._lists[-1]):
            number = whole(attributes_of(tag).get("value"), item[0])
            self._lists[-1] = number + 1, item[1]
            self._pieces.append(f"{numeral(number, item[1]) or number}. ")
        elif name in MARKS:
            self._pieces.append(MARKS[name])
        if name in STRUCK:
            self._pieces.append("~~")
        if name in HIDDEN:
            self._hidden_from[name].append(len(self._pieces))

    def end(self, name: str) -> None:
        if self._math and name in (self._math[-1][0], "math"):
            self._pieces.append(MATH[self._math.pop()[0]][-1])
            self._math = self._math if name != "math" else []
        self._in_title = False
        self._pre -= name == "pre" and self._pre > 0
        self._raised = self._raised and name not in BLOCKS | {"sup"}
        if name in ("ol", "ul") and self._lists:
            self._lists.pop()
        if name == "table" and self._tables:
            self._end_cell()
            self._tables.pop()
        if name in STRUCK and "".join(self._pieces[-2:]) == "~~":  # without words
            del self._pieces[-2:]
        elif name in STRUCK:
            self._pieces.append("~~")
        if name in HIDDEN and self._hidden_from[name]:
            del self._pieces[self._hidden_from[name].pop() :]
        if name in BLOCKS:
            self._pieces.append("\n")
        # Forget what was in pieces that were hidden.
        while self._regions and self._regions[-1].end > len(self._pieces):
            self._regions.pop()
        if name in REGIONS and self._open[name]:
            start, kind = self._open[name].pop()
            if kind == "main" or (kind == "beside" and not start <= self._titled):
                self._regions.append(Region(start, len(self._pieces), kind == "main"))

    def _kind(self, name: str, tag: str, attributes: dict[str, str]) -> str:
        """ "main", "beside" or neither."""
        shown = not UNSEEN.search(QUOTED.sub("''", tag[:LONGEST_ATTRIBUTES]))
        shown &= not UNSEEN.search(f" {attributes.get('style', '')}")
        return "" if shown or "math" in attributes.get("class", "") else "beside"

    def _begin_cell(self, table: Table, name: str, tag: str) -> None:
        """Begin a row or a cell. Merged cells that cover the places before it are repeated: a row is read by itself."""
        if name == "tr":
            table.row, table.column = table.row + 1, 0
            return
        while table.column in table.covered and self._covered < MOST_COVERED:
            below, text = table.covered[table.column]
            if below <= table.row:
                break
            self._pieces.append(f" | {text}" if text else " |")
            self._covered += 1
            table.column += 1
        table.begun = len(self._pieces) + 1  # behind its mark
        table.rows = table.columns = 1
        if "span" in tag[:LONGEST_ATTRIBUTES].lower():
            found = reversed(ATTRIBUTE.findall(tag[:LONGEST_ATTRIBUTES]))  # the first counts
            given = {
                name.lower(): int(span[1]) for name, value in found if (span := SPAN.match(value))
            }
            table.rows, table.columns = given.get("rowspan", 1), max(1, given.get("colspan", 1))

    def _end_cell(self) -> None:
        table = self._tables[-1] if self._tables else None
        if table is None or table.begun < 0:
            return
        if table.rows > 1 or table.columns > 1:
            text = " ".join("".join(self._pieces[table.begun :]).split())[:LONGEST_REPEATED]
            below = table.row + max(1, table.rows)
            # The other columns of this row are covered, too: the next cell puts them in front of itself.
            for column in range(min(table.columns, MOST_COVERED - self._covered)):
                table.covered[table.column + column] = (below, "" if column else text)
                self._covered += 1
        table.column += 1
        table.begun = -1

    def add_text(self, raw: str) -> None:
        text = unescaped(raw)
        if self._in_title:
            self._title.append(text)
        elif self._math and self._math[-1][0] != "mtext":
            self._pieces.append(text.strip())
        elif self._pre:
            self._pieces.append(text.replace(" ", KEPT_SPACE))
        else:
            self._pieces.append(marked(SPACE.sub(" ", text), raised=self._raised))

    def text(self) -> str:
        return self._joined([p for p, kept in zip(self._pieces, self._kept(), strict=True) if kept])

    def _kept(self) -> list[bool]:
        """Which pieces belong to the main part."""
        pieces = self._pieces
        total = [0, *accumulate(len(piece.strip()) for piece in pieces)]
        least = MOST_BESIDE * total[-1]
        beside = [r for r in self._regions if not r.main and total[r.end] - total[r.start] <= least]
        dropped = covered(beside, len(pieces))
        main = covered([r for r in self._regions if r.main], len(pieces))
        sizes = [len(p.strip()) * (not d) for p, d in zip(pieces, dropped, strict=True)]
        inside = sum(size for size, m in zip(sizes, main, strict=True) if m)
        if inside < LEAST_MAIN * sum(sizes) or not any(main):
            main = [True] * len(pieces)
        # What stood on both sides of a region is not one word.
        each = zip(pieces, main, dropped, strict=True)
        return [m and (not d or piece == "\n") for piece, m, d in each]

    def _joined(self, pieces: list[str]) -> str:
        lines = [line.rstrip(" ") for line in "".join(pieces).split("\n")]
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(line.removeprefix(" ") for line in lines))
        title = " ".join("".join(self._title).split())
        parts = (title, body.strip(" \n"))
        return "\n\n".join(part for part in parts if part).replace(KEPT_SPACE, " ")


class MainText(PageText):
    """Leaves out regions beside the text, unless they hold most of it, and numbers the links."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self._inside = 0  # depth of <main> and <article>
        self._heading = False  # inside of one
        self._link: tuple[int, str] | None = None  # where the open one began, and its address
        self._links: dict[int, str] = {}  # by the piece that ends them
        self._anchors = 0

    def start(self, name: str, tag: str) -> None:
        super().start(name, tag)
        attributes = attributes_of(tag) if name in ("a", "base") else {}
        self._inside += name in ("main", "article")
        self._heading = self._heading or name in HEADINGS
        if name == "base":
            self._address = link_target(self._address, attributes.get("href", "")) or self._address
        if name == "a":
            self._end_link()
            self._anchors += 1
            href = attributes.get("href", "") if self._anchors <= MOST_LINKS else ""
            if address := link_target(self._address, href):
                self._link = len(self._pieces), address
                self._pieces.append("")
        if name == "pre":
            self._pieces.append("```\n")
        elif name == "code" and not self._pre:
            self._pieces.append("`")

    def end(self, name: str) -> None:
        if name == "a":
            self._end_link()
        if name == "pre" and self._pre:
            self._pieces.append("\n```")
        elif name == "code" and not self._pre:
            self._pieces.append("`")
        super().end(name)
        while self._links and next(reversed(self._links)) >= len(self._pieces):
            self._links.popitem()
        if self._link and self._link[0] >= len(self._pieces):
            self._link = None
        self._inside -= name in ("main", "article") and self._inside > 0
        self._heading = self._heading and name not in HEADINGS

    def _kind(self, name: str, tag: str, attributes: dict[str, str]) -> str:
        role = attributes.get("role", "")
        if name in ("main", "article") or role == "main":
            return "main"
        if role in BESIDE_ROLES or attributes.get("aria-hidden") == "true":
            return "beside"
        if beside := super()._kind(name, tag, attributes):
            return beside
        if name == "button" and self._heading:  # it unfolds the section
            return ""
        if name in BESIDE and not (self._inside and name in ("header", "footer")):
            return "beside"
        if not attributes:
            return ""
        words = f"{attributes.get('class', '')} {attributes.get('id', '')}"
        folded = re.sub(r"([a-z])([A-Z])", r"\1-\2", words).lower()
        return "beside" if BESIDE_WORDS.search(folded) else ""

    def _end_link(self) -> None:
        if self._link is None:
            return
        (start, address), self._link = self._link, None
        text = "".join(self._pieces[start + 1 :])
        if start < len(self._pieces) and text.strip(" \n#¶§|-") and not self._pre:
            one_line = "\n" not in text
            self._pieces[start] = "[" if one_line else ""
            self._links[len(self._pieces)] = address
            self._pieces.append("]" if one_line else " ")

    def text(self) -> str:
        pieces: list[str] = []
        numbers: dict[str, int] = {}
        for at, kept in enumerate(self._kept()):
            if kept:
                pieces.append(self._pieces[at])
                if address := self._links.get(at):
                    pieces.append(f"[{numbers.setdefault(address, len(numbers) + 1)}]")
        links = [f"[{number}]: {address}" for address, number in numbers.items()]
        return "\n\n".join(filter(None, [self._joined(pieces), "\n".join(links)]))


def covered(regions: list[Region], count: int) -> list[bool]:
    """List for each of `count` pieces whether it lies in one of the regions."""
    change = [0] * (count + 1)
    for region in regions:
        change[region.start] += 1
        change[region.end] -= 1
    return [depth > 0 for depth in accumulate(change[:count])]


def unescaped(raw: str) -> str:
    """Decode entities; their digits are bounded first, as `html` raises ValueError for thousands of them."""
    return unescape(re.sub(r"&#0*(\d{1,9})\d*", r"&#\1", raw)) if "&" in raw else raw


def attributes_of(tag: str) -> dict[str, str]:
    if "=" not in tag:
        return {}
    found = ATTRIBUTE.findall(tag[:LONGEST_ATTRIBUTES])
    return {name.lower(): unescaped(value.strip("\"'")) for name, value in found}


def link_target(address: str, target: str) -> str:
    """The address of the web that a link leads to, without fragment; empty for any other, and the page itself."""
    if target.strip()[:1] in ("", "#"):
        return ""
    try:
        found = urljoin(address, target.strip()).partition("#")[0]
    except ValueError:
        return ""
    of_web = found.startswith(("http://", "https://")) and len(found) <= LONGEST_ADDRESS
    return found if of_web else ""


ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"),
         (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


def numeral(number: int, form: str) -> str:
    """A number in the form that Word, OpenDocument or HTML names."""
    if form in ("none", "bullet", ""):
        return ""
    if form in ("lowerRoman", "upperRoman", "i", "I") and 0 < number < 4000:
        text = ""
        for value, letters in ROMAN:
            text += letters * (number // value)
            number %= value
        return text.upper() if form in ("upperRoman", "I") else text
    if form in ("lowerLetter", "upperLetter", "a", "A") and 0 < number < 1000:
        text = chr(ord("a") + (number - 1) % 26) * (1 + (number - 1) // 26)
        return text.upper() if form in ("upperLetter", "A") else text
    return f"{number:02}" if form == "decimalZero" else str(number)


RAISED = str.maketrans("0123456789+-−=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ")


def marked(text: str, *, raised: bool, struck: bool = False) -> str:
    """Write raised digits as such (10² is not 102), and what is struck out between "~~"."""
    if raised and re.fullmatch(r"[\d+\-−=()n\s]+", text):
        text = text.translate(RAISED)
    return f"~~{text}~~" if struck and text.strip() else text


def whole(number: str | None, default: int = 1) -> int:
    return int(number) if number and re.fullmatch(r"-?\d{1,9}", number) else default
