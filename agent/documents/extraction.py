"""One document to passages of text. A program of its own, for the Python of a sandbox; standard library only.

    extraction.py PATH SECONDS

prints JSON Lines: {"page", "heading", "text"} for each passage, in order, and at the end
{"unit", "pages", "notes"}, or {"error"} with one sentence. PDFs are read by poppler, pictures of
text by tesseract; DOCX, OpenDocument and EPUB are ZIP archives of XML, which expat reads as a
stream. Whatever the file says, memory, time and output are bounded.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import IO, TypeAlias
from urllib.parse import unquote
from xml.parsers import expat

from agent.sandbox.output_buffer import clean
from agent.web.html_text import decoded, html_text

PASSAGE = 1_200  # characters
PART = 3_000  # characters of a "page" where a document has none: about what is printed on one
HEADING = 200
MOST_PAGES = 3_000
MOST_OUTPUT = 15 << 20  # bytes; the sandbox ends a call at 16 MiB
MOST_FILE = 64 << 20  # bytes of a text file, and of a file in an archive
MOST_SCANS = 200  # pages that tesseract reads
SCAN_PIXELS = 2_400  # of the longer side: 200 dpi of an A4 page
PROBE_PIXELS = 100  # of the longer side: a full stop of 11 pt is still darker than the paper
PGM = re.compile(rb"P5\s(\d+)\s(\d+)\s255\s")  # poppler's grey pictures, one after another
WORDLESS = 8  # letters and digits, fewer of which make a page a picture
KINDS = "PDF, Word (.docx), OpenDocument, EPUB, HTML, Markdown, text, CSV and source"

DAMAGED = "It is damaged, or not what its name says."

# Its kind (page, heading or text), the number or level, the words.
Block: TypeAlias = tuple[str, int, str]


class Refused(Exception):
    """The document cannot be read; `str` says why, in one sentence."""


class Document:
    """What is learned while it is read: `unit` of its numbers, `pages` in all, `notes` for the person."""

    def __init__(self, path: str, end: float) -> None:
        self.path = path
        self.end = end  # monotonic
        self.unit = "page"
        self.pages = 0
        self.notes: list[str] = []

    def left(self) -> float:
        """Seconds."""
        return self.end - time.monotonic()


def main(path: str, seconds: float) -> None:
    document = Document(path, time.monotonic() + seconds)
    written = 0
    try:
        for page, heading, text in passages(document, list(blocks(document))):
            line = json.dumps({"page": page, "heading": heading, "text": text}, ensure_ascii=False)
            raw = line.encode("utf-8", "replace") + b"\n"
            written += len(raw)
            if written > MOST_OUTPUT:
                unit = document.unit
                document.notes.append(
                    f"Its text is too long: what follows {unit} {page} was left out."
                )
                break
            document.pages = max(document.pages, page)
            sys.stdout.buffer.write(raw)
        if not written:
            raise Refused(no_text(document.notes))
        last: dict[str, object] = {
            "unit": document.unit,
            "pages": document.pages,
            "notes": document.notes,
        }
    except Refused as error:
        last = {"error": str(error)}
    except FileNotFoundError:
        last = {"error": "The file is gone."}
    except PermissionError:
        last = {"error": "The permissions of the file forbid reading it."}
    except (subprocess.TimeoutExpired, MemoryError):
        last = {"error": "It is too large to be read in the time and memory that a document gets."}
    except (
        *(
            OSError,
            EOFError,
            KeyError,
            ValueError,
            RecursionError,
            NotImplementedError,
            RuntimeError,
        ),
        *(zipfile.BadZipFile, zlib.error, expat.ExpatError),
    ):
        last = {"error": DAMAGED}
    sys.stdout.buffer.write(json.dumps(last, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def no_text(notes: Sequence[str]) -> str:
    """One sentence, with what the notes say of it."""
    why = " and ".join(note[0].lower() + note[1:].rstrip(".") for note in notes)
    return f"There is no text in it{why and f': {why}'}."


def blocks(document: Document) -> Iterator[Block]:
    """Tell the kind by the first bytes, where a name would not: those of text by its name."""
    with Path(document.path).open("rb") as file:
        head = file.read(1024)
    suffix = document.path.rpartition(".")[2].lower()
    if b"%PDF-" in head:
        return pdf(document)
    if head.startswith(b"PK\x03\x04"):
        return archive(document)
    if head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"II*\0", b"MM\0*")):
        return picture(document)
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        raise Refused(
            "It is encrypted, or in a form of Office before 2007: save it without a password as .docx."
        )
    document.unit = "part"
    html = suffix in ("html", "htm", "xhtml")
    text = text_of(document.path, html=html)
    if html:
        return markdown(html_text(text))
    if suffix in ("md", "markdown"):
        return markdown(text)
    if suffix == "csv":
        return table(text)
    return paragraphs(text)


# -- PDF, and pictures of text ------------------------------------------------


def pdf(document: Document) -> Iterator[Block]:
    if not shutil.which("pdftotext"):
        raise Refused(
            "PDFs cannot be read here until the owner installs poppler-utils on this computer."
        )
    facts = run(document, ["pdfinfo", document.path], errors=subprocess.STDOUT)
    if b"ncorrect password" in facts:
        raise Refused("It is encrypted: send it again without its password.")
    count = re.search(rb"^Pages: +(\d+)", facts, re.M)
    if count is None:
        raise Refused(DAMAGED)
    document.pages = min(int(count[1]), MOST_PAGES)
    if document.pages < int(count[1]):
        document.notes.append(
            f"Only the first {MOST_PAGES} of its {int(count[1])} pages were read."
        )
    command = ["pdftotext", "-q", "-enc", "UTF-8", "-l", str(document.pages), document.path, "-"]
    pages = run(document, command).decode("utf-8", "replace").split("\f")[: document.pages]
    ocr = shutil.which("tesseract")
    wordless = [number for number, text in enumerate(pages, 1) if not has_words(text)]
    drawn = set(wordless) - blank_pages(document, wordless)
    scans, unread = 0, 0
    for number, text in enumerate(pages, 1):
        yield "page", number, ""
        if number in drawn:
            found = None
            if ocr and scans < MOST_SCANS and document.left() > 0:
                scans += 1
                found = scanned_page(document, number)
            text = found or text
            unread += found is None or not re.search(r"\w", text)
        yield from paragraphs(text)
    if unread:
        named = "its pages" if unread == len(pages) else f"{unread} of its {len(pages)} pages"
        why = "" if ocr else "; with tesseract-ocr on this computer, scans can be read"
        document.notes.append(f"No text was found on {named}{why}.")


def has_words(text: str) -> bool:
    """Whether a page has more than a number or a line of its frame."""
    return len(re.findall(r"\w", text[:1000])) >= WORDLESS


def blank_pages(document: Document, wordless: Sequence[int]) -> set[int]:
    """Those of them that show nothing at all, so that there is nothing to recognise.

    One small picture of each page tells: 3,000 of them take poppler half a second, tesseract as many minutes.
    None where poppler left a page out or takes long: then their numbers are not known.
    """
    if not wordless:
        return set()
    first, last = wordless[0], wordless[-1]
    command = ["pdftoppm", "-q", "-gray", "-f", f"{first}", "-l", f"{last}"]
    try:
        shown = run(
            document,
            [*command, "-scale-to", str(PROBE_PIXELS), document.path],
            seconds=document.left() / 3,
        )
    except subprocess.TimeoutExpired:
        return set()
    blank, at, number = set[int](), 0, first
    while head := PGM.match(shown, at):
        end = head.end() + int(head[1]) * int(head[2])
        pixels = shown[head.end() : end]
        if not pixels.strip(pixels[:1]):
            blank.add(number)
        at, number = end, number + 1
    return blank.intersection(wordless) if number == last + 1 else set()


def scanned_page(document: Document, number: int) -> str | None:
    """The text of a page that is a picture; None where the document's time is up."""
    options = ["-f", str(number), "-l", str(number), "-scale-to", str(SCAN_PIXELS)]
    try:
        image = run(document, ["pdftoppm", "-q", "-gray", *options, document.path])
        return scanned(document, image).strip()
    except subprocess.TimeoutExpired:
        return None


