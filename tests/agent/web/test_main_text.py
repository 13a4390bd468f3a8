"""The main part of pages, by saved pages with what must and must not be in it (beside them, in JSON)."""

import json
import re
from pathlib import Path

import pytest

from agent.web.html_text import decode_page, html_text, markdown
from fakes.cases import cases

PAGES = Path(__file__).with_name("pages")
ADDRESS = "https://a.example/b/c"


def plain_words(text: str) -> str:
    """Without marks of emphasis, cells and links."""
    return " ".join(re.sub(r"\]\[\d+\]|[*|\\`\[]", "", text).split())


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.html")), ids=lambda page: page.stem)
def test_a_saved_page(page: Path) -> None:
    expected = json.loads(page.with_suffix(".json").read_text())
    found = markdown(page.read_text(), expected["url"])
    words = plain_words(found)
    assert [
        each for each in expected["wanted"] if plain_words(each.strip("#` ")) not in words
    ] == []
    assert [each for each in expected["unwanted"] if plain_words(each) in words] == []
    assert [each for each in expected["links"] if each not in found] == []
    assert sum(len(expected[name]) for name in ("wanted", "unwanted", "links")) > 5


SHOWN = {
    "10<sup>6</sup> m<sup>-2</sup>": "10⁶ m⁻²",
    "2<sup><a href='#n'>3</a></sup> = 8": "2³ = 8",
    "x<sup>2n+1</sup> of the 1<sup>st</sup>": "x²ⁿ⁺¹ of the 1st",
    "H<sub>2</sub>O<sup>[1]</sup>": "H2O[1]",
    "10<sup>6<p>7<table><tr><td>8</table>": "10⁶\n7\n\n| 8",
    "<p>a<p style='color:red; display: none'>b</p><p>c": "a\n\nc",
    "some text <span hidden>x</span>that <span style=visibility:hidden>y</span>is seen": "some text that is seen",
    "<p>a b c<a class='hidden md:block'>d</a><div hidden=until-found>e</div>f": "a b cd\n\nf",
    "<div style='display:none'>all that there is</div><p>x": "all that there is\n\nx",
    "so <math>\n<mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo>\n<mn>1</mn></mrow></mfrac>\n</math> it is": "so (a)/(b+1) it is",
    "<math><msup><mi>x</mi><mn>2</mn></msup><mo>=</mo><msqrt><mi>y</mi><mo>-</mo><mn>1</mn></msqrt></math>": "x^(2)=√(y-1)",
    "<math><munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover><msub><mi>a</mi><mi>i</mi></msub></math>": "∑_(i)^(n)a_(i)",
    "<span class=mwe-math style='display:none'><math><semantics><mi>E</mi><annotation>{E}</annotation></semantics></math></span> is": "E is",
    "<math><mfrac><mn>1</mn><p>not closed <b>here</b> either": "(1\nnot closed here either",
    "<math><mi>x<mn>1</math> and <b>more</b> text": "x1 and more text",
    "<math><mi>x</mi><mtext> if </mtext><mi>y</mi></math>": "x if y",
    "was <s>900</s> <del>800 <b>€</b></del> 950": "was ~~900~~ ~~800 €~~ 950",
    "<strike></strike>a<s class=icon></s>b": "ab",
    "<ol type=a><li>x<li>y</ol>": "a. x\nb. y",
    "<ol type=I start=4><li>x<li>y</ol>": "IV. x\nV. y",
    "<ol><li>x<li value=7>y<li>z</ol>": "1. x\n7. y\n8. z",
    "<ol start=0><li>x<ol type='i'><li>y</ol><li>z</ol>": "0. x\n\ni. y\n\n1. z",
    "<ol type=disc start=x><li>x<ul><li>y</ul></ol>": "1. x\n\n- y",
}


