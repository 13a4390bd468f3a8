"""One document to passages of text. A program of its own, for the Python of a sandbox; standard library only.

    extraction.py PATH SECONDS

prints JSON Lines: {"page", "heading", "text"} for each passage, in order, and at the end
{"unit", "pages", "notes"}, or {"error"} with one sentence. PDFs are read by poppler, pictures of
text by tesseract; office.py reads Word, OpenDocument, Excel and PowerPoint. Whatever the file says, memory,
time and output are bounded.
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
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from xml.parsers import expat

from agent.documents.encodings import decoded
from agent.documents.messages import read as read_message
from agent.documents.office import (
    ENCRYPTED,
    MOST_FILE,
    UNPACKS_TO_TOO_MUCH,
    Block,
    Refused,
    excel,
    open_document,
    opened,
    powerpoint,
    word,
    word_part,
    xml_events,
)
from agent.sandbox.output_buffer import clean
from agent.web.html_text import decode_page, html_text

PASSAGE = 1_200  # characters
PART = 3_000  # characters of a "page" where a document has none: about what is printed on one
HEADING = 200
MOST_PAGES = 3_000
MOST_OUTPUT = 15 << 20  # bytes; the sandbox ends a call at 16 MiB
MOST_SCANS = 200  # pages that tesseract reads
IN_VAIN = 8  # scans in a row without words, after each of which twice as many pages are passed over
SCAN_PIXELS = 2_400  # of the longer side: 200 dpi of an A4 page
PROBE_PIXELS = 100  # of the longer side: a full stop of 11 pt is still darker than the paper
PGM = re.compile(rb"P5\s(\d+)\s(\d+)\s255\s")  # poppler's grey pictures, one after another
CELL = re.compile(
    r'(?<![^,;\t|\n])"(?:[^"]|"")*+"(?![^,;\t|\n])'
)  # of a CSV file, in quotation marks
WORDLESS = 8  # letters and digits, fewer of which make a page a picture
KINDS = "PDF, Word (.docx), Excel (.xlsx), PowerPoint (.pptx), OpenDocument, EPUB, HTML, Markdown, text, CSV, mail (.eml) and source"

DAMAGED = "It is damaged, or not what its name says."
BROKEN_ARCHIVE = (zipfile.BadZipFile, zlib.error, expat.ExpatError)


class Document:
    """A document being read: how many `pages` were found, what a page of its kind is called (`unit`), and `notes` for the person."""

    def __init__(self, path: str, end: float) -> None:
        self.path = path
        self.end = end  # monotonic
        self.unit = "page"
        self.pages = 0
        self.notes: list[str] = []

    def left(self) -> float:
        """The seconds that are left for reading the document."""
        return self.end - time.monotonic()


def main(path: str, seconds: str) -> None:
    document = Document(path, time.monotonic() + float(seconds))
    written = 0
    try:
        for page, heading, text in passages(document, list(blocks(document))):
            line = json.dumps({"page": page, "heading": heading, "text": text}, ensure_ascii=False)
            raw = line.encode("utf-8", "replace") + b"\n"
            written += len(raw)
            if written > MOST_OUTPUT:
                end = f"{document.unit} {page}"
                document.notes.append(f"Its text is too long: what follows {end} was left out.")
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
    except (OSError, EOFError, KeyError, ValueError, RuntimeError, *BROKEN_ARCHIVE):
        last = {"error": DAMAGED}
    sys.stdout.buffer.write(json.dumps(last, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def no_text(notes: Sequence[str]) -> str:
    """The sentence for a document without text, with its notes as the reasons."""
    why = " and ".join(note[0].lower() + note[1:].rstrip(".") for note in notes)
    return f"There is no text in it{why and f': {why}'}."


def blocks(document: Document) -> Iterator[Block]:
    """Yield the document's content in order. Its kind follows from its first bytes, that of text from its name."""
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
    if head.startswith(b"{\\rtf"):
        raise Refused("It is in the Rich Text Format: save it as .docx.")
    document.unit = "part"
    if suffix == "eml":
        return message(document)
    html = suffix in ("html", "htm", "xhtml")
    text = text_of(document, html=html)
    if html:
        return markdown(html_text(text))
    if suffix in ("md", "markdown"):
        return markdown(text)
    if suffix in ("csv", "tsv"):
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
        raise Refused(ENCRYPTED)
    count = re.search(rb"^Pages: +(\d+)", facts, re.M)
    if count is None:
        raise Refused(DAMAGED)
    there = int(count[1])
    document.pages = min(there, MOST_PAGES)
    if document.pages < there:
        document.notes.append(f"Only the first {MOST_PAGES} of its {there} pages were read.")
    command = ["pdftotext", "-q", "-enc", "UTF-8", "-l", str(document.pages), document.path, "-"]
    pages = run(document, command).decode("utf-8", "replace").split("\f")[: document.pages]
    ocr = shutil.which("tesseract")
    wordless = [number for number, text in enumerate(pages, 1) if not has_words(text)]
    drawn = set(wordless) - blank_pages(document, wordless)
    scans, in_vain, next_scan, unread = 0, 0, 0, 0
    for number, text in enumerate(pages, 1):
        yield "page", number, ""
        if number in drawn:
            found = None
            if ocr and scans < MOST_SCANS and number >= next_scan and document.left() > 0:
                scans += 1
                found = scanned_page(document, number)
                in_vain = 0 if has_words(found or "") else in_vain + 1
                next_scan = number + 2 ** max(0, in_vain - IN_VAIN)
            text = found or text
            unread += found is None or not re.search(r"\w", text)
        yield from paragraphs(text)
    if unread:
        named = "its pages" if unread == len(pages) else f"{unread} of its {len(pages)} pages"
        why = "" if ocr else "; with tesseract-ocr on this computer, scans can be read"
        document.notes.append(f"Little or no text was found on {named}{why}.")


