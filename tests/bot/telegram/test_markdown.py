"""Rendering: nothing is lost, nothing is refused by Telegram's own parser."""

import json
import random
import re
from collections import Counter
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
import tdjson

from bot.telegram.markdown import render
from bot.telegram.styled import ENTITIES, TEXT_UNITS, Styled, entities, plain, split, tail, units

NASTY = Path(__file__).with_name("nasty.md").read_text("utf-8").split("\n%%\n")


def corpus() -> list[str]:
    """500 inputs: each of ours alone, then seeded mixtures of them."""
    chance = random.Random(7)
    mixed = ("".join(_cut(chance) for _ in range(chance.randint(1, 3))) for _ in range(500))
    return [*NASTY, *mixed][:500]


def _cut(chance: random.Random) -> str:
    source = chance.choice(NASTY)[:160]
    start = chance.randrange(max(1, len(source) // 2))
    return source[start : start + chance.randint(1, 60)] + chance.choice(["", "\n", "\n\n", " "])


@cache
def _td() -> None:
    _execute({"@type": "setLogVerbosityLevel", "new_verbosity_level": 0})


def _execute(query: dict[str, object]) -> dict[str, object]:
    answer = tdjson.td_execute(json.dumps(query).encode())
    parsed: dict[str, object] = json.loads(answer or b"{}")
    return parsed


_TD_TYPES = {
    "bold": "Bold",
    "italic": "Italic",
    "strikethrough": "Strikethrough",
    "spoiler": "Spoiler",
    "code": "Code",
    "pre": "PreCode",
    "text_link": "TextUrl",
    "blockquote": "BlockQuote",
    "expandable_blockquote": "ExpandableBlockQuote",
}


def judge(styled: Styled) -> None:
    """Raise what Telegram's parser has against it."""
    given = [
        {
            "@type": "textEntity",
            "offset": entity.offset,
            "length": entity.length,
            "type": {
                "@type": f"textEntityType{_TD_TYPES[entity.type]}",
                **({"url": entity.url} if entity.url else {}),
                **({"language": entity.language or ""} if entity.type == "pre" else {}),
            },
        }
        for entity in entities(styled)
    ]
    submit(styled.text, given)


def submit(text: str, given: list[dict[str, object]]) -> None:
    _td()
    formatted = {"@type": "formattedText", "text": text, "entities": given}
    answer = _execute({"@type": "getMarkdownText", "text": formatted})
    assert answer["@type"] == "formattedText", (answer, text, given)


def kept(source: str) -> Counter[str]:
    """The characters that no markup is made of: labels of fences and definitions are markup."""
    unlabelled = re.sub(r"(```|~~~)([`~]*) *[\w+#./-]*( *title=)?|(?m:^\[\w+\]:)", "", source)
    return Counter(c for c in unquote(unescape(unlabelled)) if c.isalpha() or c in "{}@%;,?")


def shown(styled: Styled) -> Counter[str]:
    hidden = "".join(span.argument for span in styled.spans)
    return Counter(unquote(styled.text + hidden))


def check(source: str) -> None:
    styled = render(source)
    parts = split(styled)
    for part in parts:
        assert units(part.text) <= TEXT_UNITS
        assert len(part.spans) <= ENTITIES
        judge(part)
    assert not kept(source) - shown(styled), (source, styled)


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 11])
@pytest.mark.parametrize("slice_", range(10))
def test_nasty_inputs_and_all_their_prefixes(slice_: int, step: int) -> None:
    for source in corpus()[slice_::10]:
        for end in range(len(source), 0, -step):
            check(source[:end])


def texts(styled: Styled) -> list[tuple[str, str, str]]:
    return [(s.kind, styled.text[s.start : s.end], s.argument) for s in styled.spans]


@pytest.mark.parametrize(
    "raw",
    [
        "Vec<u8> and if a<b and c>d then <name>",
        "std::vector<std::string> v; map<K, V>::iterator",
        "Jane Doe <jane@example.org>",
        "<div class='x'>&copy this</div>",
        "costs $5 and $10, in $HOME/bin:$PATH",
        "snake_case_name and __init_subclass",
        r"\(x_1 < y_2\) and \[a_i * b_i\] and $x_1*y_1*z$",
        "[TODO]: fix",
        "a | b",
        "2 * 3 * 4 ~ 24",
    ],
)
def test_raw_text_survives(raw: str) -> None:
    assert render(raw) == Styled(raw)


def test_markdown_becomes_spans() -> None:
    source = """## Plan
Do **this** *now*, ~~not that~~: `run(x)`, see [docs](https://example.org/a_(b) "Title").
1. one
1. two
   - deep

> quoted
> > deeper

```rust
fn main() { let v: Vec<u8>; }
```
"""
    styled = render(source)
    assert styled.text == (
        "Plan\n\nDo this now, not that: run(x), see docs (Title).\n1. one\n2. two\n   • deep\n\n"
        "quoted\n\n│ deeper\n\nfn main() { let v: Vec<u8>; }"
    )
    assert texts(styled) == [
        ("bold", "Plan", ""),
        ("bold", "this", ""),
        ("italic", "now", ""),
        ("strikethrough", "not that", ""),
        ("code", "run(x)", ""),
        ("text_link", "docs", "https://example.org/a_(b)"),
        ("blockquote", "quoted\n\n│ deeper", ""),
        ("pre", "fn main() { let v: Vec<u8>; }", "rust"),
    ]