@cases(("html", "text"), SHOWN.items())
def test_what_a_place_means_is_written(html: str, text: str) -> None:
    assert html_text(html) == text
    assert markdown(html, ADDRESS) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a <a href=/x>b</a> c <a href='https://a.example/x#y'>d</a></p>", "a [b][1] c [d][1]\n\n[1]: https://a.example/x"),
        ("<a href='#top'>up</a> <a href='javascript:x'>no</a> <a href=mailto:x@y>m</a>", "up no m"),
        ("<a href=/x><h2>Card</h2><p>text</p></a>", "## Card\n\ntext\n[1]\n\n[1]: https://a.example/x"),
        ("<a href=x><img></a>y", "y"),
        ("<base href='https://c.example/'><a href=x>y</a>", "[y][1]\n\n[1]: https://c.example/x"),
        ("<a href='http://['>y</a>", "y"),
        ("<pre>a\n  <a href=x>b</a></pre>", "```\na\n  b\n```"),
        ("<p>use <code>ls</code></p>", "use `ls`"),
        ("<nav>menu <a href=x>one</a></nav><p>text</p>", "text"),
        ("<nav><a href=x></nav>one<p>two</a> three", "one\n\ntwo three"),
        ("<aside>all there is</aside>", "all there is"),
        ("<div class='page has-sidebar'>everything is in here</div>", "everything is in here"),
        ("<main>short</main><p>but the text stands outside of what calls itself main</p>", "short\n\nbut the text stands outside of what calls itself main"),
        ("<p>before</p><main>the main part of this page</main>", "the main part of this page"),
        ("<header class=top><h1>Name</h1></header><p>some text of it</p>", "# Name\n\nsome text of it"),
        ("<article><header>By me</header>text of the article<footer>tags</footer></article>", "By me\n\ntext of the article\n\ntags"),
        ("<div class=sidebar>x</div>" * 3 + "<p>some longer text here</p>", "some longer text here"),
        ("<p>some words of text</p><h3><button>Costs</button></h3><p>37 crowns</p><button>Buy</button>", "some words of text\n\n### Costs\n\n37 crowns"),
        ("<form><p>Come to Market 1</p><button>Book</button></form>", "Come to Market 1"),
        ("<aside>not closed<p>and more", "not closed\n\nand more"),
    ],
    ids=["links", "no-links", "card", "picture", "base", "broken", "pre", "code", "nav", "open-link", "all-aside", "wrapper",
         "small-main", "main", "title", "article", "sidebars", "unfolds", "form", "unclosed"],
)  # fmt: skip
def test_markdown(html: str, text: str) -> None:
    found = markdown(html, ADDRESS)
    assert [line for line in found.split("\n") if line] == [
        line for line in text.split("\n") if line
    ]


@pytest.mark.parametrize("piece", ["<aside>x", "<a href=x>y</a>"])
def test_no_page_takes_longer_than_it_is_long(piece: str) -> None:
    """A reader that looks back at all of the page at each tag would need hours."""
    assert "<" not in markdown(piece * 20_000 + "</aside></div></svg>" * 20_000, ADDRESS)


META = '<html><head><meta charset="{}"></head><p>{}'
HTTP_EQUIV = "<meta http-equiv=Content-Type content='text/html; charset={}'><p>{}"


@pytest.mark.parametrize(
    ("page", "charset", "words"),
    [
        (META.format("windows-1251", "Привет").encode("cp1251"), "", "Привет"),
        (HTTP_EQUIV.format("Shift_JIS", "お茶").encode("shift_jis"), "", "お茶"),
        (META.format("gb2312", "茶樓").encode("gb18030"), "", "茶樓"),
        (META.format("iso-8859-1", "5 €").encode("cp1252"), "", "5 €"),
        (META.format("windows-1251", "zoë").encode(), "utf-8", "zoë"),
        (META.format("nonsense", "zoë").encode(), "nonsense", "zoë"),
        (META.format("utf-16", "zoë").encode(), "", "zoë"),
        (META.format("utf-8", "zoë").encode("utf-16"), "", "zoë"),
        (b"\xef\xbb\xbf" + "zoë".encode(), "iso-8859-1", "zoë"),
        ("zoë".encode("cp1252"), "", "zoë"),
        ("zoë 茶".encode()[:-1], "", "zoë �"),
    ],
    ids=["meta", "http-equiv", "wider", "latin", "header first", "unknown", "meta of utf-16", "mark", "mark first",
         "neither", "cut"],
)  # fmt: skip
def test_the_encoding_is_that_of_the_page(page: bytes, charset: str, words: str) -> None:
    assert decode_page(page, charset, html=True).endswith(words)


def test_a_text_does_not_tell_its_encoding_by_html() -> None:
    text = "<meta charset=windows-1251> zoë"
    assert decode_page(text.encode(), html=False) == text