def has_words(text: str) -> bool:
    """Whether a page has more than a number or a line of its frame."""
    return len(re.findall(r"\w", text[:1000])) >= WORDLESS


def blank_pages(document: Document, wordless: Sequence[int]) -> set[int]:
    """Return the empty ones of these pages, which tesseract need not read.

    Each is drawn as a small picture: 3,000 of them take poppler half a second, tesseract many minutes.
    Empty when poppler left a page out, since pictures and pages no longer match, or took too long.
    """
    if not wordless:
        return set()
    first, last = wordless[0], wordless[-1]
    options = ["-f", str(first), "-l", str(last), "-scale-to", str(PROBE_PIXELS)]
    command = ["pdftoppm", "-q", "-gray", *options, document.path]
    try:
        shown = run(document, command, seconds=document.left() / 3)
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
    """The text of a page that is a picture; None when the document's time is up."""
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
    """Run a program and return what it prints, up to MOST_FILE bytes. Raises TimeoutExpired after `seconds`, or when the document's time is up."""
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
        found, paged = list[Block](), True
        if word_part(files):
            found, paged = word(files)
        elif "xl/workbook.xml" in names:
            found, paged = excel(files, document.notes), False
        elif "ppt/presentation.xml" in names:
            found = powerpoint(files, document.notes)
        elif kind.startswith("application/epub"):
            yield from epub(document, files)
        elif kind.startswith("application/vnd.oasis.opendocument"):
            found, paged = open_document(files, document.notes)
        else:
            raise Refused(f"It is an archive; these can be read: {KINDS}.")
        if found:
            document.unit = "page" if paged else "part"
            yield from found


def epub(document: Document, files: zipfile.ZipFile) -> Iterator[Block]:
    """Read the files of an EPUB's spine in order, each as a chapter."""
    document.unit = "chapter"
    package = ""
    items: dict[str, str] = {}
    spine: list[str] = []
    for name in ("META-INF/container.xml", ""):
        for event in xml_events(opened(files, name or package)):
            match event:
                case "start", "rootfile", given:
                    package = package or given.get("full-path", "")
                case "start", "item", given:
                    items[given.get("id", "")] = given.get("href", "")
                case "start", "itemref", given:
                    spine.append(items.get(given.get("idref", ""), ""))
    number, left = 0, MOST_FILE
    for href in spine[:MOST_PAGES]:
        path = normpath(join(dirname(package), unquote(href.partition("#")[0])))
        if path in files.namelist():
            raw = opened(files, path).read()
            left -= len(raw)
            if left < 0:
                raise Refused(UNPACKS_TO_TOO_MUCH)
            if text := html_text(raw.decode("utf-8", "replace")):
                number += 1
                yield "page", number, ""
                yield from markdown(text)


# -- text ---------------------------------------------------------------------


def text_of(document: Document, *, html: bool) -> str:
    """The text of a file, with line feeds alone at the ends of its lines. A guessed encoding is noted."""
    with Path(document.path).open("rb") as file:
        raw = file.read(MOST_FILE + 1)
    if len(raw) > MOST_FILE:
        raise Refused(f"It has more than {MOST_FILE >> 20} MiB of text.")
    text, found = (decode_page(raw, html=True), "") if html else decoded(raw)
    if "\0" in text:
        raise Refused(f"It is of a kind that cannot be read; these can be: {KINDS}.")
    if found:
        document.notes.append(found)
    return re.sub(r"\r\n?", "\n", text)


def message(document: Document) -> Iterator[Block]:
    with Path(document.path).open("rb") as file:
        read = read_message(file.read(MOST_FILE))
    yield "heading", 1, str(read["subject"])
    head = [
        f"{name}: {read[key]}"
        for name, key in (("From", "sender"), ("To", "recipients"), ("Date", "sent"))
    ]
    yield from paragraphs("\n".join([*head, "", str(read["text"])]))


def markdown(text: str) -> Iterator[Block]:
    """Split Markdown at its headings: lines that begin with #, outside of fenced code."""
    kept: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        heading = None if fence else re.match(r"(#{1,6})[ \t]+(.*)", line)
        if heading:
            yield from paragraphs("\n".join(kept))
            kept = []
            words = heading[2].rstrip()
            bare = words.rstrip("#")  # signs at the end are no part of it, but "C#" is
            yield "heading", len(heading[1]), words if bare[-1:].strip() else bare.rstrip()
        else:
            kept.append(line)
    yield from paragraphs("\n".join(kept))


def table(text: str) -> Iterator[Block]:
    """The rows of a CSV file, with its first one as their heading; "sep=;" before it is for Excel."""
    text = re.sub(r'^\ufeff?"?sep=."?\n', "", text, flags=re.IGNORECASE).lstrip("\n")
    first, _, rest = CELL.sub(lambda cell: cell[0].replace("\n", " "), text).partition("\n")
    yield "heading", 1, first
    for line in rest.split("\n"):
        yield "text", 0, line


def paragraphs(text: str) -> Iterator[Block]:
    for paragraph in re.split(r"\n[ \t]*(?:\n[ \t]*)+", text):
        yield "text", 0, paragraph


# -- passages -----------------------------------------------------------------


def passages(document: Document, found: list[Block]) -> Iterator[tuple[int, str, str]]:
    """(page, headings above it, text) of each passage. No passage crosses a heading or a page, or is much
    longer than PASSAGE. A document without pages is counted in parts of about PART characters."""
    paged = document.unit != "part"
    page, length = 1, 0
    path: list[tuple[int, str]] = []
    text = bare = ""  # `bare`: a heading under which there is no text so far

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