@pytest.mark.parametrize(
    "raw",
    [
        "2*3*4 = 24",
        "5*x*y",
        "so 2*3*4, then 5*x*y*z",
        "f(x)*g(x)*h",
        "2**3**4",
        "a*b*",
        "*2*3",
        "f(*args, **kwargs)",
        "__init__.py",
        "call __init__.py or self.__dict__['x'] now",
        "__init__ and __main__",
        "__main__*2*__main__*x",
        "self._x_y_init__.py",
        "snake_case_name and _private_name_too",
        "if (a||b) and (c||d)",
        "a || b || c",
        "||x||",
    ],
)
def test_no_character_is_lost_where_no_emphasis_can_be_meant(raw: str) -> None:
    assert render(raw).text == raw
    for before, behind in (("**so** ", ""), ("- ", " *then*"), ("> ", ""), ("", "\n\n# " + raw)):
        assert raw in render(before + raw + behind).text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("2. milk\n3. tea\n5. rice", "2. milk\n3. tea\n5. rice"),
        ("3. three\n2. two\n1. one", "3. three\n2. two\n1. one"),
        ("1. one\n1. two\n1. three", "1. one\n2. two\n3. three"),
        ("4. four\n   1. in\n   3. it\n7. seven", "4. four\n   1. in\n   3. it\n\n7. seven"),
    ],
)
def test_items_keep_the_numbers_that_others_speak_of(source: str, text: str) -> None:
    assert render(source).text == text


@pytest.mark.parametrize(
    ("source", "text", "spans"),
    [
        ("**bold**text", "boldtext", ["bold:bold"]),
        ("**2*3**", "2*3", ["bold:2*3"]),
        ("_**so**_", "so", ["bold:so", "italic:so"]),
        ("*a*b*c*", "a*b*c", ["italic:a*b*c"]),
        ("__Important__: *it*", "Important: it", ["bold:Important", "italic:it"]),
        ("**重点**内容", "重点内容", ["bold:重点"]),
        ("||the **killer**|| is", "the killer is", ["spoiler:the killer", "bold:killer"]),
        ('```py title="a.py"\nx\n```', "a.py\n\nx", ["code:a.py", "pre:x"]),
        ("```py {1,3}\nx\n```", "{1,3}\n\nx", ["bold:{1,3}", "pre:x"]),
        (
            "|a|b|\n|-|-|\n|[x](https://e.org/y)|2|",
            "a: x\nb: 2",
            ["bold:a:", "text_link:x", "bold:b:"],
        ),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else "",
)
def test_where_it_can_be_meant_it_is(source: str, text: str, spans: list[str]) -> None:
    styled = render(source)
    assert styled.text == text
    assert [f"{s.kind}:{styled.text[s.start : s.end]}" for s in styled.spans] == spans
    judge(styled)


def test_a_long_draft_is_cut_between_words() -> None:
    words = [f"word{n}" for n in range(2000)]
    shown = tail(render(" ".join(words)), TEXT_UNITS).text.removeprefix("…\n")
    assert shown.split()[0] in words


def test_a_narrow_table_is_aligned_and_a_wide_one_becomes_lines() -> None:
    narrow = render("|a|b|\n|-|-|\n|1|日本|\n|22|x|beyond|")
    assert narrow == Styled(narrow.text).within("pre")
    assert narrow.text == "a  │ b    │\n───┼──────┼───────\n1  │ 日本 │\n22 │ x    │ beyond"
    wide = render(
        "| Name of the thing | What it is good for |\n|--|--|\n| **hammer** | nails, and windows |\n"
    )
    assert wide.text == "Name of the thing: hammer\nWhat it is good for: nails, and windows"
    assert ("bold", "hammer", "") in texts(wide)


def test_an_open_fence_is_code_and_too_deep_nesting_is_plain() -> None:
    assert texts(render("```py\nx = 1")) == [("pre", "x = 1", "py")]
    assert render(">" * 500 + " deep") == Styled(">" * 500 + " deep")


def test_lone_surrogates_are_replaced() -> None:
    assert plain("a\ud800b").text == "a\ufffdb"
    assert render("**\ud83d**").text == "\ufffd"


def test_splitting_keeps_code_balanced_and_loses_only_space() -> None:
    code = "\n".join(f"line {n} 😀" for n in range(1500))
    styled = render(f"Intro\n\n```python\n{code}\n```\n\nEnd")
    parts = split(styled)
    assert len(parts) > 3
    assert all(units(part.text) <= TEXT_UNITS for part in parts)
    assert all([s.argument for s in p.spans if s.kind == "pre"] == ["python"] for p in parts[:-1])
    assert "".join("".join(p.text.split()) for p in parts) == "".join(styled.text.split())


def test_splitting_at_the_entity_limit() -> None:
    styled = render(" ".join(f"**b{n}**" for n in range(250)))
    parts = split(styled)
    assert [len(p.spans) for p in parts] == [100, 100, 50]
    assert " ".join(p.text for p in parts) == styled.text


def test_indentation_survives_a_cut_inside_code() -> None:
    styled = render("```\n" + "\n".join("    indented" for _ in range(600)) + "\n```")
    assert all(part.text.startswith("    indented") for part in split(styled))
