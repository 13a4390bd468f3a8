"""The table that `make bench` puts into the README."""

import pytest

from bench.__main__ import BEGIN, END, ROOT, ROWS, section, written


def test_a_figure_stands_with_its_unit_and_one_that_is_missing_is_a_question_mark() -> None:
    text = section({"first_request_tokens": 1133, "prefix_kept_percent": 100.0}, "somewhere")
    assert text.splitlines()[2:5] == [
        "| first request, tokens (o200k) | 6,881 | 11,964 | 11,239-13,092 | at most 1,500 | **1,133** |",
        "| prefix kept between turns | 100 % in a short script | 100 %, side requests break it | 97.5-99 % | 100 % | **100 %** |",
        "| update received to model request, median | 254 ms | 232 ms | 708 ms | at most 15 ms | **?** |",
    ]
    assert len(text.splitlines()) == 2 + len(ROWS) + 2


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    assert written(f"a\n{BEGIN}\nold\n{END}\nb\n", "new\n") == f"a\n{BEGIN}\nnew\n{END}\nb\n"
    with pytest.raises(ValueError, match=r"README\.md has no"):
        written("no marks", "new")


def test_the_readme_has_its_marks() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert readme.count(BEGIN) == readme.count(END) == 1