def picture(document: Document) -> Iterator[Block]:
    if not shutil.which("tesseract"):
        raise Refused(
            "Pictures of text cannot be read here until the owner installs tesseract-ocr on this computer."
        )
    with Path(document.path).open("rb") as file:
        yield from paragraphs(scanned(document, file.read(MOST_FILE)))


def scanned(document: Document, image: bytes) -> str:
    """The text of a picture, in the languages that tesseract has been given."""
    command = ["tesseract", "stdin", "stdout", "-l", languages(document)]
    return run(document, command, image).decode("utf-8", "replace")


@cache
def languages(document: Document) -> str:
    names = run(document, ["tesseract", "--list-langs"]).decode().split("\n")[1:]
    return "+".join([name for name in names if name and name != "osd"][:4]) or "eng"


def run(
    document: Document,
    command: list[str],
    given: bytes = b"",
    errors: int = subprocess.DEVNULL,
    seconds: float | None = None,
) -> bytes:
    """What a program prints, up to MOST_FILE; TimeoutExpired after `seconds`, or at the document's end."""
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env={**os.environ, "OMP_THREAD_LIMIT": "1"},
    ) as process:
        try:
            left = document.left() if seconds is None else seconds
            printed, _ = process.communicate(given, timeout=max(left, 1))
        finally:
            process.kill()
    return printed[:MOST_FILE]


