"""Word, OpenDocument, Excel and PowerPoint files, written as these programs write them, to what they show."""

import zipfile
from pathlib import Path

import pytest

from agent.documents import extraction
from agent.documents.encodings import NAMES, decoded
from agent.documents.office import Refused
from fakes.cases import cases
from fakes.documents import archive
from fakes.words import saying
from tests.agent.documents.conftest import Shelf

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def words(*runs: str, properties: str = "") -> str:
    """A paragraph of Word; a run that begins with "<" is its own XML."""
    inner = "".join(
        run if run.startswith("<") else f'<w:r><w:t xml:space="preserve">{run}</w:t></w:r>'
        for run in runs
    )
    return f"<w:p><w:pPr>{properties}</w:pPr>{inner}</w:p>"


def numbered(text: str, level: int = 0, name: int = 1) -> str:
    number = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{name}"/></w:numPr>'
    return words(text, properties=number)


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{words(text)}</w:tc>"


def row(*cells: str, properties: str = "") -> str:
    return f"<w:tr><w:trPr>{properties}</w:trPr>{''.join(map(cell, cells))}</w:tr>"


def table(*rows: str) -> str:
    return f"<w:tbl>{''.join(rows)}</w:tbl>"


GONE = "<w:del><w:r><w:delText>gone</w:delText><w:tab/></w:r></w:del>"
ENDLESS = "<w:rPr><w:del/></w:rPr>"
CLAUSE = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'


def levels(*forms: tuple[str, str]) -> str:
    return "".join(
        f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'
        for n, (form, text) in enumerate(forms)
    )


NUMBERING = f"""<w:numbering {W}>
<w:abstractNum w:abstractNumId="0">{levels(("decimal", "%1."), ("decimal", "%1.%2"), ("lowerLetter", "(%3)"))}</w:abstractNum>
<w:abstractNum w:abstractNumId="1">{levels(("upperRoman", "§ %1"), ("decimalZero", "%1-%2"))}</w:abstractNum>
<w:abstractNum w:abstractNumId="2">{levels(("bullet", "o"))}</w:abstractNum>
<w:abstractNum w:abstractNumId="3"><w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:pStyle w:val="H1"/><w:lvlText w:val="Article %1:"/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:pStyle w:val="H2"/><w:lvlText w:val="%1.%2"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="2"/></w:num><w:num w:numId="4"><w:abstractNumId w:val="3"/></w:num>
<w:num w:numId="5"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>
</w:numbering>"""
STYLES = f"""<w:styles {W}>
<w:style w:styleId="H1"><w:name w:val="heading 1"/><w:pPr><w:numPr><w:numId w:val="4"/></w:numPr></w:pPr></w:style>
<w:style w:styleId="H2"><w:name w:val="Clause"/><w:basedOn w:val="H1"/><w:pPr><w:numPr><w:ilvl w:val="1"/></w:numPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
<w:style w:styleId="Own"><w:name w:val="Own"/><w:basedOn w:val="H1"/></w:style>
</w:styles>"""
NOTES = f"""<w:footnotes {W}><w:footnote w:id="-1" w:type="separator"><w:p><w:r><w:separator/></w:r></w:p></w:footnote>
<w:footnote w:id="2">{words("Net of tax.")}</w:footnote><w:footnote w:id="3">{words("Each ", "month.")}</w:footnote></w:footnotes>"""


WIDE = '<w:gridSpan w:val="2"/>'
HIGH = '<w:vMerge w:val="restart"/>'


def docx(body: str, **parts: str) -> bytes:
    return archive(
        {
            "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
            "word/numbering.xml": NUMBERING,
            "word/styles.xml": STYLES,
            "word/footnotes.xml": NOTES,
            **{f"word/{name}.xml": text for name, text in parts.items()},
        }
    )


def style(name: str) -> str:
    return f'<w:pStyle w:val="{name}"/>'


def run(inner: str) -> str:
    return f"<w:r>{inner}</w:r>"


def note(number: int) -> str:
    return run(f'<w:footnoteReference w:id="{number}"/>')


def formatted(text: str, properties: str) -> str:
    return run(f"<w:rPr>{properties}</w:rPr><w:t>{text}</w:t>")


RAISED = '<w:vertAlign w:val="superscript"/>'
FRACTION = "<m:oMath xmlns:m='m'><m:f><m:num><m:r><m:t>a + b</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath>"
POWER = "<m:oMath xmlns:m='m'><m:sSup><m:e><m:r><m:t>x</m:t></m:r></m:e><m:sup><m:r><m:t>n+1</m:t></m:r></m:sup></m:sSup></m:oMath>"
COMMENTS = f'<w:comments {W}><w:comment w:id="4">{words("Is that so?")}</w:comment></w:comments>'


def form_field(kind: str, *inner: str) -> str:
    """A field of Word's old forms: its state stands in no text."""
    made = "".join(f"<w:{each}/>" for each in inner)
    begin = f'<w:fldChar w:fldCharType="begin"><w:ffData><w:{kind}>{made}</w:{kind}></w:ffData></w:fldChar>'
    return f"{run(begin)}{run('<w:instrText>FORM</w:instrText>')}{run('<w:fldChar/>')}"


ENTRIES = ('listEntry w:val="Ms"', 'listEntry w:val="Mr"')
PARTS = {
    "a box with a cross": (docx(words(form_field("checkBox", "sizeAuto", 'default w:val="0"', "checked"), "yes")), ["☒ yes"]),
    "a box without a cross": (docx(words(form_field("checkBox", "sizeAuto", 'default w:val="1"', 'checked w:val="0"'), "yes")), ["☐ yes"]),
    "a box that nobody touched": (docx(words(form_field("checkBox", 'default w:val="1"'), "yes", form_field("checkBox"), "no")), ["☒ yes☐ no"]),
    "a choice": (docx(words("Dear ", form_field("ddList", 'result w:val="1"', *ENTRIES), " Lee")), ["Dear Mr Lee"]),
    "a choice that nobody made": (docx(words("Dear ", form_field("ddList", *ENTRIES), " Lee")), ["Dear Ms Lee"]),
    "a choice of nothing": (docx(words("a", form_field("ddList", 'result w:val="7"'), form_field("checkBox", 'checked w:val="off"'))), ["a☐"]),
    "powers": (docx(words("10", formatted("6", RAISED), " m", formatted("-2", RAISED), " on the 1", formatted("st", RAISED))), ["10⁶ m⁻² on the 1st"]),
    "powers that are set higher": (docx(words("10", formatted("6", '<w:position w:val="7"/>'), " H", formatted("2", '<w:position w:val="-2"/>'), "O")), ["10⁶ H2O"]),
    "indices": (docx(words("H", formatted("2", '<w:vertAlign w:val="subscript"/>'), "O")), ["H2O"]),
    "powers of a paragraph's mark": (docx(words("10", "6", properties=f"<w:rPr>{RAISED}</w:rPr>")), ["106"]),
    "struck out": (docx(words("Rent ", formatted("900 ", "<w:strike/>"), formatted("€", "<w:dstrike/>"), " 950 €")), ["Rent ~~900 €~~ 950 €"]),
    "struck out no more": (docx(words(formatted("900", '<w:strike w:val="0"/>'))), ["900"]),
    "a fraction": (docx(words(FRACTION)), ["(a + b)/(2)"]),
    "a power in a formula": (docx(words(POWER)), ["x^(n+1)"]),
    "comments": (docx(words("a", run('<w:commentReference w:id="4"/>'), " b"), comments=COMMENTS), ["a [comment: Is that so?] b"]),
    "the head of a letter": (docx(words("Dear Ann"), header2=f"<w:hdr {W}>{words('Bob Ltd')}</w:hdr>", header1=f"<w:hdr {W}>{words('Bob Ltd')}{words('')}</w:hdr>", footer1=f"<w:ftr {W}>{words('IBAN 1')}</w:ftr>"), ["Bob Ltd", "Dear Ann", "IBAN 1"]),
}  # fmt: skip

