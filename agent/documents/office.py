"""Word, OpenDocument, Excel and PowerPoint files to blocks of text: ZIP archives of XML, which expat reads as a stream.

Part of the program extraction.py; standard library only. What their own programs do not show is left out: deletions
that are tracked, hidden text, hidden sheets, comments. What they compute is computed: numbers of clauses and of notes,
positions of cells, dates.
"""

import re
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from posixpath import join, normpath
from typing import IO, Literal, TypeAlias
from xml.parsers import expat

from agent.web.html_text import marked, numeral, whole

MOST_FILE = 64 << 20  # bytes of a file in an archive
LONGEST_CODE = 255  # characters of a cell's format or number
MOST_REPEATED = 1_000  # cells of a row, or rows, that a sheet repeats
ENCRYPTED = "It is encrypted: send it again without its password."
UNPACKS_TO_TOO_MUCH = (
    f"It unpacks to more than {MOST_FILE >> 20} MiB, which no honest document does."
)

# (kind, number of a page or level of a heading, words)
Block: TypeAlias = tuple[Literal["page", "heading", "text"], int, str]


class Refused(Exception):
    """The document cannot be read; `str` says why, in one sentence."""


class Bounded:
    """A file of an archive; reading more than MOST_FILE bytes of it raises Refused."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.left = MOST_FILE

    def read(self, size: int = -1) -> bytes:
        piece = self.file.read(min(size, self.left + 1) if size >= 0 else self.left + 1)
        self.left -= len(piece)
        if self.left < 0:
            raise Refused(UNPACKS_TO_TOO_MUCH)
        return piece


def opened(files: zipfile.ZipFile, name: str) -> Bounded:
    info = files.getinfo(name)
    if info.flag_bits & 1:
        raise Refused(ENCRYPTED)
    return Bounded(files.open(info))


# A start has a name and attributes, an end only a name, text only words.
XmlEvent: TypeAlias = tuple[Literal["start", "end", "text"], str, dict[str, str]]


def xml_events(file: Bounded, without: Collection[str] = ()) -> Iterator[XmlEvent]:
    """The elements and text of a file in order, names without namespaces; elements named in `without`
    are left out with all that is in them."""
    events: list[XmlEvent] = []
    skipped = 0  # depth below an element that is left out

    def local(name: str) -> str:
        return name.rpartition(" ")[2]

    def start(name: str, given: dict[str, str]) -> None:
        nonlocal skipped
        if skipped or local(name) in without:
            skipped += 1
        else:
            attributes: dict[str, str] = {}
            for key, value in given.items():
                if " " in key:  # a slide has two ids, one of them that of its relation
                    attributes[local(key)] = value
                else:
                    attributes.setdefault(key, value)
            events.append(("start", local(name), attributes))

    def end(name: str) -> None:
        nonlocal skipped
        if skipped:
            skipped -= 1
        else:
            events.append(("end", local(name), {}))

    def text(words: str) -> None:
        if not skipped:
            events.append(("text", words, {}))

    def entity(*_: object) -> None:
        raise Refused("It defines entities of its own, which no honest document does.")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = entity
    while piece := file.read(1 << 16):
        parser.Parse(piece)
        yield from events
        events.clear()
    parser.Parse(b"", True)
    yield from events


def part_events(
    files: zipfile.ZipFile, name: str, without: Collection[str] = ()
) -> Iterator[XmlEvent]:
    """The `xml_events` of a file of the archive; none where there is no such file."""
    if name in files.namelist():
        yield from xml_events(opened(files, name), without)


def relations(files: zipfile.ZipFile, part: str) -> dict[str, str]:
    """The parts to which a part of an Office file refers, by id."""
    folder, _, name = part.rpartition("/")
    found = {}
    for event in part_events(files, f"{folder}/_rels/{name}.rels"):
        if event[:2] == ("start", "Relationship"):
            target = event[2].get("Target", "")
            path = target[1:] if target.startswith("/") else normpath(join(folder, target))
            found[event[2].get("Id", "")] = path
    return found


@dataclass
class Row:
    """A row of a table that is being read. `outside`: what was read of the cell or paragraph around the table."""

    outside: list[str]
    cells: list[str] = field(default_factory=list)
    printed: bool = True


class Flow:
    """Collects the blocks of a text that comes as a stream of elements. Paragraphs within a row are its cells."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.page = 1
        self.level = 0  # of the heading that is read; 0: a paragraph
        self.inside = 0  # depth of notes, whose paragraphs stand within another
        self.rows: list[Row] = []
        # By depth of the table: texts of cells that go on in the rows below, {column: (rows, text)}.
        self._below: list[dict[int, tuple[int, str]]] = []
        self._pieces: list[str] = []
        self._turned = False  # a page began within a row or a note

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def taken(self) -> str:
        """Return and clear the text read since the last block or cell."""
        text, self._pieces = "".join(self._pieces), []
        return text.replace("~~~~", "")  # between two runs that are struck out

    def finish(self) -> None:
        """End a paragraph, or one within a cell."""
        if self.rows or self.inside:
            self.add(" ")
        elif text := self.taken().strip(" \n"):
            self.blocks.append(("heading", self.level, text) if self.level else ("text", 0, text))
            if self._turned:
                self._begin_page()
        self.level = 0

    def follow(self, edge: str, element: str) -> None:
        """Begin or end a table or a row of an Office file."""
        acts = {"tbl": (self.start_table, self.end_table), "tr": (self.start_row, self.end_row)}
        acts[element][edge == "end"]()

    def start_table(self) -> None:
        self._below.append({})

    def end_table(self) -> None:
        if self._below:
            self._below.pop()

    def start_row(self) -> None:
        self.rows.append(Row(self._pieces))
        self._pieces = []

    def end_cell(self, repeated: int = 1, columns: int = 1, rows: int = 1) -> None:
        """Add a cell that is `repeated`, or spans several `columns` and `rows`.
        Below itself it stands again, since each row is read by itself."""
        if not self.rows:
            return
        cells, text = self.rows[-1].cells, " ".join(self.taken().split())
        room = max(0, MOST_REPEATED - len(cells))
        if rows > 1 and self._below:
            self._below[-1][len(cells)] = (rows - 1, text)
        cells += [text] * min(repeated, room) + [""] * min(columns - 1, room)

    def covered_cell(self, repeated: int = 1) -> None:
        """Add a covered cell, with the text of the cell above that covers it."""
        if not self.rows:
            return
        self.taken()
        below = self._below[-1] if self._below else {}
        cells = self.rows[-1].cells
        for _ in range(min(repeated, MOST_REPEATED - len(cells))):
            left, text = below.get(len(cells), (0, ""))
            if left:
                below[len(cells)] = (left - 1, text)
            cells.append(text if left else "")

    def end_row(self, repeated: int = 1) -> None:
        if not self.rows:
            return
        row = self.rows.pop()
        self._pieces = row.outside
        line = joined_cells(row.cells)
        if line and row.printed:
            if self.rows:  # a table within a cell
                self.add(f" {line} ")
            else:
                self.blocks += [("text", 0, line)] * min(repeated, MOST_REPEATED)
        if self._turned and not self.rows:
            self._begin_page()

    def new_page(self) -> None:
        """Begin a page, where a paragraph may go on; a row ends on the page where it began."""
        self.page += 1
        if self.rows or self.inside:
            self._turned = True
            return
        level = self.level
        self.finish()
        self.level = level
        self._begin_page()

    def _begin_page(self) -> None:
        self.blocks.append(("page", self.page, ""))
        self._turned = False


