"""voltaire status: what work between turns costs."""

import json
from pathlib import Path

from bot.cli.status import idle_lines
from tests.bot.cli.test_bad_input import voltaire


async def test_what_nobody_tells_is_not_known(tmp_path: Path) -> None:
    code, out, _ = await voltaire(tmp_path, "status", "--json")
    assert (code, json.loads(out)["idle"]) == (0, {"tokens": 0, "seconds": None, "wh": None})


def test_what_was_done_between_turns_is_one_line() -> None:
    (line,) = idle_lines({"tokens": 12345, "seconds": 3.21, "wh": 0.456})
    assert all(word in line for word in ("12,345 tokens", "3.2 s", "0.46 Wh"))
    (line,) = idle_lines({"tokens": 12345, "seconds": 3.21, "wh": None})
    assert "Wh" not in line
    assert idle_lines({"tokens": 0, "seconds": 0, "wh": None}) == []