# -- archives of XML ----------------------------------------------------------


def archive(document: Document) -> Iterator[Block]:
    with zipfile.ZipFile(document.path) as files:
        names = set(files.namelist())
        kind = opened(files, "mimetype").read(100).decode("latin-1") if "mimetype" in names else ""
        if "word/document.xml" in names:
            yield from word(document, files)
        elif kind.startswith("application/epub"):
            yield from epub(document, files)
        elif kind.startswith("application/vnd.oasis.opendocument"):
            yield from open_document(document, files)
        elif names & {"xl/workbook.xml", "ppt/presentation.xml"}:
            raise Refused("It is of Excel or PowerPoint: save it as CSV, OpenDocument or PDF.")
        else:
            raise Refused(f"It is an archive; what can be read are {KINDS}.")


class Bounded:
    """A file of an archive, of which no more than MOST_FILE bytes come out."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.left = MOST_FILE

    def read(self, size: int = -1) -> bytes:
        piece = self.file.read(min(size, self.left + 1) if size >= 0 else self.left + 1)
        self.left -= len(piece)
        if self.left < 0:
            raise Refused(
                f"It unpacks to more than {MOST_FILE >> 20} MiB, which no honest document does."
            )
        return piece


def opened(files: zipfile.ZipFile, name: str) -> Bounded:
    info = files.getinfo(name)
    if info.flag_bits & 1:
        raise Refused("It is encrypted: send it again without its password.")
    return Bounded(files.open(info))


Attributes: TypeAlias = dict[str, str]


def read_xml(
    file: Bounded,
    start: Callable[[str, Attributes], None],
    end: Callable[[str], None],
    text: Callable[[str], None],
) -> None:
    """Tell of elements and attributes by their names without namespaces."""

    def entity(*_: object) -> None:
        raise Refused("It defines entities of its own, which no honest document does.")

    def local(name: str) -> str:
        return name.rpartition(" ")[2]

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.EntityDeclHandler = entity
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, given: start(
        local(name), {local(key): value for key, value in given.items()}
    )
    parser.EndElementHandler = lambda name: end(local(name))
    parser.CharacterDataHandler = text
    parser.ParseFile(file)


class Flow:
    """The blocks of a text that comes as a stream of elements."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.page = 1
        self.level = 0  # of the heading that is read; 0: a paragraph
        self.rows = 0  # depth of table rows, in which paragraphs are cells
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def finish(self) -> None:
        """A paragraph or a row ends."""
        if self.rows:
            self.add(" ")
            return
        text = "".join(self._pieces).strip(" |\n")
        if text:
            self.blocks.append(("heading", self.level, text) if self.level else ("text", 0, text))
        self._pieces, self.level = [], 0

    def new_page(self) -> None:
        level, rows = self.level, self.rows
        self.rows = 0
        self.finish()
        self.page += 1
        self.blocks.append(("page", self.page, ""))
        self.level, self.rows = level, rows


