"""Output as people and models may see it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.sandbox.output_buffer import OutputBuffer, clean, decode_fields, truncate_middle, visible


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;endless\nnext", "\nnext"),
        ("\x9b31mred", "red"),
        ("10%\r20%\r\n", "10%\n20%\n"),
        ("a\bb\x00c\x07", "abc"),
        ("\u202eevil\u202c \u2066x\u2069", "evil x"),
        ("\ufeffstart", "start"),
        ("a\U000e0041b", "ab"),
        ("line\u2028next", "line\nnext"),
        ("größe 漢字 🙂", "größe 漢字 🙂"),
        ("\x1b", ""),
        ("\x1b[", ""),
    ],
)
def test_clean(raw: str, shown: str) -> None:
    assert clean(raw) == shown


@given(st.text())
def test_nothing_is_left_that_drives_a_terminal(text: str) -> None:
    left = clean(text)
    assert not [c for c in left if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]
    assert clean(left) == left


@given(st.text(), st.integers(50, 200))
def test_a_cut_text_is_about_as_long_as_asked(text: str, keep: int) -> None:
    shown, cut = truncate_middle(text, keep)
    assert (
        cut == (len(text.encode("utf-8", "surrogatepass")) > keep)
        or "\ud800" <= max(text) <= "\udfff"
    )
    assert len(shown.encode("utf-8", "replace")) <= keep + 60


def test_head_and_tail_are_whole_lines() -> None:
    text = "".join(f"line {n}\n" for n in range(1, 101))
    shown, cut = truncate_middle(text, 100)
    assert cut
    assert shown.startswith("line 1\nline 2\nline 3\n")
    assert shown.endswith("line 99\nline 100\n")
    head, tail = shown.split("\n[... ")
    left_out = int(tail.split()[0])
    assert head.count("line") + left_out + tail.count("line ") == 100


def test_what_comes_is_kept_up_to_the_limit() -> None:
    output = OutputBuffer(limit=10)
    assert [output.feed(piece) for piece in (b"12345", b"6789", b"abc")] == [True, True, False]
    assert bytes(output.raw) == b"123456789a"


def test_news_are_whole_lines_that_were_not_told() -> None:
    output = OutputBuffer()
    output.feed(b"one\ntw")
    first = output.new_lines()
    output.feed(b"o\nthree\n")
    assert (first, output.new_lines(), output.new_lines()) == ("one", "two\nthree", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb\u2066c\u2069", "a⟨U+202E⟩b⟨U+2066⟩c⟨U+2069⟩"),
        ("a\u200b\U000e0041\ufe0f\u034f", "a⟨U+200B⟩⟨U+E0041⟩⟨U+FE0F⟩⟨U+034F⟩"),
        ("rm\u0336 -r", "rm⟨U+0336⟩ -r"),  # struck through
        ("a\u20dd", "a⟨U+20DD⟩"),
        ("x" + "\u0310" * 5, "x" + "\u0310" * 3 + "⟨U+0310⟩⟨U+0310⟩"),
        ("e\u0302\u0301, \u05e9\u05bc\u05b8\u05c1", "e\u0302\u0301, \u05e9\u05bc\u05b8\u05c1"),
        ("tab\tline\n", "tab\tline\n"),
    ],
    ids=["directions", "unseen", "stroke", "frame", "stacked", "scripts", "plain"],
)
def test_nothing_hides_or_covers_in_what_is_decided(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_line_of_git_ends_where_git_ended_it_and_nowhere_else() -> None:
    assert decode_fields(b"+one\r\r\n+two\rthree\r\n\0four\n") == "+one␤\n+two␤three\n\0four\n"