def joined_cells(cells: Sequence[str]) -> str:
    """A row on one line, without the empty cells at its end."""
    return " | ".join(cells).rstrip(" |")


# -- numbers of clauses -------------------------------------------------------


@dataclass(frozen=True)
class Level:
    """Of a numbered list. `text` has %1 for the number of the first level, %2 of the second, and so on."""

    start: int = 1
    form: str = "decimal"
    text: str = ""
    legal: bool = False  # all numbers in it are decimal


class Numbers:
    """Counts the paragraphs of numbered lists."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[int, int]] = {}  # by list and level

    def restart(self, name: str, level: int, before: int) -> None:
        self._counts.setdefault(name, {})[level] = before

    def forget(self, name: str) -> None:
        self._counts.pop(name, None)

    def next(self, name: str, levels: Mapping[int, Level], at: int) -> str:
        """The number of the next paragraph of that level, as it is printed, and a space; "" without one."""
        own = levels.get(at)
        if own is None:
            return ""
        counts = self._counts.setdefault(name, {})
        counts[at] = counts.get(at, own.start - 1) + 1
        for deeper in [level for level in counts if level > at]:
            del counts[deeper]

        def number(match: re.Match[str]) -> str:
            level = int(match[1]) - 1
            form = levels.get(level, own)
            count = counts.setdefault(level, form.start)
            return numeral(count, "decimal" if own.legal else form.form)

        text = re.sub(r"%(\d)", number, own.text).strip()
        return f"{text} " if text else ""


# -- Word ---------------------------------------------------------------------

# Elements with what is not printed: a Fallback repeats what stands beside it for older programs.
NOT_PRINTED = ("Fallback", "rt", "pPrChange", "rPrChange", "numberingChange", "tblPrChange",
               "tcPrChange", "trPrChange", "sectPrChange")  # fmt: skip
# Signs of fonts that have no letters, by the last byte of their code.
SYMBOLS = {"symbol": {0xB0: "°", 0xB1: "±", 0xB4: "×", 0xB7: "•", 0xA3: "≤", 0xB3: "≥", 0xB9: "≠", 0xBB: "≈",
                      0x6D: "µ", 0x57: "Ω", 0xAE: "→", 0xA4: "⁄"},
           "wingdings": {0xFE: "☑", 0xFD: "☒", 0xA8: "☐", 0x6F: "☐", 0xFC: "✓", 0xFB: "✗", 0xE0: "→", 0xA7: "•"}}  # fmt: skip


# Fractions, powers and roots of a formula on one line.
MATH = {("start", "num"): "(", ("end", "num"): ")/", ("start", "den"): "(", ("end", "den"): ")", ("start", "sup"): "^(",
        ("end", "sup"): ")", ("start", "sub"): "_(", ("end", "sub"): ")", ("start", "rad"): "√(", ("end", "rad"): ")"}  # fmt: skip


@dataclass
class Style:
    """A style of paragraphs: `level` of a heading; the list and its level that number it."""

    parent: str = ""
    level: int = 0
    list: str = ""
    at: int | None = None


class WordLists:
    """The lists of word/numbering.xml: levels by number of the list, and the definition that counts them."""

    def __init__(self, files: zipfile.ZipFile) -> None:
        self.numbers = Numbers()
        self._levels: dict[str, dict[int, Level]] = {}  # by definition
        # (definition, level) by style of paragraphs
        self._by_style: dict[str, tuple[str, int]] = {}
        self._definition: dict[str, str] = {}  # by list
        self._starts: dict[str, dict[int, int]] = {}  # of a list that begins anew
        self._own: dict[str, dict[int, Level]] = {}  # levels that a list defines otherwise
        linked: dict[str, str] = {}  # definition: the style that has its levels
        offered: dict[str, str] = {}  # that style: the definition
        definition = name = ""
        at, given = 0, dict[str, str]()
        for edge, element, values in part_events(files, "word/numbering.xml", NOT_PRINTED):
            value = values.get("val", "")
            match edge, element:
                case "start", "abstractNum":
                    definition, name = values.get("abstractNumId", ""), ""
                    self._levels[definition] = {}
                case "start", "num":
                    name = values.get("numId", "")
                case "start", "abstractNumId":
                    self._definition[name] = value
                case "start", "numStyleLink":
                    linked[definition] = value
                case "start", "styleLink":
                    offered[value] = definition
                case "start", "lvlOverride" | "lvl":
                    at, given = whole(values.get("ilvl"), 0), {}
                case "start", "startOverride":
                    self._starts.setdefault(name, {})[at] = whole(value)
                case "start", "start" | "numFmt" | "lvlText" | "isLgl" | "pStyle":
                    given[element] = value
                case "end", "lvl":
                    bullet = given.get("numFmt") == "bullet"
                    text = "•" if bullet else given.get("lvlText", "")
                    form = given.get("numFmt", "decimal")
                    level = Level(whole(given.get("start"), 0), form, text, "isLgl" in given)
                    levels = self._own.setdefault(name, {}) if name else self._levels[definition]
                    levels[at] = level
                    if "pStyle" in given and not name:
                        self._by_style[given["pStyle"]] = definition, at
        for definition, style in linked.items():
            self._levels[definition] = self._levels.get(offered.get(style, ""), {})

    def next(self, name: str, at: int | None, style: str) -> str:
        """The number of the next paragraph of a list; its level may follow from its style."""
        definition = self._definition.get(name)
        if definition is None:
            return ""
        if at is None:
            of_style = self._by_style.get(style)
            at = of_style[1] if of_style and of_style[0] == definition else 0
        for level, start in self._starts.pop(name, {}).items():
            self.numbers.restart(definition, level, start - 1)
        levels = {**self._levels.get(definition, {}), **self._own.get(name, {})}
        return self.numbers.next(definition, levels, at)


def word(files: zipfile.ZipFile) -> tuple[list[Block], bool]:
    """Return the blocks of a Word document, and whether they have pages: these begin where Word noted it. Notes stand in
    brackets where the text refers to them."""
    styles, lists = word_styles(files), WordLists(files)
    notes = {part: word_notes(files, part, styles) for part in ("footnote", "endnote", "comment")}
    flow = Flow()
    word_text(flow, files, word_part(files), styles, lists, notes)
    frames = {"header": Flow(), "footer": Flow()}
    for name in sorted(files.namelist()):
        if found := re.fullmatch(r"word/(header|footer)\d*\.xml", name):
            word_text(frames[found[1]], files, name, styles, None, {})
    return framed(frames["header"], flow, frames["footer"]), flow.page > 1


def framed(header: Flow, flow: Flow, footer: Flow) -> list[Block]:
    """The blocks of a text, with those of its page headers before and its footers after, each of these once."""
    above, below = (list(dict.fromkeys(each.blocks)) for each in (header, footer))
    return [*above, *flow.blocks, *below]


def word_part(files: zipfile.ZipFile) -> str:
    """The name of a document's main part ("document2.xml" from Word in a browser); "" for another archive."""
    names = (name for name in files.namelist() if re.fullmatch(r"word/document\d*\.xml", name))
    return next(names, "")


