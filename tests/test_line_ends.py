"""What reads files by lines splits them at line feeds alone, as what wrote them does."""

from pathlib import Path

import pytest

from agent.documents import extraction
from agent.evaluate.scores import Score, append_score, load_scores
from agent.mcp.config import ServerConfig
from agent.sandbox.gitdirs import HARMLESS_LINE
from agent.skills import front_matter
from backend.files import read_json_lines, write_json_lines
from backend.protocol import Value

BREAKS = pytest.mark.parametrize("sign", ["\x0c", "\x1c", "\x85", "\u2028"], ids=ascii)


class Told(Value):
    text: str


@BREAKS
def test_a_string_of_json_lines_is_kept(tmp_path: Path, sign: str) -> None:
    told = [Told(text=f"a{sign}b"), Told(text="c")]
    write_json_lines(tmp_path / "a", told)
    assert read_json_lines(tmp_path / "a", Told, 9) == told
    score = Score("a", "find", "ours", f"no{sign}", "done", 3, 1, 4, 900, 100, 2.0, 50.0)
    append_score(tmp_path / "b", score)
    assert load_scores(tmp_path / "b") == [score]


@BREAKS
def test_a_value_of_an_env_file_is_kept(tmp_path: Path, sign: str) -> None:
    (tmp_path / "env").write_text(f"A='x{sign}y'\r\nB=2\r\n", newline="")
    server = ServerConfig("tea", command=("tea",), env_file=str(tmp_path / "env"))
    assert server.variables() == {"A": f"x{sign}y", "B": "2"}


@BREAKS
def test_a_value_of_front_matter_is_kept(sign: str) -> None:
    assert front_matter(f"---\r\nname: a{sign}b\r\n---\r\n") == {"name": f"a{sign}b"}


@BREAKS
def test_a_heading_of_markdown_is_kept(sign: str) -> None:
    blocks = [*extraction.markdown(f"# a{sign}# b\nwords")]
    assert blocks[0] == ("text", 0, "")
    assert [words for kind, _, words in blocks if kind == "heading"] == [f"a{sign}# b"]


def test_no_line_of_git_is_two_lines_here() -> None:
    assert HARMLESS_LINE.fullmatch("name = a\x0cb")