BROKEN = ("zz", "110000", "-1", "", "F0" * 3000, "D800", "0x41", "1FFFFFF", "\u0663", "F0 B")

WORD = {
    "no-break hyphen": (words("1", run("<w:noBreakHyphen/>"), "2 tablets"), ["1\u20112 tablets"]),
    "soft hyphen": (words("Donau", run("<w:softHyphen/>"), "dampf"), ["Donaudampf"]),
    "tab and breaks": (words("a", run("<w:tab/>"), "b", run("<w:br/>"), "c"), ["a\tb\nc"]),
    "tab stops are no tabs": (words("a", properties='<w:tabs><w:tab w:val="left"/></w:tabs>'), ["a"]),
    "signs": (words("20", run('<w:sym w:font="Symbol" w:char="F0B0"/>'), run('<w:sym w:font="Wingdings" w:char="F0FE"/><w:sym w:font="Wingdings" w:char="F0FD"/>')), ["20°☑☒"]),
    "signs that are none": (words("a", *(run(f'<w:sym w:font="Symbol" w:char="{char}"/>') for char in BROKEN), "b"), ["ab"]),
    "clauses": (numbered("Term") + numbered("A year.", 1) + numbered("See 1.1.", 1) + numbered("Ends", 0) + numbered("So", 1),
                ["1. Term", "1.1 A year.", "1.2 See 1.1.", "2. Ends", "2.1 So"]),
    "letters": (numbered("a") + numbered("b", 1) + numbered("c", 2) + numbered("d", 2) + numbered("e", 1) + numbered("f", 2),
                ["1. a", "1.1 b", "(a) c", "(b) d", "1.2 e", "(a) f"]),
    "roman": (numbered("a", 0, 2) + numbered("b", 1, 2) + numbered("c", 0, 2), ["§ I a", "I-01 b", "§ II c"]),
    "bullets": (numbered("a", 0, 3) + numbered("b", 0, 3), ["• a", "• b"]),
    "list that begins anew": (numbered("a") + numbered("b", 0, 5) + numbered("c", 0, 5), ["1. a", "7. b", "8. c"]),
    "text between": (numbered("a") + words("x") + numbered("b"), ["1. a", "x", "2. b"]),
    "numbers of styles": (words("Term", properties=style("H1")) + words("Year", properties=style("H2")) + words("x", properties=style("H2")),
                          ["# Article 1: Term", "## 1.1 Year", "## 1.2 x"]),
    "style based on another": (words("Term", properties=style("Own")), ["# Article 1: Term"]),
    "number taken off": (words("Term", properties=style("H1") + '<w:numPr><w:numId w:val="0"/></w:numPr>'), ["# Term"]),
    "deletion": (words("Fee ", "<w:del><w:r><w:delText>100</w:delText></w:r></w:del>", "<w:ins><w:r><w:t>200</w:t></w:r></w:ins>"), ["Fee 200"]),
    "a deleted row": (table(row("a"), row("b", properties="<w:del w:id='1'/>"), row("c")), ["a", "c"]),
    "a deleted row with deleted words": (table(row("a"), f"<w:tr><w:trPr><w:del/></w:trPr><w:tc>{words(GONE)}</w:tc></w:tr>"), ["a"]),
    "a deleted row in a table in a cell": (table(f"<w:tr><w:tc>{table(row('x'), row('y', properties='<w:del/>'))}{words('z')}</w:tc></w:tr>"), ["x z"]),
    "a table in a deleted row": (table(f"<w:tr><w:trPr><w:del/></w:trPr><w:tc>{table(row('x'))}{words('z')}</w:tc></w:tr>", row("c")), ["c"]),
    "a deletion that was undone": (table(row("a", properties="<w:trPrChange><w:trPr><w:del/></w:trPr></w:trPrChange>")), ["a"]),
    "an added row": (table(row("a", properties="<w:ins/>")), ["a"]),
    "a deleted cell": (table(f"<w:tr>{cell('a')}{cell('b', '<w:cellDel/>')}{cell('c')}</w:tr>"), ["a | c"]),
    "an added cell": (table(f"<w:tr>{cell('a')}{cell('b', '<w:cellIns/>')}</w:tr>"), ["a | b"]),
    "a deleted paragraph": (words("a") + words(GONE, properties=ENDLESS) + words("b"), ["a", "b"]),
    "a deleted end of a paragraph": (words("a ", properties=ENDLESS) + words("b"), ["a b"]),
    "a deleted clause": (numbered("a") + words(GONE, properties=f"{CLAUSE}{ENDLESS}") + numbered("b"), ["1. a", "2. b"]),
    "a paragraph moved away": (numbered("a") + words("<w:moveFrom><w:r><w:t>x</w:t></w:r></w:moveFrom>", properties=f"{CLAUSE}<w:rPr><w:moveFrom/></w:rPr>") + numbered("b"), ["1. a", "2. b"]),
    "a deleted footnote": (words("a", f"<w:del>{note(2)}</w:del>", "b", note(3)), ["ab [1: Each month.]"]),
    "deleted tabs, breaks, signs": (words("a", "<w:del><w:r><w:tab/><w:br/><w:noBreakHyphen/><w:sym w:font='Symbol' w:char='F0B0'/></w:r></w:del>", "b"), ["ab"]),
    "added words of which some are deleted": (words("<w:ins><w:r><w:t>a</w:t></w:r><w:del><w:r><w:delText>b</w:delText></w:r></w:del><w:r><w:t>c</w:t></w:r></w:ins>"), ["ac"]),
    "moved away": (words("<w:moveFrom><w:r><w:t>gone </w:t></w:r></w:moveFrom>", "<w:moveTo><w:r><w:t>here</w:t></w:r></w:moveTo>"), ["here"]),
    "older properties": (words("a", properties=f"<w:pPrChange><w:pPr>{style('H1')}</w:pPr></w:pPrChange>"), ["a"]),
    "hidden": (words("a", run("<w:rPr><w:vanish/></w:rPr><w:t>secret</w:t>"), run('<w:rPr><w:vanish w:val="0"/></w:rPr><w:t>b</w:t>')), ["ab"]),
    "footnotes": (words("Price", note(2), " and rent", note(3), "."), ["Price [1: Net of tax.] and rent [2: Each month.]."]),
    "wide cell": (f"<w:tbl><w:tr>{cell('both', WIDE)}{cell('c')}</w:tr><w:tr>{cell('1')}{cell('2')}{cell('3')}</w:tr></w:tbl>",
                  ["both |  | c", "1 | 2 | 3"]),
    "high cell": (f"<w:tbl><w:tr>{cell('tall', HIGH)}{cell('1')}</w:tr><w:tr>{cell('', '<w:vMerge/>')}{cell('2')}</w:tr><w:tr>{cell('new')}{cell('3')}</w:tr></w:tbl>",
                  ["tall | 1", "tall | 2", "new | 3"]),
    "empty first cell": (f"<w:tbl><w:tr>{cell('')}{cell('b')}{cell('')}</w:tr></w:tbl>", [" | b"]),
    "table in a cell": (f"<w:tbl><w:tr><w:tc>{words('a')}<w:tbl><w:tr>{cell('x')}{cell('y')}</w:tr></w:tbl>{words('b')}</w:tc>{cell('c')}</w:tr></w:tbl>",
                        ["a x | y b | c"]),
    "text box": (words("a", f"<w:r><w:pict><w:txbxContent>{words('box')}</w:txbxContent></w:pict></w:r>"), ["a\nbox"]),
    "numbers in cells": (f"<w:tbl><w:tr><w:tc>{numbered('a')}</w:tc><w:tc>{numbered('b')}</w:tc></w:tr></w:tbl>", ["1. a | 2. b"]),
}  # fmt: skip

OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
SPACES = " ".join(
    f'xmlns:{name}="{OFFICE}:{name}:1.0"' for name in ("office", "text", "table", "style", "number", "draw", "presentation")
)  # fmt: skip