def word_notes(files: zipfile.ZipFile, kind: str, styles: Mapping[str, Style]) -> dict[str, str]:
    """The texts of the footnotes, endnotes or comments, by id."""
    flow = Flow()
    flow.inside = 1
    found: dict[str, str] = {}
    word_text(flow, files, f"word/{kind}s.xml", styles, None, {}, found)
    return found


def word_text(
    flow: Flow,
    files: zipfile.ZipFile,
    part: str,
    styles: Mapping[str, Style],
    lists: WordLists | None,
    notes: Mapping[str, Mapping[str, str]],
    found_notes: dict[str, str] | None = None,
) -> None:
    in_text = hidden = in_properties = raised = struck = False
    gone = joined = no_cell = False  # a deletion of words, of a paragraph's end, of a cell
    in_row = False
    style = name = note = field = ""
    entries = list[str]()  # of a choice
    at: int | None = None
    columns, merged = 1, ""
    numbered, targets = {"footnote": 0, "endnote": 0}, relations(files, part)
    for edge, element, given in part_events(files, part, NOT_PRINTED):
        value = given.get("val", "")
        match edge, element:
            case "start", "p" if not gone:
                joined = False
            case "start" | "end", "trPr":
                in_row = edge == "start"
            case "start", "del" if in_row and flow.rows:
                flow.rows[-1].printed = False
            case "start", "del" | "moveFrom" if in_properties:
                joined = True
            case "start", "cellDel":
                no_cell = True
            case (("start" | "end"), ("del" | "moveFrom")):
                gone = edge == "start" and not in_row and not in_properties
            case _ if gone:
                continue
            case "text", _ if in_text and not hidden:
                flow.add(marked(element, raised=raised, struck=struck))
            case "start" | "end", "t":
                in_text = edge == "start"
            case "start" | "end", "r":
                hidden = raised = struck = False
            case "start", "vertAlign" if not in_properties:
                raised = value == "superscript"
            case "start", "position" if not in_properties:  # half points above the line
                raised = raised or (value.isdigit() and value != "0")
            case "start", "strike" | "dstrike" if not in_properties:
                struck = struck or value not in ("0", "false", "off")
            case (("start" | "end"), ("num" | "den" | "sup" | "sub" | "rad")):
                flow.add(MATH[edge, element])
            case "start", "vanish":
                hidden = not in_properties and value not in ("0", "false", "off")
            case "start", "pPr":
                style, name, at, in_properties = "", "", None, True
            case "start", "pStyle":
                style = value
            case "start", "numId":
                name = value
            case "start", "ilvl":
                at = whole(value, 0)
            case "end", "pPr":
                in_properties = False
                form = resolved(styles, style)
                flow.level = form.level
                if lists and not joined:
                    own = name or form.list
                    flow.add(lists.next(own, at if at is not None or name else form.at, style))
            case "start", "checkBox" | "ddList":  # of an old form
                field, entries = "0", ["☐ ", "☒ "] if element == "checkBox" else list[str]()
            case "start", "default" | "checked" | "result":
                field = value or "1"
            case "start", "listEntry":
                entries.append(value)
            case "end", "checkBox" | "ddList":
                nth = whole(field, field not in ("false", "off"))
                flow.add(entries[nth] if 0 <= nth < len(entries) else "")
            case "start", "chart" if not hidden:
                chart_text(flow, files, targets.pop(given.get("id", ""), ""))
            case "start", "relIds" if not hidden:
                slide_text(flow, files, targets.pop(given.get("dm", ""), ""))
            case "start", "noBreakHyphen" if not hidden:
                flow.add("\u2011")
            case "start", "tab" | "ptab" if not hidden and not in_properties:
                flow.add("\t")
            case "start", "br" | "cr" if not hidden:
                flow.add("\n")
            case "start", "sym" if not hidden:
                flow.add(symbol(given))
            case "start", "footnoteReference" | "endnoteReference" if not hidden:
                kind = element.removesuffix("Reference")
                if text := notes.get(kind, {}).get(given.get("id", "")):
                    numbered[kind] += 1
                    number = numeral(numbered[kind], "decimal" if kind == "footnote" else "i")
                    flow.add(f" [{number}: {text}]")
            case "start", "commentReference":
                if text := notes.get("comment", {}).get(given.get("id", "")):
                    flow.add(f" [comment: {text}]")
            case "start", "footnote" | "endnote" | "comment":
                note = given.get("id", "")
            case "end", "footnote" | "endnote" | "comment" if found_notes is not None:
                found_notes[note] = " ".join(flow.taken().split())
            case "start", "txbxContent":
                flow.add("\n")
            case "start", "lastRenderedPageBreak":
                flow.new_page()
            case "start" | "end", "tbl" | "tr":
                flow.follow(edge, element)
            case "start", "gridBefore":
                flow.end_cell(whole(value))
            case "start", "tc":
                columns, merged, no_cell = 1, "", False
            case "start", "gridSpan":
                columns = whole(value)
            case "start", "vMerge":
                merged = value or "continue"
            case "start", "hMerge" if value != "restart":
                merged = "left"
            case "end", "tc":
                if no_cell:
                    flow.taken()
                elif merged == "continue":
                    flow.covered_cell()
                    flow.end_cell(columns - 1)
                elif merged == "left":
                    flow.covered_cell()
                else:
                    flow.end_cell(1, columns, MOST_REPEATED if merged == "restart" else 1)
                columns, merged = 1, ""
            case "end", "p" if not joined:
                flow.finish()


