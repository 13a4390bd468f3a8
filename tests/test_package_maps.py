"""The map in a package's docstring: each line begins with its modules, and every module is in it."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NAME = r"\w+(?:\.py|/)"
LINE = re.compile(rf"^ *({NAME}(?:,? {NAME})*)(?: |$)", re.M)


def packages() -> dict[str, str]:
    """The docstrings of all packages that have a map, by path."""
    listed = ["git", "ls-files", "agent/**", "backend/**", "bot/**"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = {}
    for path in map(Path, files.splitlines()):
        if path.name == "__init__.py" and (ROOT / path).exists():
            text = ast.get_docstring(ast.parse((ROOT / path).read_text("utf-8"))) or ""
            if LINE.search(text):
                found[str(path.parent)] = text
    return found


def named(docstring: str) -> set[str]:
    return {name for names in LINE.findall(docstring) for name in re.findall(NAME, names)}


def there(package: Path) -> set[str]:
    modules = {p.name for p in package.glob("*.py")} - {"__init__.py", "__main__.py"}
    return modules | {f"{p.parent.name}/" for p in package.glob("*/__init__.py")}


@pytest.mark.parametrize("package", sorted(packages()))
def test_a_map_names_every_module_and_nothing_else(package: str) -> None:
    assert named(packages()[package]) == there(ROOT / package)


def test_what_a_map_line_is() -> None:
    text = "Does things. See b.py for more.\n\na.py c.py   both\nd/, e.py  more\n"
    assert named(text) == {"a.py", "c.py", "d/", "e.py"}
