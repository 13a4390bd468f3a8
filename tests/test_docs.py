"""The documents say what the program does."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def test_the_configuration_reference_is_that_of_the_settings() -> None:
    spec = importlib.util.spec_from_file_location("make", ROOT / "docs" / "make_configuration.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "configuration.md").read_text() == module.page()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (page.parent / target).exists(), target


def emoji() -> bool:
    """Whether a font here has them."""
    listed = ["fc-list", ":charset=23f0"]
    return bool(shutil.which(listed[0]) and subprocess.check_output(listed))


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(not emoji(), reason="needs a font with emoji (fonts-noto-color-emoji)")
def test_the_pictures_show_what_they_are_to_show(tmp_path: Path) -> None:
    """The script itself checks each answer, and writes nothing else."""
    script = ROOT / "docs" / "make_picture.py"
    subprocess.run([sys.executable, script, "--to", tmp_path], check=True, timeout=600)
    assert (tmp_path / "chat.png").stat().st_size > 50_000
    drawn = (tmp_path / "ask.svg").read_text()
    assert "df" in drawn and "https://cdnjs" not in drawn
    check_recording(tmp_path / "ask.cast")


def test_the_recording_in_the_readme_shows_the_command_and_its_answer() -> None:
    check_recording(ROOT / "docs" / "ask.cast")
    assert "(docs/ask.cast)" in (ROOT / "README.md").read_text()


def check_recording(path: Path) -> None:
    """asciinema's second format: a head, then what came at which second."""
    head, *events = map(json.loads, path.read_text("utf-8").splitlines())
    assert head["version"] == 2 and head["width"] > 0 and head["height"] > 0
    times = [at for at, _, _ in events]
    assert times == sorted(times) and {kind for _, kind, _ in events} == {"o"}
    said = "".join(text for _, _, text in events)
    assert said.startswith('$ make demo ASK="how much disk space is free?"\r\n')
    assert "→ bash " in said and re.search(r"\d+[GT] free \(\d+% full\)", said)
    assert "/tmp" not in said and "/home" not in said


def test_hooks_run_what_is_installed_here() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    programs = re.findall(r"entry: \.venv/bin/([\w-]+)", hooks)
    assert programs == ["ruff", "ruff", "mypy", "lint-imports"]
    assert len(programs) == hooks.count("- id: ") == hooks.count("language: system")
    assert all(Path(sys.executable).with_name(program).exists() for program in programs)
