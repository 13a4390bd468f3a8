"""Names of files are no links to the country whose domain they seem to end in, by Telegram's own parser."""

import pytest

from agent.plan import PlanStep
from bot.channel import ToolCallView, TurnView
from bot.localgram.entities import formatted
from bot.telegram.channel import message_parts
from bot.telegram.live import progress_text
from bot.telegram.markdown import render
from bot.telegram.styled import Styled, entities


def pressed(styled: Styled) -> list[str]:
    """What apps make links or commands of by themselves."""
    text, found = formatted(styled.text, "", [each.to_dict() for each in entities(styled)])
    wide = text.encode("utf-16-le")
    return [
        wide[2 * each["offset"] : 2 * (each["offset"] + each["length"])].decode("utf-16-le")
        for each in found
        if each["type"] in ("url", "email", "bot_command")
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


def test_the_names_around_an_answer_are_none() -> None:
    call = ToolCallView("1", "bash", "ls notes.md", "ok", "notes.md\n/workspace\nrun.sh", 1.0)
    view = TurnView(
        (call,),
        plan=(PlanStep("write notes.md"),),
        thoughts="first notes.md",
        status="reading notes.md",
    )
    assert pressed(progress_text(view, with_calls=True)) == []


def test_the_file_that_holds_a_long_answer_is_none() -> None:
    [head, _] = message_parts("word " * 5000)
    assert isinstance(head, Styled)
    assert "answer.md" in head.text
    assert pressed(head) == []


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