def open_document(kind: str, body: str, styles: str = "") -> bytes:
    content = (
        f"<office:document-content {SPACES}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    return archive({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content})


def sheet(*rows: str) -> bytes:
    made = "".join(
        row if row.startswith("<table:table-row") else f"<table:table-row>{row}</table:table-row>"
        for row in rows
    )
    date = "<number:date-style><number:year/><number:text>-</number:text></number:date-style>"
    return open_document("spreadsheet", f'<table:table table:name="S">{made}</table:table>', date)


def c(text: str = "", **attributes: int) -> str:
    """A cell of OpenDocument."""
    given = "".join(
        f' table:number-{name.replace("_", "-")}="{n}"' for name, n in attributes.items()
    )
    inner = f"<text:p>{text}</text:p>" if text else ""
    return f"<table:table-cell{given}>{inner}</table:table-cell>"


COVERED = "<table:covered-table-cell/>"
LIST = """<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" style:num-suffix="."/>
<text:list-level-style-number text:level="2" style:num-format="1" text:display-levels="2"/>
<text:list-level-style-number text:level="3" style:num-format="a" style:num-suffix=")"/></text:list-style>"""


def items(*texts: str, before: str = "") -> str:
    return "".join(
        f"<text:list-item>{text if text.startswith('<') else f'<text:p>{text}</text:p>'}</text:list-item>"
        for text in texts
    )


def a_list(inner: str, attributes: str = "") -> str:
    return f'<text:list text:style-name="L" {attributes}>{inner}</text:list>'


OPEN = {
    "repeated empty cells": (sheet(c("Mon") + c("Tue") + c("Wed") + c("Thu"), c(columns_repeated=3) + c("late")),
                             ["# S", "Mon | Tue | Wed | Thu", " |  |  | late"]),
    "repeated cells": (sheet(c("x", columns_repeated=3) + c("y")), ["# S", "x | x | x | y"]),
    "repeated rows": (sheet(f'<table:table-row table:number-rows-repeated="2">{c("x")}{c("y")}</table:table-row>'), ["# S", "x | y", "x | y"]),
    "the empty rest of a sheet": (sheet(c("x") + c(columns_repeated=16383), f'<table:table-row table:number-rows-repeated="1048575">{c(columns_repeated=16384)}</table:table-row>'),
                                  ["# S", "x"]),
    "wide cell": (sheet(c("both", columns_spanned=2) + COVERED + c("c")), ["# S", "both |  | c"]),
    "high cell": (sheet(c("tall", rows_spanned=2) + c("1"), COVERED + c("2"), c("new") + c("3")), ["# S", "tall | 1", "tall | 2", "new | 3"]),
    "wide and high cell": (sheet(c("x", rows_spanned=2, columns_spanned=2) + COVERED + c("1"), '<table:table-row><table:covered-table-cell table:number-columns-repeated="2"/>' + c("2") + "</table:table-row>"),
                           ["# S", "x |  | 1", "x |  | 2"]),
    "formats are no text": (sheet(c("x")), ["# S", "x"]),
    "spaces": (open_document("text", '<text:p>a<text:s text:c="3"/>b<text:tab/>c<text:line-break/>d</text:p>'), ["a   b\tc\nd"]),
    "footnote": (open_document("text", '<text:p>Price<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Net.</text:p></text:note-body></text:note> due.</text:p>'), ["Price [1: Net.] due."]),
    "deletion": (open_document("text", "<text:tracked-changes><text:deletion><text:p>old</text:p></text:deletion></text:tracked-changes><text:p>new</text:p>"), ["new"]),
    "clauses": (open_document("text", a_list(items("a", f"<text:p>b</text:p><text:list>{items('c', 'd')}</text:list>", "e")), LIST),
                ["1. a", "2. b", "2.1 c", "2.2 d", "3. e"]),
    "list that goes on": (open_document("text", a_list(items("a")) + "<text:p>x</text:p>" + a_list(items("b"), 'text:continue-numbering="true"') + a_list(items("c")), LIST),
                          ["1. a", "x", "2. b", "1. c"]),
    "second paragraph": (open_document("text", a_list(items("<text:p>a</text:p><text:p>more</text:p>", "b")), LIST), ["1. a", "more", "2. b"]),
    "table without a heading": (open_document("text", f'<table:table table:name="Table1"><table:table-row>{c("a")}{c("b")}</table:table-row></table:table>'), ["a | b"]),
    "slides": (open_document("presentation", "<draw:page><text:p>a</text:p></draw:page><draw:page><text:p>b</text:p></draw:page>"), ["a", "--- 2", "b"]),
}  # fmt: skip

STYLED = """<style:style style:name="T1"><style:text-properties style:text-position="super 58%"/></style:style>
<style:style style:name="T2"><style:text-properties style:text-position="-33% 58%"/></style:style>
<style:style style:name="T3"><style:text-properties style:text-line-through-style="solid"/></style:style>
<style:style style:name="T4"><style:text-properties text:display="none"/></style:style>"""
HIDING = """<style:style style:name="ta1"><style:table-properties table:display="true"/></style:style>
<style:style style:name="ta2"><style:table-properties table:display="false"/></style:style>"""

HIDDEN_SLIDE = """<style:style style:name="dp1"><style:drawing-page-properties presentation:visibility="visible"/></style:style>
<style:style style:name="dp2"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>"""


def styled_sheet(name: str, style: str, *texts: str) -> str:
    rows = "".join(f"<table:table-row>{c(text)}</table:table-row>" for text in texts)
    return f'<table:table table:name="{name}" table:style-name="{style}">{rows}</table:table>'


def span(style: str, text: str) -> str:
    return f'<text:span text:style-name="{style}">{text}</text:span>'


def written(body: str, **parts: str) -> bytes:
    content = f"<office:document-content {SPACES}>{STYLED}<office:body>{body}</office:body></office:document-content>"
    made = {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": content,
        "styles.xml": f"<office:document-styles {SPACES}><style:master-page><style:header><text:p>Bob Ltd</text:p></style:header><style:footer><text:p>IBAN <text:page-number>1</text:page-number></text:p></style:footer></style:master-page></office:document-styles>",
        "Object 1/content.xml": "<math><semantics><mfrac><mi>a</mi><mi>b</mi></mfrac><annotation>{a} over {b}</annotation></semantics></math>",
        "Object 2/content.xml": f"<office:document-content {SPACES}><text:p>Sales</text:p><table:table><table:table-row>{c()}{c('2025')}</table:table-row><table:table-row>{c('East')}<table:table-cell><text:p>5</text:p><desc>B2:B9</desc></table:table-cell></table:table-row></table:table></office:document-content>",
    }
    return archive({**made, **parts})


NOTED = "<draw:page><text:p>a</text:p><presentation:notes>{}</presentation:notes></draw:page>"
OPEN_PARTS = {
    "powers and indices": (written(f"<text:p>10{span('T1', '6')} H{span('T2', '2')}O 1{span('T1', 'st')}</text:p>"), ["Bob Ltd", "10⁶ H2O 1st", "IBAN"]),
    "struck out": (written(f"<text:p>{span('T3', '900')} 950</text:p>"), ["Bob Ltd", "~~900~~ 950", "IBAN"]),
    "hidden letters": (written(f"<text:p>seen{span('T4', ' unseen')} too</text:p>"), ["Bob Ltd", "seen too", "IBAN"]),
    "a hidden sheet": (open_document("spreadsheet", styled_sheet("A", "ta1", "1") + styled_sheet("B", "ta2", "2", "3") + styled_sheet("C", "ta1", "4"), HIDING), ["# A", "1", "# C", "4"]),
    "a formula": (written('<text:p>x = <draw:object xmlns:xlink="x" xlink:href="./Object 1"/></text:p>'), ["Bob Ltd", "x = {a} over {b}", "IBAN"]),
    "a chart": (written('<text:p>x<draw:object xmlns:xlink="x" xlink:href="./Object 2"/><draw:object xmlns:xlink="x" xlink:href="../a"/></text:p>'), ["Bob Ltd", "x", "Sales\n | 2025\nEast | 5", "IBAN"]),
    "notes of the speaker": (open_document("presentation", NOTED.format("<text:p>say it</text:p><text:p><text:page-number>1</text:page-number></text:p>")), ["a", "Notes:", "say it"]),
    "no notes": (open_document("presentation", NOTED.format("<text:p/>")), ["a"]),
    "a hidden section": (open_document("text", '<text:section text:display="none"><text:p>a</text:p></text:section><text:p>b</text:p>'), ["b"]),
    "a section that a condition hides": (open_document("text", '<text:section text:display="condition" text:is-hidden="true"><text:p>a</text:p></text:section><text:p>b</text:p>'), ["b"]),
    "a section that a condition shows": (open_document("text", '<text:section text:display="condition" text:is-hidden="false"><text:p>a</text:p></text:section><text:section><text:p>b</text:p></text:section>'), ["a", "b"]),
    "a hidden slide": (open_document("presentation", "".join(f'<draw:page draw:style-name="{style}"><text:p>{style}</text:p><table:table/></draw:page>' for style in ("dp1", "dp2", "dp1")), HIDDEN_SLIDE), ["dp1", "--- 2", "--- 3", "dp1"]),
}  # fmt: skip

FORMATS = (0, 14, 22, 20, 9, 165, 166, 46, 167, 31, 168, 169, 170, 171, 172)
CODES = """<numFmts><numFmt numFmtId="165" formatCode="dd\\.mm\\.yyyy;@"/><numFmt numFmtId="166" formatCode="[$-407]hh:mm &quot;Uhr&quot;"/>
<numFmt numFmtId="167" formatCode="#,##0.00\\ &quot;days&quot;"/><numFmt numFmtId="168" formatCode="00000"/>
<numFmt numFmtId="169" formatCode="#,##0.00\\ [$€-407]"/><numFmt numFmtId="170" formatCode="[$$-409]#,##0.00;[Red]\\-[$$-409]#,##0.00"/>
<numFmt numFmtId="171" formatCode="[Blue]0&quot; kg&quot;_)"/><numFmt numFmtId="172" formatCode="0.0,&quot;k&quot;"/></numFmts>"""


def xlsx(rows: str, merged: str = "", workbook: str = "") -> bytes:
    cells = "".join(f'<xf numFmtId="{number}"/>' for number in FORMATS)
    strings = (
        "<si><t>shared</t></si><si><r><t>ri</t></r><r><t>ch</t></r><rPh><t>phonetic</t></rPh></si>"
    )
    return archive(
        {
            "xl/workbook.xml": f'<workbook {R}>{workbook}<sheets><sheet name="One" sheetId="1" r:id="r1"/><sheet name="Two" sheetId="2" state="hidden" r:id="r2"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="r1" Target="worksheets/a.xml"/><Relationship Id="r2" Target="/xl/worksheets/b.xml"/></Relationships>',
            "xl/worksheets/a.xml": f"<worksheet><sheetData>{rows}</sheetData><mergeCells>{merged}</mergeCells></worksheet>",
            "xl/worksheets/b.xml": '<worksheet><sheetData><row><c t="inlineStr"><is><t>hidden</t></is></c></row></sheetData></worksheet>',
            "xl/sharedStrings.xml": f"<sst>{strings}</sst>",
            "xl/styles.xml": f"<styleSheet>{CODES}<cellStyleXfs><xf numFmtId='14'/></cellStyleXfs><cellXfs>{cells}</cellXfs></styleSheet>",
        }
    )


def v(place: str, value: str, style: int = 0, kind: str = "n") -> str:
    return f'<c r="{place}" s="{style}" t="{kind}"><v>{value}</v></c>'


EXCEL = {
    "shared strings": (xlsx(f"<row r='1'>{v('A1', '0', kind='s')}{v('B1', '1', kind='s')}</row>"), ["# One", "shared | rich"]),
    "a gap": (xlsx(f"<row r='1'>{v('A1', '1')}{v('D1', '4')}</row>"), ["# One", "1 |  |  | 4"]),
    "the farthest column": (xlsx("".join(f"<row r='{n}'>{v(f'A{n}', '1')}{v(f'XFC{n}', '2')}{v(f'XFD{n}', '3')}</row>" for n in range(1, 100))), ["# One", *[f"1{' | ' * 1000}2 | 3"] * 99]),
    "far columns": (xlsx(f"<row r='1'>{v('AA1', '27')}</row>"), ["# One", " | " * 26 + "27"]),
    "dates": (xlsx(f"<row>{v('A1', '46082', 1)}{v('B1', '46082.5', 2)}{v('C1', '0.75', 3)}</row>"), ["# One", "2026-03-01 | 2026-03-01 12:00 | 18:00"]),
    "formats of its own": (xlsx(f"<row>{v('A1', '46082', 5)}{v('B1', '0.75', 6)}{v('C1', '2.5', 8)}</row>"), ["# One", "2026-03-01 | 18:00 | 2.5 days"]),
    "a date of Chinese": (xlsx(f"<row>{v('A1', '46082', 9)}</row>"), ["# One", "2026-03-01"]),
    "a code with zeros in front": (xlsx(f"<row>{v('A1', '1067', 10)}{v('B1', '101067', 10)}</row>"), ["# One", "01067 | 101067"]),
    "currencies": (xlsx(f"<row>{v('A1', '9.5', 11)}{v('B1', '9.5', 12)}</row>"), ["# One", "9.5 € | $9.5"]),
    "a unit": (xlsx(f"<row>{v('A1', '-20', 13)}{v('B1', '0.5', 14)}</row>"), ["# One", "-20 kg | 0.5"]),
    "a formula without a result": (xlsx("<row><c r='A1'><f>SUM(B1:B3)</f></c><c r='B1'><f>A1*2</f><v></v></c><c r='C1'><f>1+1</f><v>2</v></c></row>"), ["# One", "=SUM(B1:B3) | =A1*2 | 2"]),
    "numbers that are none": (xlsx(f"<row>{v('A1', '²', kind='s')}{v('B1', '9' * 5000, kind='s')}{v('C1', '-1', kind='s')}{v('D1', '_x')}{v('E1', '..')}{v('F1', '1e')}{v('G1', 'nan', 4)}{v('H1', '0x10', 1)}{v('I1', '5')}</row>"),
                            ["# One", " |  |  | _x | .. | 1e | nan | 0x10 | 5"]),
    "spans": (xlsx(f"<row>{v('A1', '1.5', 7)}</row>"), ["# One", "36:00"]),
    "dates from 1904": (xlsx(f"<row>{v('A1', '44620', 1)}</row>", workbook='<workbookPr date1904="1"/>'), ["# One", "2026-03-01"]),
    "signs that XML cannot hold": (xlsx(f"<row>{v('A1', 'a_x000A_b', kind='str')}{v('B1', '_x005F_x000D_', kind='str')}</row>"), ["# One", "a b | _x000D_"]),
    "half an emoji and a NUL": (xlsx(f"<row>{v('A1', 'a_xD83D_b', kind='str')}{v('B1', '_xD83D__xDE00_', kind='str')}{v('C1', 'c_x0000_', kind='str')}</row>"), ["# One", "a\ufffdb | 😀 | c"]),
    "percent": (xlsx(f"<row>{v('A1', '0.055', 4)}</row>"), ["# One", "5.5%"]),
    "long numbers": (xlsx(f"<row>{v('A1', '4111111111111111')}{v('B1', '-1234567890123456')}{v('C1', '1.0E16')}</row>"), ["# One", "4111111111111111 | -1234567890123456 | 1e+16"]),
    "endless numbers": (xlsx(f"<row>{v('A1', '0' * 200_000 + 'x')}{v('B1', '1' * 200_000)}</row>"), ["# One", f"{'0' * 200_000}x | {'1' * 200_000}"]),
    "numbers": (xlsx(f"<row>{v('A1', '0.30000000000000004')}{v('B1', '1E3')}{v('C1', '12345678')}</row>"), ["# One", "0.3 | 1000 | 12345678"]),
    "truth, errors, formulas": (xlsx(f"<row>{v('A1', '1', kind='b')}{v('B1', '#N/A', kind='e')}<c r='C1' t='str'><f>A1&amp;B1</f><v>ab</v></c></row>"), ["# One", "TRUE | #N/A | ab"]),
    "high cell": (xlsx(f"<row r='1'>{v('A1', '0', kind='s')}{v('B1', '1')}</row><row r='2'><c r='A2'/>{v('B2', '2')}</row>", '<mergeCell ref="A1:A2"/>'), ["# One", "shared | 1", "shared | 2"]),
    "wide cell": (xlsx(f"<row r='1'>{v('A1', '0', kind='s')}<c r='B1'/>{v('C1', '3')}</row>", '<mergeCell ref="A1:B1"/>'), ["# One", "shared |  | 3"]),
}  # fmt: skip

A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'


def pptx(*slides: str, hidden: int = 0) -> bytes:
    ids = "".join(f'<p:sldId r:id="r{n}" id="{255 + n}"/>' for n in range(len(slides), 0, -1))
    targets = "".join(
        f'<Relationship Id="r{n}" Target="slides/s{n}.xml"/>' for n in range(1, len(slides) + 1)
    )
    return archive(
        {
            "ppt/presentation.xml": f"<p:presentation {A} {R}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": f"<Relationships>{targets}</Relationships>",
            **{
                f"ppt/slides/s{n}.xml": f'<p:sld {A} show="{int(n != hidden)}">{slide}</p:sld>'
                for n, slide in enumerate(slides, 1)
            },
        }
    )


def with_notes(slide: str, notes: str) -> bytes:
    return archive(
        {
            "ppt/presentation.xml": f'<p:presentation {A} {R}><p:sldIdLst><p:sldId r:id="r1" id="256"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": '<Relationships><Relationship Id="r1" Target="slides/s1.xml"/></Relationships>',
            "ppt/slides/s1.xml": f"<p:sld {A}>{slide}</p:sld>",
            "ppt/slides/_rels/s1.xml.rels": '<Relationships><Relationship Id="r1" Target="../slideLayouts/l1.xml"/><Relationship Id="r2" Target="../notesSlides/n1.xml"/></Relationships>',
            "ppt/slideLayouts/l1.xml": f"<p:sldLayout {A}>{shape('layout')}</p:sldLayout>",
            "ppt/notesSlides/n1.xml": f"<p:notes {A}>{notes}</p:notes>",
        }
    )


def shape(*paragraphs: str, kind: str = "body") -> str:
    texts = "".join(f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in paragraphs)
    return f'<p:sp><p:nvPr><p:ph type="{kind}"/></p:nvPr><p:txBody>{texts}</p:txBody></p:sp>'


def slide_cell(text: str, attributes: str = "") -> str:
    return f"<a:tc {attributes}><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:tc>"


def slide_list(*items: tuple[str, int, str]) -> str:
    return (
        "<p:txBody>"
        + "".join(
            f'<a:p><a:pPr lvl="{level}">{f"""<a:buAutoNum type="{form}"/>""" if form else ""}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>'
            for form, level, text in items
        )
        + "</p:txBody>"
    )


def points(*texts: str, form: str = "General") -> str:
    found = "".join(
        f'<c:pt idx="{n}"><c:v>{text}</c:v></c:pt>' for n, text in enumerate(texts) if text
    )
    return f'<c:f>Sheet1!$B$2</c:f><c:numCache><c:formatCode>{form}</c:formatCode><c:ptCount val="{len(texts)}"/>{found}</c:numCache>'


def series(
    name: str, categories: str, values: str, more: str = "", *, kinds: str = "cat val"
) -> str:
    across, up = kinds.split()
    return f"<c:ser><c:tx><c:strRef>{points(name)}</c:strRef></c:tx>{more}<c:{across}>{categories}</c:{across}><c:{up}>{values}</c:{up}></c:ser>"


def chart(*series: str, title: str = "") -> str:
    rich = "".join(f"<a:r><a:t>{word}</a:t></a:r>" for word in title.split())
    head = f"<c:title><c:tx><c:rich><a:p>{rich}</a:p></c:rich></c:tx></c:title>" if title else ""
    axis = "<c:valAx><c:title><c:tx><c:rich><a:p><a:r><a:t>Axis</a:t></a:r></a:p></c:rich></c:tx></c:title></c:valAx>"
    return f'<c:chartSpace xmlns:c="c" {A}><c:chart>{head}<c:plotArea>{"".join(series)}{axis}</c:plotArea></c:chart></c:chartSpace>'


FRAME = '<p:graphicFrame><c:chart xmlns:c="c" r:id="r1"/></p:graphicFrame>'
DIAGRAM = '<p:graphicFrame><dgm:relIds xmlns:dgm="d" r:dm="r1"/></p:graphicFrame>'


def with_part(body: str, content: str) -> bytes:
    """A slide, with a part to which it refers."""
    return archive(
        {
            "ppt/presentation.xml": f'<p:presentation {A} {R}><p:sldIdLst><p:sldId r:id="r1" id="256"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": '<Relationships><Relationship Id="r1" Target="slides/s1.xml"/></Relationships>',
            "ppt/slides/s1.xml": f"<p:sld {A} {R}>{body}</p:sld>",
            "ppt/slides/_rels/s1.xml.rels": '<Relationships><Relationship Id="r1" Target="../parts/one.xml"/></Relationships>',
            "ppt/parts/one.xml": content,
            "ppt/parts/_rels/one.xml.rels": '<Relationships><Relationship Id="r1" Target="one.xml"/></Relationships>',
        }
    )


QUARTERS, LEVELS = points("Q1", "Q2", "Q3"), "<c:lvl>{}</c:lvl><c:lvl>{}</c:lvl>"
LABEL = "<c:dLbls><c:dLbl><c:tx><c:rich><a:p><a:r><a:t>best</a:t></a:r></a:p></c:rich></c:tx></c:dLbl></c:dLbls>"
CHARTS = {
    "a series": (chart(series("Sales", QUARTERS, points("5", "7.5", "9"))), ["Sales: Q1 5, Q2 7.5, Q3 9"]),
    "two series and a title": (chart(series("A", QUARTERS, points("1", "2", "3")), series("B", QUARTERS, points("4", "5", "6")), title="Year 2026"),
                               ["Year 2026", "A: Q1 1, Q2 2, Q3 3", "B: Q1 4, Q2 5, Q3 6"]),
    "a value that is missing": (chart(series("Sales", QUARTERS, points("5", "", "9"))), ["Sales: Q1 5, Q3 9"]),
    "percentages": (chart(series("Share", QUARTERS, points("0.25", "0.3", "1", form="0%"))), ["Share: Q1 25%, Q2 30%, Q3 100%"]),
    "days": (chart(series("Visits", points("46082", "46083", form="dd.mm.yyyy"), points("3", "4"))), ["Visits: 2026-03-01 3, 2026-03-02 4"]),
    "points": (chart(series("XY", points("1.5", "2"), points("3", "4"), kinds="xVal yVal")), ["XY: 1.5 3, 2 4"]),
    "two levels": (chart(series("S", LEVELS.format(points("Jan", "Feb"), points("2026", "")), points("1", "2"))), ["S: Jan 2026 1, Feb 2"]),
    "a label of its own": (chart(series("S", QUARTERS, points("1", "2", "3"), LABEL)), ["S: Q1 1, Q2 2, Q3 3"]),
    "no names": (chart(series("", "", points("1", "2"))), ["1 1, 2 2"]),
    "rounding": (chart(series("S", points("a"), points("0.30000000000000004"))), ["S: a 0.3"]),
}  # fmt: skip


@cases(("content", "lines"), CHARTS.values())
def test_a_chart_says_its_numbers(tmp_path: Path, content: str, lines: list[str]) -> None:
    path = tmp_path / "a.pptx"
    path.write_bytes(with_part(shape("Plan", kind="title") + FRAME, content))
    assert shown(path) == ["--- 1", "# Plan", *lines, "Axis"]
    drawing = run(f'<w:drawing><c:chart xmlns:c="c" {R} r:id="r1"/></w:drawing>')
    files = {
        "word/document.xml": f"<w:document {W}>{words('before', drawing, 'after')}</w:document>",
        "word/_rels/document.xml.rels": '<Relationships><Relationship Id="r1" Target="one.xml"/></Relationships>',
        "word/one.xml": content,
    }
    path.write_bytes(archive(files))
    assert shown(path) == ["before", *lines, "Axis", "after"]


BOTH, RIGHT = 'rowSpan="2" gridSpan="2"', 'hMerge="1" rowSpan="2"'
BELOW, CORNER = 'vMerge="1" gridSpan="2"', 'hMerge="1" vMerge="1"'
ACROSS, LEFT, DOWN, UP = 'gridSpan="2"', 'hMerge="1"', 'rowSpan="2"', 'vMerge="1"'
POWERPOINT = {
    "slides in their order": (pptx(shape("second"), shape("first")), ["--- 1", "first", "--- 2", "second"]),
    "title": (pptx(shape("Plan", kind="title") + shape("one", "two")), ["--- 1", "# Plan", "one", "two"]),
    "number of the slide": (pptx('<p:sp><a:p><a:fld type="slidenum"><a:t>1</a:t></a:fld></a:p></p:sp>' + shape("x")), ["--- 1", "x"]),
    "notes of the speaker": (with_notes(shape("Plan", kind="title"), shape("mind the gap")), ["--- 1", "# Plan", "Notes:", "mind the gap"]),
    "no notes": (with_notes(shape("Plan", kind="title"), shape()), ["--- 1", "# Plan"]),
    "numbered": (pptx(slide_list(("arabicPeriod", 0, "a"), ("alphaLcParenBoth", 1, "b"), ("alphaLcParenBoth", 1, "c"), ("arabicPeriod", 0, "d"), ("", 0, "e"), ("romanUcPeriod", 0, "f"))),
                 ["--- 1", "1. a", "a) b", "b) c", "2. d", "e", "I. f"]),
    "table": (pptx(f"<a:tbl><a:tr>{slide_cell('both', ACROSS)}{slide_cell('', LEFT)}{slide_cell('c')}</a:tr>"
                   f"<a:tr>{slide_cell('tall', DOWN)}{slide_cell('b')}{slide_cell('c')}</a:tr>"
                   f"<a:tr>{slide_cell('', UP)}{slide_cell('e')}{slide_cell('f')}</a:tr></a:tbl>"),
              ["--- 1", "both |  | c", "tall | b | c", "tall | e | f"]),
    "merged both ways": (pptx(f"<a:tbl><a:tr>{slide_cell('A', BOTH)}{slide_cell('', RIGHT)}{slide_cell('c')}</a:tr>"
                              f"<a:tr>{slide_cell('', BELOW)}{slide_cell('', CORNER)}{slide_cell('f')}</a:tr></a:tbl>"),
                         ["--- 1", "A |  | c", "A |  | f"]),
    "a diagram": (with_part(DIAGRAM, f"<dgm:dataModel xmlns:dgm='d' {A} {R}><dgm:pt><dgm:t><a:p><a:r><a:t>Plan</a:t></a:r></a:p></dgm:t></dgm:pt>{DIAGRAM}<dgm:pt><dgm:t><a:p><a:r><a:t>Build</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:dataModel>"),
                  ["--- 1", "Plan", "Build"]),
    "a chart that is named again and again": (with_part(FRAME * 9, chart(series("S", points("a"), points("1")))), ["--- 1", "S: a 1", "Axis"]),
    "a part that is missing": (with_part(DIAGRAM.replace("r1", "r6") + FRAME.replace("r1", "r7") + shape("x"), ""), ["--- 1", "x"]),
    "a hidden slide": (pptx(shape("last"), shape("unseen"), shape("first"), hidden=2), ["--- 1", "first", "--- 3", "last"]),
}  # fmt: skip
ALL = {
    **{f"docx: {name}": case for name, case in PARTS.items()},
    **{f"docx: {name}": (docx(body), shown) for name, (body, shown) in WORD.items()},
    **{f"open: {name}": case for name, case in (OPEN | OPEN_PARTS).items()},
    **{f"xlsx: {name}": case for name, case in EXCEL.items()},
    **{f"pptx: {name}": case for name, case in POWERPOINT.items()},
}


def shown(path: Path) -> list[str]:
    """Its blocks, a heading with "#" for each level, a page as "---"."""
    document = extraction.Document(str(path), float("inf"))
    return [
        words
        if kind == "text"
        else f"{'#' * number} {words}"
        if kind == "heading"
        else f"--- {number}"
        for kind, number, words in extraction.blocks(document)
    ]


@pytest.mark.parametrize(("content", "blocks"), ALL.values(), ids=ALL)
def test_a_file_of_an_office_says_what_its_program_shows(
    tmp_path: Path, content: bytes, blocks: list[str]
) -> None:
    (tmp_path / "a").write_bytes(content)
    assert shown(tmp_path / "a") == blocks


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pptx", "a.ods"])
async def test_the_reader_in_the_sandbox_knows_each_kind(shelf: Shelf, name: str) -> None:
    made = {
        "a.docx": docx(numbered("Term")),
        "a.xlsx": EXCEL["a gap"][0],
        "a.pptx": POWERPOINT["title"][0],
        "a.ods": OPEN["repeated empty cells"][0],
    }
    assert (
        await shelf.passages(name, made[name])
        == {
            "a.docx": [(1, "", "1. Term")],
            "a.xlsx": [(1, "One", "1 |  |  | 4")],
            "a.pptx": [(1, "Plan", "one\ntwo")],
            "a.ods": [(1, "S", "Mon | Tue | Wed | Thu\n|  |  | late")],
        }[name]
    )


def test_word_in_a_browser_names_its_document_otherwise(tmp_path: Path) -> None:
    ruby = "<w:r><w:ruby><w:rt><w:r><w:t>かんじ</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢字</w:t></w:r></w:rubyBase></w:ruby></w:r>"
    body = f"<w:document {W}><w:body>{words(ruby)}</w:body></w:document>"
    (tmp_path / "a").write_bytes(archive({"word/document2.xml": body}))
    assert shown(tmp_path / "a") == ["漢字"]


async def test_hidden_sheets_and_slides_are_named(shelf: Shelf) -> None:
    await shelf.file("a.xlsx", EXCEL["a gap"][0])
    _, facts = await shelf.reader.read("cli", "", "a.xlsx")
    assert facts.notes == [saying("Hidden sheets", "Two")]
    await shelf.file("a.ods", OPEN_PARTS["a hidden sheet"][0])
    _, facts = await shelf.reader.read("cli", "", "a.ods")
    assert facts.notes == [saying("Hidden sheets", "B")]
    for name, content in (
        ("a.pptx", POWERPOINT["a hidden slide"]),
        ("a.odp", OPEN_PARTS["a hidden slide"]),
    ):
        await shelf.file(name, content[0])
        assert (await shelf.reader.read("cli", "", name))[1].notes == [
            "Hidden slides were left out: 2."
        ]
    rows = f"<row r='1'>{v('A1', '1')}</row><row r='2' hidden='1'>{v('A2', '2')}</row><row r='3' hidden='1'/>"
    await shelf.file("b.xlsx", xlsx(rows))
    _, facts = await shelf.reader.read("cli", "", "b.xlsx")
    assert facts.notes[1:] == ["Hidden rows are read too: 1 of the sheet One."]
    unseen = "".join(f"<table:table-row table:visibility='{how}'>{{}}</table:table-row>" for how in ("filter", "collapse", "visible", "collapse"))  # fmt: skip
    await shelf.file("b.ods", sheet(unseen.format(c("1"), c("2"), c("3"), c())))
    _, facts = await shelf.reader.read("cli", "", "b.ods")
    assert facts.notes == ["Hidden rows are read too: 2 of the sheet S."]


async def test_a_sheet_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/workbook.xml", "<workbook/>")
        packed.writestr("xl/sharedStrings.xml", b"<sst>" + b" " * (65 << 20))
    with pytest.raises(Refused, match="unpacks to more than"):
        shown(tmp_path / "a.xlsx")


TABLES = {
    "cp1251": "Фамилия;Имя;Город\nИванов;Пётр;Москва\n",
    "koi8-u": "Фамилия;Имя;Город\nИванов;Пётр;Москва\n",
    "cp866": "Фамилия;Имя;Город\nИванов;Пётр;Москва\n",
    "cp1252": "Name;Ort;Preis\nMüller;Köln;5 €\n",
    "cp1250": "Jméno;Město\nJiří;Třebíč\nŽofie;Plzeň\n",
    "cp1253": "Όνομα;Πόλη\nΓιώργος;Αθήνα\n",
    "cp1254": "Ad;Şehir\nAyşe;İstanbul\nIşık;Muğla\n",
    "cp1255": "שם;עיר\nמשה;חיפה\n",
    "cp1256": "الاسم;المدينة\nمحمد;القاهرة\n",
    "gb18030": "姓名,城市\n王伟,北京\n",
    "big5": "姓名,城市\n王偉,臺北\n",
    "cp932": "氏名,都市\n田中さん,東京\n",
    "euc_jp": "氏名,都市\n田中さん,東京\n",
    "cp850": "Name;Ort\nMüller;Köln\nGroß;Düsseldorf\n",
    "mac_roman": "Name;Ort\nMüller;Köln\nGroß;Düsseldorf\n",
    "iso8859-2": "Jméno;Město\nŠimon;Žďár\nLukáš;Kraśnik\nźdźbło;Žižkov\n",
    "cp852": "Imię;Miasto\nŁukasz;Łódź\nŻaneta;Gdańsk\n",
    "cp1257": "Vārds;Pilsēta\nJānis;Rīga\nŠarūnas;Šiauliai\n",
    "cp874": "ชื่อ,เมือง\nสมชาย,กรุงเทพ\n",
    "iso8859-5": "Фамилия;Имя;Город\nИванов;Пётр;Москва\n",
    "mac_cyrillic": "Фамилия;Имя;Город\nИванов;Пётр;Москва\n",
    "cp949": "이름,도시\n김철수,서울\n",
}


@cases("encoding", TABLES)
def test_an_encoding_is_guessed_and_named(encoding: str) -> None:
    text, said = decoded(TABLES[encoding].encode(encoding))
    assert (text, said) == (TABLES[encoding], saying(NAMES[encoding]))


SIGNS = [
    ("Preis: 5 €\n", "cp1252"),
    ("Milk;€3\n", "cp1252"),
    ("£5 each\n", "cp1252"),
    ("§ 5 Abs. 2\n", "cp1252"),
    ("©2020\n", "cp1252"),
    ("½ cup\n", "cp1252"),
    ("it’s 5\n", "cp1252"),
    ("We’ll go – they’re late.\n", "cp1252"),
    ("He said “no”.\n", "cp1252"),
    ("wait … what\n", "cp1252"),
    ("• one\n• two\n", "cp1252"),
    ("Cena 5 €;Jiří\n", "cp1250"),
    ("Fiyat 5 €;ığdır;İş\n", "cp1254"),
    ("Όνομα;Ηλικία\nΆννα;5\n", "iso8859-7"),
    ("Straße 5\n5 Ärzte\n", "mac_roman"),
    ("País;Día\nEspaña;5\n", "mac_roman"),
    ("São Paulo\n", "mac_roman"),
    ("pošta\n", "cp1250"),
    ("naïve\n", "cp1252"),
    ("Haïti\n", "cp1252"),
    ("maïs\n", "cp1252"),
    ("stoïcien\n", "cp1252"),
]


@pytest.mark.parametrize(("text", "encoding"), SIGNS)
def test_signs_stand_where_they_belong(text: str, encoding: str) -> None:
    assert decoded(text.encode(encoding))[0] == text


@pytest.mark.parametrize(
    "text",
    [
        "Name;Ort\nMüller;Köln\n",
        "Имя;Город\nАнна;Москва\n",
        "名前;年齢\n田中;5\n",
        "姓名;一\n王伟;5\n",
        "שם;5\n",
        "ការប្រជុំនឹងធ្វើនៅថ្ងៃច័ន្ទម៉ោងប្រាំបួនព្រឹកនៅបន្ទប់លេខបួន\n",
        "អញ្ជើញមកទាំងអស់គ្នា\n",
        "အစည်းအဝေးကိုတနင်္လာနေ့မနက်ကိုးနာရီတွင်ကျင်းပမည်ဖြစ်သည်\n",
        "ກອງປະຊຸມຈະຈັດຂຶ້ນໃນວັນຈັນເວລາເກົ້າໂມງເຊົ້າ\n",
        "ཚོགས་འདུ་གཟའ་ཟླ་བ་ཉིན་ཚོགས་རྒྱུ་ཡིན།\n",
        "ስብሰባው ሰኞ ጠዋት በሦስት ሰዓት ይካሄዳል\n",
        "შეხვედრა ორშაბათს ცხრა საათზე იქნება\n",
        "ᎣᏏᏲ ᏂᎦᏓ\n",
        "ការប្រជុំនឹងធ្វើនៅថ្ងៃច័ន្ទ",
        "ประชุมวันจันทร์เวลาเก้านาฬิกาที่ห้องประชุมใหญ่ชั้นสี่ของสำนักงานใหญ่\n",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_needs_no_mark(text: str, encoding: str) -> None:
    assert decoded(text.encode(encoding)) == (text, "")


SEVEN_BITS = [
    ("iso2022_jp", "名前;年齢\n田中;5\n"), ("iso2022_jp_2", "契約期間三年\n"), ("iso2022_kr", "계약기간 3년\n"),
    ("iso2022_kr", "이름;나이\n김철수;5\n"), ("hz", "合同期限三年\n"), ("hz", "姓名;电话\n张三;5\n"), ("hz", "价格~ 5\n"),
    ("utf-7", "Grüße aus Köln\n"), ("utf-7", "Milch;2 €\nBrot;3 €\n"), ("utf-7", "Привет, мир\n"), ("utf-7", "合同;1 + 1\n"),
]  # fmt: skip
MARKED = [
    *[("utf-16-le", text) for text in ("a", "Hi", "5\n", "Ja;5\r\n", "日", "Ü\n", "😀\n")],
    *[("utf-16-be", text) for text in ("a", "Hi", "5\n", "Ja;5\r\n", "日", "Ü\n", "😀\n")],
    *[(encoding, text) for encoding in ("utf-32-le", "utf-32-be") for text in ("5\n", "日本;3\n")],
]
UNMARKED = ["5\n", "Hi", "Ja;5\r\n", "Ü\n", "→\n", "€5\n", "Привет", "да\n", "שלום", "Ώρα", "日本\n", "한국\n"]  # fmt: skip
ASCII = [
    "~/notes and ~{odd}\n", "see ~{not hz~} here\n", "C++ and a+b-c\n", "phone +49-171-5\n", "+AH4-\n", "1 + 1 = 2\n",
    "+def f():\n+    return 1\n-old\n", "N\bNA\bAM\bME\bE\n", "DOS\n\x1a", "a\f\nb\f\n", "\a\a\n", "A+++B\n", "x@y+tag@z\n", "\x1b$ cost\n", "SGVs+bG8=\n", "+\n",
]  # fmt: skip
MIXED = ["caf\xe9", "\x8010", "Stra\xdfe", "\x93so\x94", "M\xfcller;K\xf6ln", "na\xefve", "\xa9 2020", "\xa75", "r\xf4le", "\xc4rger"]  # fmt: skip


@pytest.mark.parametrize(("encoding", "text"), SEVEN_BITS)
def test_letters_of_seven_bits_are_read(encoding: str, text: str) -> None:
    names = {"hz": "HZ", "utf-7": "UTF-7"}
    got, said = decoded(text.encode(encoding))
    assert got == text and (said == saying(names[encoding]) if encoding in names else not said)


@pytest.mark.parametrize(("encoding", "text"), MARKED)
def test_a_mark_of_order_decides(encoding: str, text: str) -> None:
    assert decoded(f"\ufeff{text}".encode(encoding)) == (text, "")


@cases("text", UNMARKED)
@cases("encoding", ["utf-16-le", "utf-16-be"])
def test_short_utf16_needs_no_mark(text: str, encoding: str) -> None:
    assert decoded(text.encode(encoding)) == (text, "")


@pytest.mark.parametrize("text", ASCII)
def test_ascii_stays_what_it_is(text: str) -> None:
    assert decoded(text.encode()) == (text, "")


@pytest.mark.parametrize("line", MIXED)
def test_one_line_in_another_encoding_leaves_the_rest_as_it_is(line: str) -> None:
    rest = "Grüße aus Köln, schöne Straße\n" * 3
    got, said = decoded(rest.encode() + line.encode("latin-1") + b"\n" + rest.encode())
    assert got == f"{rest}{line.encode('latin-1').decode('cp1252')}\n{rest}"
    assert said == saying("not UTF-8", "Windows-1252")


SHORT = [
    ("cp1251", "Счёт 15\n"), ("koi8-u", "Привет, мир\n"), ("cp1250", "Łódź;5\n"), ("cp1250", "żółw\n"),
    ("cp932", "東京\n"), ("cp932", "名前;年齢\n"), ("gb18030", "北京\n"), ("gb18030", "合同期限\n"), ("big5", "台北\n"),
    ("cp949", "서울\n"), ("cp1252", "Café\n"), ("cp1252", "Müller;5 €\n"), ("iso8859-7", "Αθήνα\n"), ("euc_jp", "東京;大阪\n"),
    ("iso8859-15", "10 €\n"), ("cp1255", "שם;עיר\n"),
]  # fmt: skip


@pytest.mark.parametrize(("encoding", "text"), SHORT)
def test_the_encoding_of_a_few_letters_is_said_to_be_unknown(encoding: str, text: str) -> None:
    _, said = decoded(text.encode(encoding))
    assert said == saying("unknown", "may be wrong")


TWO_LINES = {
    "cp932": ("日付,店\n5/1,銀座\n", "氏名,部署\n佐藤,営業\n", "項目,値\n温度,20\n", "住所,電話\n東京都港区,03-1234\n"),
    "euc_jp": ("名前,金額\r\n山田,500\r\n", "項目,値\n温度,20\n", "ID,メモ\n1,確認済\n", "住所,電話\n東京都港区,03-1234\n"),
    "gb18030": ("城市,人口\n上海,2400\n", "编号,备注\n1,已确认\n", "姓名,金额\r\n王伟,500\r\n", "日期,商店\n5/1,超市\n"),
    "big5": ("項目,數值\n溫度,20\n", "編號,備註\n1,已確認\n", "日期,商店\n5/1,超市\n", "姓名,金額\r\n王偉,500\r\n"),
    "cp949": ("항목,값\n온도,20\n", "이름,금액\r\n김철수,500\r\n", "요일,당번\n월,최수진\n", "번호,메모\n1,확인됨\n"),
}  # fmt: skip


@cases(("encoding", "text"), [(code, text) for code, texts in TWO_LINES.items() for text in texts])
def test_of_two_lines_the_words_are_right_or_said_to_be_uncertain(encoding: str, text: str) -> None:
    got, said = decoded(text.encode(encoding))
    assert got == text or said == saying("unknown", "may be wrong")


OLDER = [
    *[("cp932", text) for text in ("ﾀﾅｶ ﾀﾛｳ\n", "ﾅﾏｴ;ﾄｼ\nﾀﾅｶ;5\n", "ｶﾌﾞｼｷｶﾞｲｼｬ\n", "株式会社ｱｲﾜ\n名前;ﾌﾘｶﾞﾅ\n", "ｻﾄｳ ﾊﾅｺ,03-1234\n", "ﾐｽﾞﾎｷﾞﾝｺｳ\nﾐﾂｲｽﾐﾄﾓ\n", "｢ﾊﾟﾝ｣､ｷﾞｭｳﾆｭｳ｡\n")],
    ("euc_jp", "ﾀﾅｶ;東京\n"), ("iso2022_jp_ext", "ｱｲｳｴｵ\n"), ("iso2022_jp_ext", "ﾀﾅｶ;東京\n"),
    *[(f"utf-16-{order}", text) for order in ("le", "be") for text in ("合同期限三年", "中文", "日本語", "東京都港区", "我在北京。", "계약기간", "こんにちは", "姓名，电话", "臺北市信義區", "北京欢迎你，今天天气很好。")],
    *[(code, text) for code in ("cp037", "cp500", "cp1140") for text in ("HELLO WORLD 123 MAIN STREET\n", "invoice 4711 total 19.99 due 2026-01-05", "A B C 1 2 3", "00012345 SMITH     JOHN      19991231")],
    *[("cp437", text) for text in ("┌──┐\n│Größe│\n└──┘\n", "╔══╗\n║ab║\n╚══╝\n", "░▒▓ 50%\n", "│a│\n├───┼───┤\n", "España ═══════ ñandú\n")],
    ("cp866", "╔═══╗\n║Имя Пётр║\n╚═══╝\n"),
    ("cp1250", "Kedves Zsófi! A szerződést elküldtük, kérjük írja alá és küldje vissza. Köszönjük szépen.\n"),
    ("cp1252", "As ações e condições são três; põe à mão, não é fácil. Instruções e opções.\n"),
]  # fmt: skip


@cases(("encoding", "text"), OLDER)
def test_encodings_of_older_machines_are_read(encoding: str, text: str) -> None:
    assert decoded(text.encode(encoding))[0] == text


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("cp437", "5 ¢\n"), ("cp437", "¥100\n"), ("cp437", "√2\n"), ("cp037", "HELLO"), ("cp273", "Müller wohnt in Köln\n"), ("cp437", "╒═╕\n")],
)  # fmt: skip
def test_what_may_be_wrong_is_said_to_be_so(encoding: str, text: str) -> None:
    assert decoded(text.encode(encoding))[1] == saying("may be wrong")


def test_what_is_no_text_in_any_encoding_is_said_to_be_unknown() -> None:
    _, said = decoded(bytes((n * 37 + 11) % 128 | 128 for n in range(500)))
    assert said == saying("unknown", "may be wrong")


@pytest.mark.parametrize("mark", ["sep=;", "\ufeffsep=;", '"sep=;"', "SEP=;"])
async def test_the_line_that_names_the_separator_is_no_heading(shelf: Shelf, mark: str) -> None:
    table = f"{mark}\r\nName;Age\r\nAda;36\r\n"
    assert await shelf.passages("a.csv", table.encode()) == [(1, "Name;Age", "Ada;36")]


ROWS = {
    "a line break in a cell": ('n,t\nAnn,"one\ntwo"\nBob,x', "n,t", 'Ann,"one two"\nBob,x'),
    "in the first cell": ('n;t\n"one\r\ntwo";x\nBob;y', "n;t", '"one two";x\nBob;y'),
    "in a heading": ('"first\nname"\tage\nAnn\t5', '"first name"\tage', "Ann\t5"),
    "quotation marks in a cell": ('n,t\n"5"" or\n6""",x', "n,t", '"5"" or 6""",x'),
    "a cell that is not closed": ('n,t\nAnn,"one\nBob,"x"y\nCem,"z"', "n,t", 'Ann,"one\nBob,"x"y\nCem,"z"'),
    "inches": ('n,t\nlid,5" wide\nbox,6" wide', "n,t", 'lid,5" wide\nbox,6" wide'),
    "empty lines first": ("\n\nn,t\nAnn,5", "n,t", "Ann,5"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "heading", "rows"), ROWS.values(), ids=ROWS)
def test_a_row_of_a_table_is_one_line(tmp_path: Path, text: str, heading: str, rows: str) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode())
    assert shown(tmp_path / "a.csv") == [f"# {heading}", *rows.split("\n")]