def symbol(given: Mapping[str, str]) -> str:
    char = given.get("char", "")
    code = int(char, 16) if re.fullmatch(r"[0-9A-Fa-f]{1,5}", char) else 0xD800
    if not 0xD800 <= code <= 0xF8FF:
        return chr(code)
    return SYMBOLS.get(given.get("font", "").lower(), {}).get(code & 0xFF, "")


def word_styles(files: zipfile.ZipFile) -> dict[str, Style]:
    """The styles of paragraphs by id. Word translates the ids of its styles, but not their names."""
    styles: dict[str, Style] = {}
    style = Style()
    for edge, element, given in part_events(files, "word/styles.xml", NOT_PRINTED):
        value = given.get("val", "")
        match edge, element:
            case "start", "style":
                style = styles.setdefault(given.get("styleId", ""), Style())
            case "end", "style":
                style = Style()
            case "start", "basedOn":
                style.parent = value
            case "start", "name":
                words = value.lower()
                heading = re.fullmatch(r"heading ([1-9])", words)
                style.level = int(heading[1]) if heading else int(words == "title")
            case "start", "outlineLvl" if whole(value, 9) < 9:
                style.level = style.level or whole(value) + 1
            case "start", "numId":
                style.list = value
            case "start", "ilvl":
                style.at = whole(value, 0)
    return styles


def resolved(styles: Mapping[str, Style], name: str) -> Style:
    """A style with what it has from those on which it is based."""
    found = Style()
    for _ in range(20):
        own = styles.get(name)
        if own is None:
            break
        found.level = found.level or own.level
        found.list = found.list or own.list
        found.at = own.at if found.at is None else found.at
        name = own.parent
    return found


# -- OpenDocument -------------------------------------------------------------


