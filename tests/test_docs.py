"""The documents say what the program does."""

import importlib.util
import re
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


@pytest.mark.slow
@pytest.mark.browser
def test_the_pictures_show_what_they_are_to_show(tmp_path: Path) -> None:
    """The script itself checks each answer, and writes nothing else."""
    script = ROOT / "docs" / "make_picture.py"
    subprocess.run([sys.executable, script, "--to", tmp_path], check=True, timeout=200)
    assert (tmp_path / "chat.png").stat().st_size > 50_000
    drawn = (tmp_path / "ask.svg").read_text()
    assert "df" in drawn and "https://cdnjs" not in drawn


def test_hooks_run_what_is_installed_here() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    programs = re.findall(r"entry: \.venv/bin/([\w-]+)", hooks)
    assert programs == ["ruff", "ruff", "mypy", "lint-imports"]
    assert len(programs) == hooks.count("- id: ") == hooks.count("language: system")
    assert all(Path(sys.executable).with_name(program).exists() for program in programs)
