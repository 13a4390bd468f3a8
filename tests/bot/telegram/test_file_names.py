"""Names of files are no links to the country whose domain they seem to end in, by Telegram's own parser."""

import json

import pytest
import tdjson

from bot.telegram.markdown import render
from bot.telegram.styled import Styled, entities

KINDS = {"textEntityTypeUrl", "textEntityTypeEmailAddress", "textEntityTypeBotCommand"}


def pressed(styled: Styled) -> list[str]:
    """What apps make links or commands of by themselves, outside of code and links."""
    query = json.dumps({"@type": "getTextEntities", "text": styled.text})
    answer = json.loads(tdjson.td_execute(query.encode()) or b"{}")
    wide = styled.text.encode("utf-16-le")
    taken = {
        unit
        for each in entities(styled)
        if each.type in {"code", "pre", "text_link"}
        for unit in range(each.offset, each.offset + each.length)
    }
    found = [
        (each["offset"], each["offset"] + each["length"], each["type"]["@type"])
        for each in answer["entities"]
    ]
    return [
        wide[2 * first : 2 * last].decode("utf-16-le")
        for first, last, kind in found
        if kind in KINDS and taken.isdisjoint(range(first, last))
    ]


@pytest.mark.parametrize(
    "source",
    [
        "I have written notes.md, main.py:12 and setup.sh.",
        "**notes.md** and *lib.rs* and ~~old.zip~~",
        "# README.md",
        "> see план.md",
        "- ./run.sh\n- ~/notes.md\n- a-b.v2.py",
        "[the notes](notes.md), [notes.md](notes.md)",
        "| file | what is in it, and it is far too long for an aligned table |\n|-|-|\n| notes.md | [x](https://example.com) |",
    ],
)
def test_a_name_in_a_text_is_no_link(source: str) -> None:
    assert pressed(render(source)) == []


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("see example.org/notes.md", "example.org/notes.md"),
        ("see https://example.rs/lib.rs now", "https://example.rs/lib.rs"),
        ("write to me@example.md", "me@example.md"),
        ("see www.example.rs", "www.example.rs"),
        ("docs.rs/tokio", "docs.rs/tokio"),
        ("/help has more", "/help"),
    ],
)
def test_what_is_meant_to_be_pressed_still_is(text: str, link: str) -> None:
    assert pressed(render(text)) == [link]