def open_document(files: zipfile.ZipFile, notes: list[str]) -> tuple[list[Block], bool]:
    """Blocks of a text, of sheets (each under its name) or of slides (each a page), and whether they have pages.
    Hidden sheets and slides are left out and added to `notes`."""
    if "META-INF/manifest.xml" in files.namelist():
        manifest = opened(files, "META-INF/manifest.xml").read()
        if b"encryption-data" in manifest:
            raise Refused(ENCRYPTED)
    lists, flow, slides = OpenLists(files), Flow(), 0
    rows = repeated = high = 1
    in_body = sheets = unseen_row = False
    sheet, concealed = "", 0
    style, raised, struck, unseen = "", set[str](), set[str](), set[str]()  # names of styles
    spans, hidden, skipped = [""], list[str](), ""  # the element that is left out
    not_text = ["tracked-changes", "annotation", "styles", "forms", "ruby-text", "tracked-change", "page-number"]  # fmt: skip
    for edge, element, given in part_events(files, "content.xml", not_text):
        match edge, element:
            case "start" | "end", "body":
                in_body = edge == "start"
            case "start", "style":
                style = given.get("name", "")
            case "start", "text-properties":
                if re.match(r"super|[1-9]", given.get("text-position", "")):
                    raised.add(style)
                if given.get("text-line-through-style", "none") != "none":
                    struck.add(style)
                if given.get("display") == "none":
                    unseen.add(style)
            case "start", "table-properties" if given.get("display") == "false":
                unseen.add(style)
            case "start", "drawing-page-properties" if given.get("visibility") == "hidden":
                unseen.add(style)
            case _ if not in_body:
                continue
            case "end", "table" | "page" | "section" if element == skipped:
                skipped = ""
            case _ if skipped:
                continue
            case "text", _ if spans[-1] in unseen:
                continue
            case "text", _:
                flow.add(marked(element, raised=spans[-1] in raised, struck=spans[-1] in struck))
            case "start", "span":
                spans.append(given.get("style-name", ""))
            case "end", "span":
                spans.pop()
            case "start", "object":
                place = f"{normpath(given.get('href', ''))}/content.xml"
                flow.add(formula(files, place))
                if not sheets and (numbers := open_chart(files, place)):
                    flow.finish()
                    flow.add(numbers)
                    flow.finish()
            case "start", "notes":
                flow.add("Notes:")
                flow.finish()
            case "end", "notes" if flow.blocks[-1] == ("text", 0, "Notes:"):
                flow.blocks.pop()
            case "start", "h":
                level = whole(given.get("outline-level"))
                flow.level = level
                flow.add(lists.heading(level - 1))
            case "start", "p":
                flow.add(lists.paragraph())
            case "start" | "end", "list" | "list-item" | "list-header":
                lists.follow(edge, element, given)
            case "start", "tab":
                flow.add("\t")
            case "start", "line-break":
                flow.add("\n")
            case "start", "s":
                flow.add(" " * min(whole(given.get("c")), 100))
            case "start", "note-citation":
                flow.add(" [")
                flow.inside += 1
            case "end", "note-citation":
                flow.add(": ")
            case "end", "note":
                flow.add(f"{flow.taken().rstrip()}]")
                flow.inside = max(0, flow.inside - 1)
            case "start", "soft-page-break":
                flow.new_page()
            case "start", "page":
                slides += 1
                if slides > 1:
                    flow.new_page()
                if given.get("style-name") in unseen:
                    skipped = element
                    hidden.append(str(slides))
            case "start", "section" if given.get("display", "true") != "true":
                skipped = element if given.get("is-hidden", "true") == "true" else ""
            case "start", "spreadsheet":
                sheets = True
            case "start", "table" if sheets and given.get("style-name") in unseen:
                skipped = element
                hidden.append(given.get("name", ""))
            case "start", "table":
                if sheets and not flow.rows:
                    sheet, concealed, flow.level = given.get("name", ""), 0, 1
                    flow.add(sheet)
                    flow.finish()
                flow.start_table()
            case "end", "table":
                flow.end_table()
                note_hidden_rows(concealed, sheet, notes)
                concealed = 0
            case "start", "table-row":
                high = whole(given.get("number-rows-repeated"))
                unseen_row = sheets and given.get("visibility", "visible") != "visible"
                flow.start_row()
            case "start", "table-cell" | "covered-table-cell":
                repeated = whole(given.get("number-columns-repeated"))
                rows = whole(given.get("number-rows-spanned"))
            case "end", "table-cell":
                flow.end_cell(repeated, 1, rows)  # those that it covers follow as such
            case "end", "covered-table-cell":
                flow.covered_cell(repeated)
            case "end", "table-row":
                before = len(flow.blocks)
                flow.end_row(high)
                concealed += unseen_row and len(flow.blocks) - before
            case "end", "p" | "h":
                flow.finish()
    note_hidden("sheets" if sheets else "slides", hidden, notes)
    header, footer = master_frames(files) if not slides and not sheets else (Flow(), Flow())
    return framed(header, flow, footer), flow.page > 1 or bool(slides)


def formula(files: zipfile.ZipFile, place: str) -> str:
    """A formula as it is typed in LibreOffice ("{a} over {b}"); "" for another object, such as a chart."""
    noted = False
    for edge, element, _ in part_events(files, place):
        if noted and edge == "text":
            return element
        noted = (edge, element) == ("start", "annotation")
    return ""


def open_chart(files: zipfile.ZipFile, place: str) -> str:
    """The titles of a chart and the table of its numbers, a line each; "" for another object."""
    flow = Flow()
    for edge, element, _ in part_events(files, place, ["desc"]):
        match edge, element:
            case "text", _:
                flow.add(element)
            case "start", "table-row":
                flow.start_row()
            case "end", "table-cell":
                flow.end_cell()
            case "end", "table-row":
                flow.end_row()
            case "end", "p":
                flow.finish()
    return "\n".join(text for _, _, text in flow.blocks)


def master_frames(files: zipfile.ZipFile) -> tuple[Flow, Flow]:
    """The headers and footers of a text's pages."""
    frames, place = {"header": Flow(), "footer": Flow()}, ""
    for edge, element, _ in part_events(files, "styles.xml", ["page-number"]):
        kind = element.removesuffix("-first").removesuffix("-left")
        if edge != "text" and kind in frames:
            place = kind if edge == "start" else ""
        elif place and edge == "text":
            frames[place].add(element)
        elif place and (edge, element) == ("end", "p"):
            frames[place].finish()
    return frames["header"], frames["footer"]