def word(document: Document, files: zipfile.ZipFile) -> Iterator[Block]:
    """The main text and its notes. Pages are those of which Word itself has noted where they begin."""
    levels = heading_styles(files)
    flow, in_text, skipped = Flow(), False, 0

    def start(name: str, given: Attributes) -> None:
        nonlocal in_text, skipped
        if name == "Fallback" or skipped:  # the same again, for older programs
            skipped += 1
        elif name == "pStyle":
            flow.level = levels.get(given.get("val", ""), flow.level)
        elif name == "t":
            in_text = True
        elif name == "lastRenderedPageBreak":
            flow.new_page()
        elif name in ("tab", "br", "cr"):
            flow.add("\t" if name == "tab" else "\n")
        elif name == "tr":
            flow.rows += 1

    def end(name: str) -> None:
        nonlocal in_text, skipped
        if skipped:
            skipped -= 1
        elif name == "t":
            in_text = False
        elif name == "tc":
            flow.add("| ")
        elif name == "tr":
            flow.rows -= 1
            flow.finish()
        elif name == "p":
            flow.finish()

    def text(words: str) -> None:
        if in_text and not skipped:
            flow.add(words)

    for part in ("document", "footnotes", "endnotes"):
        if f"word/{part}.xml" in files.namelist():
            read_xml(opened(files, f"word/{part}.xml"), start, end, text)
    document.unit = "page" if flow.page > 1 else "part"
    yield from flow.blocks


def heading_styles(files: zipfile.ZipFile) -> dict[str, int]:
    """Levels by the ids of styles. Ids are translated, the names of built-in styles are not."""
    levels: dict[str, int] = {}
    style = ""

    def start(name: str, given: Attributes) -> None:
        nonlocal style
        if name == "style":
            style = given.get("styleId", "")
        elif name == "name" and style:
            words = given.get("val", "").lower()
            if words == "title":
                levels[style] = 1
            elif found := re.fullmatch(r"heading ([1-9])", words):
                levels[style] = int(found[1])

    if "word/styles.xml" in files.namelist():
        read_xml(opened(files, "word/styles.xml"), start, lambda name: None, lambda words: None)
    return levels


def open_document(document: Document, files: zipfile.ZipFile) -> Iterator[Block]:
    """Texts, sheets (each under its name) and slides (each a page)."""
    if "META-INF/manifest.xml" in files.namelist():
        manifest = opened(files, "META-INF/manifest.xml").read()
        if b"encryption-data" in manifest:
            raise Refused("It is encrypted: send it again without its password.")
    flow, depth, slides = Flow(), 0, 0

    def start(name: str, given: Attributes) -> None:
        nonlocal depth, slides
        if name in ("tracked-changes", "annotation", "styles", "forms") or depth:
            depth += 1
        elif name == "h":
            flow.level = int(given.get("outline-level", "1"))
        elif name in ("tab", "line-break"):
            flow.add("\t" if name == "tab" else "\n")
        elif name == "s":
            flow.add(" ")
        elif name == "soft-page-break":
            flow.new_page()
        elif name == "page":
            slides += 1
            if slides > 1:
                flow.new_page()
        elif name == "table" and "name" in given and not flow.rows:
            flow.level = 1
            flow.add(given["name"])
            flow.finish()
        elif name == "table-row":
            flow.rows += 1

    def end(name: str) -> None:
        nonlocal depth
        if depth:
            depth -= 1
        elif name == "table-cell":
            flow.add("| ")
        elif name == "table-row":
            flow.rows -= 1
            flow.finish()
        elif name in ("p", "h"):
            flow.finish()

    read_xml(
        opened(files, "content.xml"), start, end, lambda words: None if depth else flow.add(words)
    )
    document.unit = "page" if flow.page > 1 or slides else "part"
    yield from flow.blocks


