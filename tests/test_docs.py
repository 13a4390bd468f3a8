"""The documents say what the program does."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.patience import SECONDS

ROOT = Path(__file__).parent.parent
VOLTAIRE = Path(sys.executable).with_name("voltaire")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_configuration_reference_is_that_of_the_settings() -> None:
    spec = importlib.util.spec_from_file_location("make", ROOT / "docs" / "make_configuration.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "configuration.md").read_text() == module.page()


def commands() -> list[tuple[str, ...]]:
    """Every `voltaire COMMAND ...` that a page names, up to its first argument or option."""
    text = "\n".join(page.read_text() for page in PAGES)
    found = re.findall(r"voltaire ((?:[a-z]+ ?){1,2})", text)
    return sorted({tuple(words.split()) for words in found})


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_named_is_there(words: tuple[str, ...]) -> None:
    from bot.cli import COMMANDS

    if words[0] not in COMMANDS:
        pytest.fail(f"voltaire {words[0]} is in a document and not in the program")
    done = subprocess.run(
        [VOLTAIRE, words[0], "--help"], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    if len(words) > 1 and "Commands:" in done.stdout:
        assert re.search(rf"^  {words[1]}\b", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_target_leads_somewhere(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (page.parent / target).exists(), target
    makefile = (ROOT / "Makefile").read_text()
    for name in re.findall(r"`make ([a-z-]+)", text):
        assert re.search(rf"^{name}:", makefile, re.MULTILINE), name
