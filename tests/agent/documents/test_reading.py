"""Documents to passages, by the real programs in the real sandbox."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.documents import extraction
from agent.documents.reading import UnreadableDocument
from fakes import documents
from fakes.cases import cases
from fakes.words import saying
from tests.agent.documents.conftest import Shelf

needs_poppler = pytest.mark.skipif(not shutil.which("pdftotext"), reason="needs poppler-utils")
needs_tesseract = pytest.mark.skipif(not shutil.which("tesseract"), reason="needs tesseract-ocr")

REPORT = [
    ("1", "Report"),
    ("", "It was a good year."),
    ("2", "Refunds"),
    ("", "Money comes back within 14 days."),
    ("row", "Country|Days"),
    ("row", "France|30"),
    ("break", "The end is on the second page."),
]
REPORT_PASSAGES = [
    (1, "Report", "It was a good year."),
    (1, "Report › Refunds", "Money comes back within 14 days.\nCountry | Days\nFrance | 30"),
    (2, "Report › Refunds", "The end is on the second page."),
]


async def refusal(shelf: Shelf, name: str, content: bytes) -> str:
    with pytest.raises(UnreadableDocument) as refused:
        await shelf.passages(name, content)
    return str(refused.value)


@needs_poppler
async def test_a_pdf_is_cut_by_pages(shelf: Shelf) -> None:
    long = "\n".join(
        f"Line {n} of a page that is longer than one passage may be." for n in range(40)
    )
    found = await shelf.passages(
        "a.pdf", documents.pdf(["First page (one).", long, "Prix: 5 \xe9t\xe9"])
    )
    assert found[0] == (1, "", "First page (one).")
    assert [page for page, _, _ in found] == [1, 2, 2, 3]
    assert all(len(text) <= extraction.PASSAGE for _, _, text in found)
    assert "\n".join(text for page, _, text in found if page == 2) == long
    assert found[-1] == (3, "", "Prix: 5 \xe9t\xe9")


@pytest.mark.parametrize("kind", ["docx", "odt"])
async def test_a_text_document_is_cut_by_headings_and_pages(shelf: Shelf, kind: str) -> None:
    content = {"docx": documents.docx, "odt": documents.odt}[kind](REPORT)
    assert await shelf.passages(f"a.{kind}", content) == REPORT_PASSAGES


async def test_chapters_of_an_epub_are_its_pages(shelf: Shelf) -> None:
    book = documents.epub(
        ["<h1>One</h1><p>The start.</p>", "<h1>Two</h1><p>A <b>goose</b> flies.</p>"]
    )
    assert await shelf.passages("a.epub", book) == [
        (1, "One", "The start."),
        (2, "Two", "A goose flies."),
    ]


MARKDOWN = "# Manual\nHello.\n\n```\n# no heading\n```\n\n## Setup ##\nPlug it in."


@pytest.mark.parametrize(
    ("name", "content", "passages"),
    [
        (
            "a.md",
            MARKDOWN.encode(),
            [(1, "Manual", "Hello.\n```\n# no heading\n```"), (1, "Manual › Setup", "Plug it in.")],
        ),
        ("a.html", b"<h2>Fees</h2><p>Five &euro;.<script>bad()</script>", [(1, "Fees", "Five €.")]),
        ("a.csv", b"name,age\nAda,36\nAlan,41\n", [(1, "name,age", "Ada,36\nAlan,41")]),
        ("a.txt", "Gr\xfc\xdfe".encode("cp1252"), [(1, "", "Gr\xfc\xdfe")]),
        ("c.html", "<meta charset=koi8-r><p>чай".encode("koi8-r"), [(1, "", "чай")]),
        ("b.txt", "Gr\xfc\xdfe".encode("utf-16"), [(1, "", "Gr\xfc\xdfe")]),
        ("a.py", b"def f():\n    return 1\n", [(1, "", "def f():\n    return 1")]),
        ("a.weird", b"text all the same\x1b[2J", [(1, "", "text all the same")]),
    ],
    ids=["markdown", "html", "csv", "latin", "page", "utf-16", "source", "unknown"],
)
async def test_text_is_cut_by_headings(
    shelf: Shelf, name: str, content: bytes, passages: list[tuple[int, str, str]]
) -> None:
    assert await shelf.passages(name, content) == passages


@cases(
    ("line", "level", "words"),
    [
        ("# C#", 1, "C#"),
        ("## F# and C# ##", 2, "F# and C#"),
        ("# Setup #", 1, "Setup"),
        ("### Setup\t####  ", 3, "Setup"),
        ("# Issue #5", 1, "Issue #5"),
        ("# ##", 1, ""),
        ("## # ##", 2, "#"),
        ("#\ta ", 1, "a"),
        (f"# a{' ' * 20_000}b", 1, f"a{' ' * 20_000}b"),
        (f"# {'# ' * 20_000}b", 1, f"{'# ' * 20_000}b"),
        (f"# a{'#' * 20_000}b", 1, f"a{'#' * 20_000}b"),
    ],
)
def test_headings_of_markdown(line: str, level: int, words: str) -> None:
    assert ("heading", level, words) in list(extraction.markdown(f"x\n{line}\ny"))


async def test_where_there_are_no_pages_parts_are_about_as_long_as_one(shelf: Shelf) -> None:
    text = "\n\n".join(f"Paragraph {n}. " + "Some words. " * 40 for n in range(40))
    await shelf.file("long.txt", text.encode())
    passages, facts = await shelf.reader.read("cli", "", "long.txt")
    assert facts.unit == "part" and facts.pages == passages[-1].page
    assert len(text) / extraction.PART / 2 < facts.pages < len(text) / extraction.PART + 2
    assert " ".join(one.text for one in passages).split() == text.split()


@needs_tesseract
@needs_poppler
async def test_a_scan_is_read(shelf: Shelf) -> None:
    found = await shelf.passages("scan.pdf", documents.scanned_pdf(["Invoice number 4711"]))
    assert found == [(1, "", "Invoice number 4711")]


@needs_poppler
async def test_only_pages_that_show_something_are_recognised(shelf: Shelf) -> None:
    await shelf.file("blank.pdf", documents.pdf(["", *["."] * 2, "", "Words of the last page."]))
    passages, facts = await shelf.reader.read("cli", "", "blank.pdf")
    assert passages[-1].text == "Words of the last page."
    [note] = facts.notes
    assert note == saying("no text", "on 2 of its 5")


@needs_poppler
async def test_a_scan_that_takes_long_loses_no_text_of_other_pages(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "tesseract"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    pdf = tmp_path / "a.pdf"
    pdf.write_bytes(documents.pdf([".", "The last page is read.", "Word"]))
    document = extraction.Document(str(pdf), time.monotonic() + 2)
    texts = [words for kind, _, words in extraction.blocks(document) if kind == "text"]
    assert [words for words in texts if words] == [".", "The last page is read.", "Word"]
    assert document.notes == [saying("little or no text", "on 2 of its 3")]


@needs_poppler
@pytest.mark.parametrize(
    ("pages", "most", "read"),
    [
        (["."] * 200, 20, ""),
        ([str(number) for number in range(200)], 20, ""),
        (["- 7 -"] * 60, 20, ""),
        (["* * *"] * 60, 20, ""),
        (["|"] * 60, 20, ""),
        (["x"] * 60, 20, ""),
        (["_____"] * 60, 20, ""),
        (["ii"] * 100, 20, ""),
        (["#12"] * 100, 20, ""),
        ([*["."] * 30, "SCAN", *["."] * 60], 20, ""),
        (["SCAN"] * 40, 40, "page 40 has words"),
        ([*["."] * 7, *["SCAN"] * 20], 27, "page 27 has words"),
        ([*["."] * 12, *["SCAN"] * 20], 32, "page 32 has words"),
    ],
)
async def test_scans_are_bounded_by_what_they_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: list[str], most: int, read: str
) -> None:
    scans = list[int]()

    def scan(document: extraction.Document, number: int) -> str:
        scans.append(number)
        return f"page {number} has words" if pages[number - 1] == "SCAN" else ""

    monkeypatch.setattr(extraction, "scanned_page", scan)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    pdf = tmp_path / "sparse.pdf"
    pdf.write_bytes(documents.pdf(["." if page == "SCAN" else page for page in pages]))
    document = extraction.Document(str(pdf), time.monotonic() + 180)
    texts = [words for kind, _, words in extraction.blocks(document) if kind == "text"]
    assert len(scans) <= most
    assert read in "\n".join(texts)


@needs_poppler
async def test_a_document_of_too_many_pages_says_which_were_read(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shelf.file("long.pdf", documents.pdf(["a page of a book"] * 5_000))
    passages, facts = await shelf.reader.read("cli", "", "long.pdf")
    assert len(passages) == facts.pages == extraction.MOST_PAGES
    assert facts.notes == [saying("first 3000", "5000 pages")]


@needs_poppler
async def test_an_encrypted_pdf_is_told(shelf: Shelf) -> None:
    said = await refusal(shelf, "a.pdf", documents.pdf(["secret"], locked=True))
    assert said == saying("encrypted", "without its password")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            lambda: documents.zip_bomb(80),
            "It unpacks to more than 64 MiB, which no honest document does.",
        ),
        (documents.entity_bomb(), "It defines entities of its own, which no honest document does."),
        (documents.docx(REPORT)[:600], extraction.DAMAGED),
        (
            documents.archive({"a.txt": "x"}),
            f"It is an archive; these can be read: {extraction.KINDS}.",
        ),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
            "It is encrypted, or in a form of Office before 2007: save it without a password as .docx.",
        ),
        (rb"{\rtf1\ansi Hello}", "It is in the Rich Text Format: save it as .docx."),
        (b"MZ\0\0\0", f"It is of a kind that cannot be read; these can be: {extraction.KINDS}."),
        (b" \n", "There is no text in it."),
    ],
    ids=["zip-bomb", "entities", "cut-off", "archive", "old-office", "rtf", "program", "empty"],
)
async def test_what_cannot_be_read_is_one_sentence(
    shelf: Shelf, content: bytes | Callable[[], bytes], said: str
) -> None:
    raw = content() if callable(content) else content
    assert await refusal(shelf, "a.docx", raw) == said


async def test_a_document_of_a_folder_is_read_where_no_chat_sees_it(shelf: Shelf) -> None:
    (shelf.folder / "sub").mkdir(mode=0o755)
    (shelf.folder / "sub/a.md").write_text("# A\nwords")
    passages, _ = await shelf.reader.read("", "handbook", "sub/a.md")
    assert [one.text for one in passages] == ["words"]
