"""What an owner types in the terminal needs no question; what their shell makes of it does."""

import subprocess
import sys
from pathlib import Path

import pytest

from fakes.patience import SECONDS
from fakes.words import saying

VOLTAIRE = Path(sys.executable).with_name("voltaire")


def voltaire(home: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [VOLTAIRE, *words], env={"PATH": "/usr/bin:/bin", "HOME": str(home)}, cwd=home,
        capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sandbox", "--", "web", "read", "http://127.0.0.1:1024/"], "not public"),
        (["tool", "bash", '{"command": "web read http://127.0.0.1:1024/"}'], "not public"),
        (["tool", "bash", '{"command": "web read http://127.0.0.1:1024/$(echo x)"}'], "nobody can be asked"),
        (["sandbox", "--", "web", "search", "tea"], "agent.web.search_url"),
    ],
    ids=["sandbox", "tool", "made-up", "search"],
)  # fmt: skip
def test_an_address_that_an_owner_types(tmp_path: Path, words: list[str], told: str) -> None:
    assert voltaire(tmp_path, *words) == (1, saying("web: ", told))
