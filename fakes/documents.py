"""Small documents of each kind, written by hand: PDF, Word, OpenDocument, EPUB; and bad ones."""

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from PIL import Image, ImageDraw, ImageFont


def pdf(pages: Sequence[str], *, locked: bool = False) -> bytes:
    """A page of Helvetica for each text (Latin-1, a line for each of its lines)."""
    return _pdf([_text_page(text) for text in pages], locked=locked)


def scanned_pdf(pages: Sequence[str]) -> bytes:
    """Pages that are pictures of text."""
    return _pdf([_picture_page(text) for text in pages])


def picture(text: str) -> Image.Image:
    image = Image.new("L", (1200, 300), 255)
    font = ImageFont.load_default(48)
    ImageDraw.Draw(image).multiline_text((40, 40), text, fill=0, font=font)
    return image


def _text_page(text: str) -> tuple[bytes, bytes]:
    """The content stream and the resources of a page."""
    shown = []
    for line in text.split("\n"):
        plain = line.encode("latin-1", "replace")
        for sign in (b"\\", b"(", b")"):
            plain = plain.replace(sign, b"\\" + sign)
        shown.append(b"(" + plain + b") Tj T*")
    stream = b"BT /F 11 Tf 14 TL 60 780 Td " + b"\n".join(shown) + b" ET"
    return (
        stream,
        b"/Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >> >>",
    )


def _picture_page(text: str) -> tuple[bytes, bytes]:
    image = picture(text)
    raw = zlib.compress(image.tobytes())
    inline = (
        b"q 500 0 0 125 40 600 cm BI /W %d /H %d /CS /G /BPC 8 /F /Fl ID " % image.size
        + raw
        + b"\nEI Q"
    )
    return inline, b""


def _pdf(pages: Sequence[tuple[bytes, bytes]], *, locked: bool = False) -> bytes:
    kids = b" ".join(b"%d 0 R" % (3 + 2 * n) for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), kids),
    ]
    for n, (stream, resources) in enumerate(pages):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << %s >> /Contents %d 0 R >>"
            % (resources, 4 + 2 * n)
        )
        packed = zlib.compress(stream)
        objects.append(
            b"<< /Length %d /Filter /FlateDecode >> stream\n%s\nendstream" % (len(packed), packed)
        )
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, 2)
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj %s endobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for place in places:
        out.write(b"%010d 00000 n \n" % place)
    # A password of which nobody knows more than that it is not the empty one.
    lock = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00> <00>] " % (
        b"41" * 32,
        b"42" * 32,
    )
    trailer = b"trailer << /Size %d /Root 1 0 R %s>>\nstartxref\n%d\n%%%%EOF\n"
    out.write(trailer % (len(objects) + 1, lock if locked else b"", start))
    return out.getvalue()


def archive(files: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return out.getvalue()


_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx(parts: Sequence[tuple[str, str]]) -> bytes:
    """(kind, words) for each part: "1" to "9" a heading of that level, "" a paragraph, "row" a row of a
    table with cells between "|", "break" the place where Word began a new page."""
    body = []
    for kind, words in parts:
        text = f'<w:t xml:space="preserve">{escape(words)}</w:t>'
        if kind == "row":
            cells = "".join(
                f"<w:tc><w:p><w:r><w:t>{escape(c)}</w:t></w:r></w:p></w:tc>"
                for c in words.split("|")
            )
            body.append(f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>")
        elif kind == "break":
            body.append(f"<w:p><w:r><w:lastRenderedPageBreak/>{text}</w:r></w:p>")
        else:
            style = f'<w:pPr><w:pStyle w:val="berschrift{kind}"/></w:pPr>' if kind else ""
            body.append(f"<w:p>{style}<w:r>{text}</w:r></w:p>")
    styles = "".join(
        f'<w:style w:styleId="berschrift{n}"><w:name w:val="heading {n}"/></w:style>'
        for n in range(1, 10)
    )
    return archive(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f'<?xml version="1.0"?><w:document {_W}><w:body>{"".join(body)}</w:body></w:document>',
            "word/styles.xml": f"<w:styles {_W}>{styles}</w:styles>",
        }
    )


def odt(parts: Sequence[tuple[str, str]]) -> bytes:
    """The same for OpenDocument; "break" is a soft page break before the paragraph."""
    body = []
    for kind, words in parts:
        text = escape(words)
        if kind == "row":
            cells = "".join(
                f"<table:table-cell><text:p>{escape(c)}</text:p></table:table-cell>"
                for c in words.split("|")
            )
            body.append(f"<table:table><table:table-row>{cells}</table:table-row></table:table>")
        elif kind == "break":
            body.append(f"<text:p><text:soft-page-break/>{text}</text:p>")
        elif kind:
            body.append(f'<text:h text:outline-level="{kind}">{text}</text:h>')
        else:
            body.append(f"<text:p>{text}</text:p>")
    office = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = f'xmlns:office="{office}:office:1.0" xmlns:text="{office}:text:1.0" xmlns:table="{office}:table:1.0"'
    content = f"<office:document-content {spaces}><office:body><office:text>{''.join(body)}</office:text></office:body></office:document-content>"
    return archive({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


def epub(chapters: Sequence[str]) -> bytes:
    """A chapter for each HTML body."""
    items = "".join(f'<item id="c{n}" href="text/{n}.xhtml"/>' for n in range(len(chapters)))
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
            "OEBPS/book.opf": f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{
                f"OEBPS/text/{n}.xhtml": f"<html><body>{body}</body></html>"
                for n, body in enumerate(chapters)
            },
        }
    )


def zip_bomb(mebibytes: int) -> bytes:
    """A Word file whose text is spaces, a thousandth of their size."""
    start = f"<w:document {_W}><w:body><w:p><w:r><w:t>"
    return archive({"word/document.xml": start.encode() + b" " * (mebibytes << 20)})


def entity_bomb() -> bytes:
    """A Word file whose entities stand for a thousand million words."""
    entities = '<!ENTITY a0 "word ">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
    )
    text = f"<!DOCTYPE d [{entities}]><w:document {_W}><w:body><w:p><w:r><w:t>&a9;</w:t></w:r></w:p></w:body></w:document>"
    return archive({"word/document.xml": text})
