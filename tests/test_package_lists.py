"""A package's docstring lists each of its modules and packages, and none that is gone."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WITHOUT_LIST = {"bot/cli", "bot/setup", "backend/embedded"}  # named after commands; few files
NAMES = re.compile(r"(?:\w+(?:\.py|/)(?:\s+|$))+")
PACKAGES = sorted(
    str(file.parent.relative_to(ROOT))
    for top in ("agent", "backend", "bot")
    for file in (ROOT / top).rglob("__init__.py")
)


def listed(package: Path) -> set[str]:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    lines = [NAMES.match(line) for line in text.splitlines()]
    return {name for line in lines if line for name in line[0].split()}


@pytest.mark.parametrize("name", sorted(set(PACKAGES) - WITHOUT_LIST))
def test_docstring_lists_every_file(name: str) -> None:
    package = ROOT / name
    there = {file.name for file in package.glob("*.py")} - {"__init__.py"}
    there |= {f"{file.parent.name}/" for file in package.glob("*/__init__.py")}
    assert listed(package) == there
