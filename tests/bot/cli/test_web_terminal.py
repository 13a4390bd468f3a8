"""What an owner types in the terminal needs no question; what their shell makes of it does."""

from pathlib import Path

import pytest

from fakes.command_line import voltaire
from fakes.words import saying


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sandbox", "--", "web", "read", "http://127.0.0.1:1024/"], "not public"),
        (["tool", "bash", '{"command": "web read http://127.0.0.1:1024/"}'], "not public"),
        (["tool", "bash", '{"command": "web read http://127.0.0.1:1024/$(echo x)"}'], "nobody can be asked"),
        (["sandbox", "--", "web", "search", "tea"], "voltaire setup search"),
        (["sandbox", "--", "mail", "list"], "docs/mail.md"),
        (["sandbox", "--", "calendar", "today"], "docs/calendar.md"),
    ],
    ids=["sandbox", "tool", "made-up", "search", "mail", "calendar"],
)  # fmt: skip
def test_what_an_owner_types(tmp_path: Path, words: list[str], told: str) -> None:
    assert voltaire(tmp_path, *words) == (1, saying(told), "")
