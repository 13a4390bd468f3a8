"""The rules in pyproject.toml name every module that they are about, and have no exception."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
RULES: dict[str, dict[str, Any]] = {rule["id"]: rule for rule in LINTER["contracts"]}


def modules(package: str, *but: str) -> set[str]:
    """The modules and packages directly inside of a package."""
    found = {path.stem for path in (ROOT / package).glob("*.py")}
    found |= {path.parent.name for path in (ROOT / package).glob("*/*.py")}
    return {f"{package}.{name}" for name in found - {"__init__"}} - set(but)


def test_no_rule_has_an_exception() -> None:
    options = {option for rule in RULES.values() for option in rule}
    assert options & {"ignore_imports", "allow_indirect_imports", "as_packages"} == set()


def test_every_module_is_under_the_rules() -> None:
    ours = {"agent", *modules("bot", "bot.cli")}
    private = modules("backend", "backend.client", "backend.connections", "backend.protocol")
    assert set(RULES["backend"]["source_modules"]) == ours
    assert set(RULES["backend"]["forbidden_modules"]) == private
    assert set(RULES["command-line"]["source_modules"]) == {"backend", *ours}
    others = {"agent", "backend", *modules("bot", "bot.cli", "bot.telegram")}
    assert set(RULES["telegram"]["source_modules"]) == others
    others = {"agent", "backend", *modules("bot", "bot.localgram")}
    assert set(RULES["localgram"]["forbidden_modules"]) == others