def epub(document: Document, files: zipfile.ZipFile) -> Iterator[Block]:
    """The files of its spine, in order, each a chapter."""
    document.unit = "chapter"
    package = ""
    items: dict[str, str] = {}
    spine: list[str] = []

    def start(name: str, given: Attributes) -> None:
        nonlocal package
        if name == "rootfile":
            package = package or given.get("full-path", "")
        elif name == "item":
            items[given.get("id", "")] = given.get("href", "")
        elif name == "itemref":
            spine.append(items.get(given.get("idref", ""), ""))

    for name in ("META-INF/container.xml", ""):
        read_xml(opened(files, name or package), start, lambda name: None, lambda words: None)
    number, left = 0, MOST_FILE
    for href in spine[:MOST_PAGES]:
        path = normpath(join(dirname(package), unquote(href.partition("#")[0])))
        if path in files.namelist():
            raw = opened(files, path).read()
            left -= len(raw)
            if left < 0:
                raise Refused(
                    f"It unpacks to more than {MOST_FILE >> 20} MiB, which no honest document does."
                )
            if text := html_text(raw.decode("utf-8", "replace")):
                number += 1
                yield "page", number, ""
                yield from markdown(text)


# -- text ---------------------------------------------------------------------


def text_of(path: str, *, html: bool) -> str:
    with Path(path).open("rb") as file:
        raw = file.read(MOST_FILE + 1)
    if len(raw) > MOST_FILE:
        raise Refused(f"It has more than {MOST_FILE >> 20} MiB of text.")
    if b"\0" in raw and not raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Refused(f"It is of a kind that cannot be read; what can be are {KINDS}.")
    return decoded(raw, html=html)


def markdown(text: str) -> Iterator[Block]:
    """Headings by their signs, but not in fenced code."""
    kept: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        heading = None if fence else re.match(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$", line)
        if heading:
            yield from paragraphs("\n".join(kept))
            kept = []
            yield "heading", len(heading[1]), heading[2]
        else:
            kept.append(line)
    yield from paragraphs("\n".join(kept))


def table(text: str) -> Iterator[Block]:
    """The lines of a CSV, under its first one as their heading."""
    first, _, rest = text.partition("\n")
    yield "heading", 1, first
    for line in rest.split("\n"):
        yield "text", 0, line


def paragraphs(text: str) -> Iterator[Block]:
    for paragraph in re.split(r"\n[ \t]*(?:\n[ \t]*)+", text):
        yield "text", 0, paragraph


# -- passages -----------------------------------------------------------------


def passages(document: Document, found: list[Block]) -> Iterator[tuple[int, str, str]]:
    """Page, headings above and text of each passage: none goes over a heading or a page, or is much
    longer than PASSAGE. Where a document has no pages, they are parts of about PART characters."""
    paged = document.unit != "part"
    page, length = 1, 0
    path: list[tuple[int, str]] = []
    text = bare = ""  # `bare`: a heading under which nothing has come

    def heading() -> str:
        return clean(" › ".join(words for _, words in path))[:HEADING]

    for kind, number, words in found:
        words = clean(words).strip("\n ")
        full = kind == "text" and text and len(text) + len(words) > PASSAGE
        if kind != "text" or full:
            if kind == "heading" and bare and not text and number <= path[-1][0]:
                text = bare
            if text:
                yield page, heading(), text
                length += len(text)
                text = ""
            if not paged and length >= PART:
                page, length = page + 1, 0
        if kind == "page":
            page = number
        elif kind == "heading" and words:
            bare = " ".join(words.split())
            path = [*(each for each in path if each[0] < number), (number, bare[:HEADING])]
        elif words:
            bare = ""
            *whole, words = pieces(words)
            for piece in whole:
                yield page, heading(), piece
                length += len(piece)
                if not paged and length >= PART:
                    page, length = page + 1, 0
            text = f"{text}\n{words}" if text else words
    if text or bare:
        yield page, heading(), text or bare


def pieces(text: str) -> Iterator[str]:
    """A long paragraph, cut after a line, a sentence or a word."""
    at = 0
    while len(text) - at > PASSAGE:
        window = text[at : at + PASSAGE]
        cuts = (window.rfind(mark) + len(mark) for mark in ("\n", ". ", " "))
        cut = next((cut for cut in cuts if cut > PASSAGE // 2), PASSAGE)
        yield text[at : at + cut].strip()
        at += cut
    yield text[at:]