class OpenLists:
    """Numbers the paragraphs of lists, and the headings, of an OpenDocument text."""

    def __init__(self, files: zipfile.ZipFile) -> None:
        self._styles: dict[str, dict[int, Level]] = {}
        self._numbers = Numbers()
        self._depth = -1  # of the list that is read
        self._name = ""  # of its style
        self._pending: list[bool] = []  # by item: whether its first paragraph is still to come
        for part in ("styles.xml", "content.xml"):
            name, outline = "", "outline"
            for edge, element, given in part_events(files, part, ["body"]):
                match edge, element:
                    case "start", "list-style":
                        name = given.get("name", "")
                        self._styles[name] = {}
                    case "start", "outline-style":
                        name = outline
                        self._styles[name] = {}
                    case "start", "list-level-style-bullet":
                        self._add(name, given, Level(1, "bullet", "•"))
                    case "start", "list-level-style-number" | "outline-level-style":
                        level = whole(given.get("level"))
                        shown = whole(given.get("display-levels"))
                        form = given.get("num-format", "")
                        numbers = ".".join(f"%{n}" for n in range(level - shown + 1, level + 1))
                        text = (
                            given.get("num-prefix", "") + numbers + given.get("num-suffix", "")
                            if form
                            else ""
                        )
                        if own := given.get("num-list-format"):  # of LibreOffice: "%1%.%2%"
                            text = re.sub(r"%(\d+)%", r"%\1", own) if form else ""
                        self._add(name, given, Level(whole(given.get("start-value")), form, text))

    def _add(self, name: str, given: Mapping[str, str], level: Level) -> None:
        self._styles.setdefault(name, {})[whole(given.get("level")) - 1] = level

    def heading(self, level: int) -> str:
        self._skip_first()
        return self._numbers.next("outline", self._styles.get("outline", {}), level)

    def paragraph(self) -> str:
        """The number before a paragraph: before the first of a list's item."""
        if not self._skip_first():
            return ""
        return self._numbers.next(self._name, self._styles.get(self._name, {}), self._depth)

    def _skip_first(self) -> bool:
        first = bool(self._pending) and self._pending[-1]
        if first:
            self._pending[-1] = False
        return first

    def follow(self, edge: str, element: str, given: Mapping[str, str]) -> None:
        match edge, element:
            case "start", "list":
                self._depth += 1
                if self._depth == 0:
                    self._name = given.get("style-name", self._name)
                    if not {"continue-numbering", "continue-list"} & given.keys():
                        self._numbers.forget(self._name)
            case "end", "list":
                self._depth -= 1
            case "start", _:
                self._pending.append(element == "list-item")
                if "start-value" in given:
                    start = whole(given["start-value"])
                    self._numbers.restart(self._name, self._depth, start - 1)
            case "end", _ if self._pending:
                self._pending.pop()


# -- Excel --------------------------------------------------------------------

# The numbers from 27 are of Chinese, Japanese and Korean.
BUILT_IN_DATES = {
    **dict.fromkeys([*range(14, 18), *range(27, 32), 36, *range(50, 55), 57, 58], "d"),
    **dict.fromkeys([*range(18, 22), *range(32, 36), 45, 46, 47, 55, 56], "h"),
    22: "d h",
}
PERCENT = {9, 10}


EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 - sheets have no time zones


def note_hidden(kind: str, names: Sequence[str], notes: list[str]) -> None:
    if names:
        notes.append(f"Hidden {kind} were left out: {', '.join(names)[:200]}.")


def note_hidden_rows(count: int, sheet: str, notes: list[str]) -> None:
    if count:
        notes.append(f"Hidden rows are read too: {count} of the sheet {sheet[:100]}.")


def excel(files: zipfile.ZipFile, notes: list[str]) -> list[Block]:
    """Each visible sheet under its name, a line for each row. Dates are ISO 8601."""
    blocks: list[Block] = []
    targets, hidden = relations(files, "xl/workbook.xml"), list[str]()
    sheets: list[tuple[str, str]] = []
    epoch = EPOCH
    for edge, element, given in part_events(files, "xl/workbook.xml"):
        if (edge, element) == ("start", "workbookPr") and given.get("date1904") in ("1", "true"):
            epoch = datetime(1904, 1, 1)  # noqa: DTZ001
        if (edge, element) == ("start", "sheet"):
            if given.get("state", "visible") == "visible":
                sheets.append((given.get("name", ""), targets.pop(given.get("id", ""), "")))
            else:
                hidden.append(given.get("name", ""))
    note_hidden("sheets", hidden, notes)
    strings, forms = shared_strings(files), cell_forms(files)
    for name, part in sheets:
        blocks.append(("heading", 1, name))
        concealed = list[int]()
        lines = sheet_rows(files, part, strings, forms, epoch, concealed)
        blocks += [("text", 0, line) for line in lines]
        note_hidden_rows(len(concealed), name, notes)
    return blocks


def shared_strings(files: zipfile.ZipFile) -> list[str]:
    found: list[str] = []
    pieces: list[str] = []
    in_text = False
    for edge, element, _ in part_events(files, "xl/sharedStrings.xml", ["rPh"]):
        match edge, element:
            case "text", _ if in_text:
                pieces.append(element)
            case "start" | "end", "t":
                in_text = edge == "start"
            case "end", "si":
                found.append("".join(pieces))
                pieces = []
    return found


def unescaped(text: str) -> str:
    """Decode Excel's codes: _x000D_ for a character that XML cannot hold, _x005F_ for an underscore before such text."""
    text = re.sub(r"_x([0-9A-Fa-f]{4})_", lambda match: chr(int(match[1], 16)), text)
    # The two halves of a sign beyond four digits stand apart; one alone is none.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\0", "")


def cell_forms(files: zipfile.ZipFile) -> list[str]:
    """By style of a cell: "d" for a date, "h" for a time, both for both, "%" for a percentage; else what stands
    around the number, such as "{} kg", and how many digits it has at least ("{:0>5}")."""
    codes: dict[int, str] = {}
    found: list[str] = []
    in_cells = False
    for edge, element, given in part_events(files, "xl/styles.xml", ["dxfs"]):
        match edge, element:
            case "start", "numFmt":
                codes[whole(given.get("numFmtId"))] = given.get("formatCode", "")
            case "start" | "end", "cellXfs":
                in_cells = edge == "start"
            case "start", "xf" if in_cells:
                number = whole(given.get("numFmtId"), 0)
                own = codes.get(number)
                if own is None:
                    found.append(BUILT_IN_DATES.get(number, "%" if number in PERCENT else ""))
                else:
                    found.append(form_of(own))
    return found


def form_of(code: str) -> str:
    """The form of a cell, as `cell_forms` lists them, by its format code, such as 'dd.mm.yyyy hh:mm' or '0.0%'."""
    code = code[:LONGEST_CODE]
    plain = re.sub(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', "", code.partition(";")[0])
    if plain.lower() in ("general", "standard"):
        return ""
    parts = [
        mark for mark, letters in (("d", "yd"), ("h", "hs")) if set(letters) & set(plain.lower())
    ]
    if not parts and re.search("m", plain, re.IGNORECASE):
        parts = ["d"]
    return " ".join(parts) or ("%" if "%" in plain else number_form(code.partition(";")[0]))


def number_form(code: str) -> str:
    """What a format's code writes around a number, with "{}" for the number; "" for nothing."""
    code = re.sub(r"\[\$([^\]-]*)[^\]]*\]", r'"\1"', code)
    code = re.sub(r"_.|\*.|\[[^\]]*\]", "", code)
    found = re.fullmatch(r"([^0#?]*)([0#?][0#?,.]*)(?<!,)([^0#?,]*)", code)
    if not found or re.search(r"[@/]|E[+-]", code):
        return ""
    before, after = (re.sub(r'"([^"{}]*)"|\\(.)|[{}]', r"\1\2", found[side]) for side in (1, 3))
    digits = f"{{:0>{len(found[2])}}}" if re.fullmatch("00+", found[2]) else "{}"
    form = (before + digits + after).strip()
    return "" if form == "{}" else form


def sheet_rows(
    files: zipfile.ZipFile,
    part: str,
    strings: Sequence[str],
    forms: Sequence[str],
    epoch: datetime,
    concealed: list[int],
) -> Iterator[str]:
    """Yield a line for each row with text. `concealed` gets the numbers of those that are hidden."""
    hidden = set[int]()
    rows: dict[int, dict[int, str]] = {}
    number = column = 0
    kind = style = ""
    pieces: list[str] = []
    formulas: list[str] = []
    reading = in_formula = False
    for edge, element, given in part_events(files, part, ["rPh", "extLst"]):
        match edge, element:
            case "text", _ if reading:
                pieces.append(element)
            case "text", _ if in_formula:
                formulas.append(element)
            case "start" | "end", "f":
                in_formula = edge == "start"
            case "start", "row":
                number, column = whole(given.get("r"), number + 1), 0
                if given.get("hidden") in ("1", "true"):
                    hidden.add(number)
            case "start", "c":
                place = re.match(r"([A-Z]{1,3})", given.get("r", ""))
                column = column_number(place[1]) if place else column + 1
                kind, style, pieces, formulas = given.get("t", "n"), given.get("s", ""), [], []
            case "start" | "end", "v" | "t":
                reading = edge == "start"
            case "end", "c":
                form = forms[whole(style, 0)] if whole(style, 0) < len(forms) else ""
                text = cell_text("".join(pieces), kind, form, strings, epoch)
                if not pieces and formulas:  # not computed by the program that wrote it
                    text = f"={''.join(formulas)}"
                if text:
                    rows.setdefault(number, {})[column] = " ".join(text.split())
            case "start", "mergeCell":
                repeat_below(rows, given.get("ref", ""))
    concealed.extend(hidden & rows.keys())
    for _, cells in sorted(rows.items()):
        far = sorted(column for column in cells if column > MOST_REPEATED)
        near = range(1, min(max(cells), MOST_REPEATED) + 1)
        yield joined_cells([cells.get(column, "") for column in (*near, *far)])


def column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number


def repeat_below(rows: dict[int, dict[int, str]], ref: str) -> None:
    """Repeat the text of the merged cells `ref` ("A1:B3") in each row that they cover, since each is read by itself."""
    found = re.fullmatch(r"([A-Z]{1,3})(\d{1,7}):[A-Z]{1,3}(\d{1,7})", ref)
    if found:
        column, first, last = column_number(found[1]), int(found[2]), int(found[3])
        if text := rows.get(first, {}).get(column):
            for number in range(first + 1, min(last, first + MOST_REPEATED) + 1):
                if number in rows:
                    rows[number].setdefault(column, text)


def cell_text(raw: str, kind: str, form: str, strings: Sequence[str], epoch: datetime) -> str:
    if kind == "s":
        return unescaped(strings[nth]) if 0 <= (nth := whole(raw, -1)) < len(strings) else ""
    if kind == "b":
        return {"1": "TRUE", "0": "FALSE"}.get(raw, raw)
    if kind == "d":
        return raw.removesuffix("T00:00:00")
    number = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
    if kind != "n" or len(raw) > LONGEST_CODE or not re.fullmatch(number, raw):
        return unescaped(raw)
    value = float(raw)
    if form == "%":
        return f"{value * 100:.10g}%"
    if form and "{" not in form and 0 <= value < 2_958_466:  # to the year 9999
        days = value + (epoch.year == 1899 and 1 <= value < 60)  # 1900 is a leap year there
        at = epoch + timedelta(seconds=round(days * 86_400))
        shown = {"d": "%Y-%m-%d", "h": "%H:%M:%S"}.get(form, "%Y-%m-%d %H:%M:%S")
        if form == "h" and value >= 1:  # a span, such as [h]:mm
            hours, rest = divmod(round(value * 86_400), 3600)
            return f"{hours}:{rest // 60:02}:{rest % 60:02}".removesuffix(":00")
        return re.sub(r"(:\d\d):00$", r"\1", at.strftime(shown))
    digits = raw if re.fullmatch(r"-?\d+", raw) else f"{value:.15g}"  # a card's number has 16
    return (form if "{" in form else "{}").format(digits)


# -- PowerPoint ---------------------------------------------------------------


def powerpoint(files: zipfile.ZipFile, notes: list[str]) -> list[Block]:
    """Each visible slide is a page; its title is a heading, and the speaker's notes follow it."""
    targets, flow, order = relations(files, "ppt/presentation.xml"), Flow(), list[str]()
    hidden = list[str]()
    for edge, element, given in part_events(files, "ppt/presentation.xml"):
        if (edge, element) == ("start", "sldId"):
            order.append(targets.pop(given.get("id", ""), ""))
    for number, part in enumerate(order, 1):
        _, _, given = next(part_events(files, part), ("start", "", {}))
        if given.get("show") in ("0", "false"):
            hidden.append(str(number))
            continue
        flow.blocks.append(("page", number, ""))
        slide_text(flow, files, part)
        for target in relations(files, part).values():
            if "/notesSlides/" in target:
                spoken = len(flow.blocks)
                slide_text(flow, files, target)
                if len(flow.blocks) > spoken:
                    flow.blocks.insert(spoken, ("text", 0, "Notes:"))
    note_hidden("slides", hidden, notes)
    return flow.blocks


def slide_text(flow: Flow, files: zipfile.ZipFile, part: str) -> None:
    in_text, title, columns, rows, merged = False, False, 1, 1, list[str]()
    counts: dict[int, int] = {}  # of numbered paragraphs, by level
    level, form, start = 0, "", 1
    targets = relations(files, part) if part.startswith("ppt/slides/") else {}
    for edge, element, given in part_events(files, part, ["Fallback", "fld"]):
        match edge, element:
            case "start", "chart":
                chart_text(flow, files, targets.pop(given.get("id", ""), ""))
            case "start", "relIds":  # a diagram
                slide_text(flow, files, targets.pop(given.get("dm", ""), ""))
            case "text", _ if in_text:
                flow.add(element)
            case "start" | "end", "t":
                in_text = edge == "start"
            case "start", "sp":
                title = False
            case "start", "ph":
                title = given.get("type") in ("title", "ctrTitle")
            case "start", "txBody":
                counts = {}
            case "start", "p":
                level, form, start = 0, "", 1
            case "start", "pPr":
                level = whole(given.get("lvl"), 0)
            case "start", "buAutoNum":
                form, start = given.get("type", ""), whole(given.get("startAt"))
            case "end", "pPr":
                counts = {at: count for at, count in counts.items() if at < level + bool(form)}
                if form:
                    counts[level] = counts.get(level, start - 1) + 1
                    flow.add(f"{slide_number(counts[level], form)} ")
            case "start", "br":
                flow.add("\n")
            case "start" | "end", "tbl" | "tr":
                flow.follow(edge, element)
            case "start", "tc":
                columns, rows = whole(given.get("gridSpan")), whole(given.get("rowSpan"))
                merged = [key for key in ("hMerge", "vMerge") if given.get(key) in ("1", "true")]
            case "end", "tc":
                if "hMerge" in merged:
                    flow.taken()
                elif merged:
                    flow.covered_cell()
                    flow.end_cell(columns - 1)
                else:
                    flow.end_cell(1, columns, rows)
            case "end", "p":
                flow.level = int(title)
                flow.finish()


def chart_text(flow: Flow, files: zipfile.ZipFile, part: str) -> None:
    """A line for each title and series of a chart, such as "Sales: Q1 5, Q2 7"."""
    flow.finish()
    cells: dict[str, dict[int, str]] = {}
    place, at, form, reading = "", 0, "", ""
    for edge, element, given in part_events(files, part, ["f", "dLbls", "errBars", "trendline"]):
        match edge, element:
            case "start", "tx" | "cat" | "val" | "xVal" | "yVal":
                place, at, form = element, 0, ""
            case "start", "pt":
                at = whole(given.get("idx"), 0)
            case "start", "t" | "v" | "formatCode":
                reading = element
            case "text", _ if reading == "formatCode":
                form = form_of(element)
            case "text", _ if reading:
                text = cell_text(element, "n", form, (), EPOCH) if reading == "v" else element
                known = cells.setdefault(place, {}).get(at)
                cells[place][at] = text if known is None else f"{known} {text}"
            case "end", "t" | "v" | "formatCode":
                reading = ""
            case "end", "title" | "ser":
                values = cells.get("val") or cells.get("yVal") or {}
                names = cells.get("cat") or cells.get("xVal") or {}
                pairs = ", ".join(f"{names.get(n, n + 1)} {value}" for n, value in values.items())
                flow.add(": ".join(filter(None, [*cells.get("tx", {}).values(), pairs])))
                flow.finish()
                cells = {}


def slide_number(number: int, form: str) -> str:
    """The number of a paragraph in a form such as "arabicPeriod", "alphaLcParenBoth" or "romanUcPeriod"."""
    kind = {"alphaLc": "a", "alphaUc": "A", "romanLc": "i", "romanUc": "I"}.get(form[:7], "decimal")
    form, text = form.removesuffix("Both"), numeral(number, kind)
    if form.endswith("Paren"):
        return f"{text})"
    return f"{text}." if form.endswith("Period") else text
