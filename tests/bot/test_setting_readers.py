"""Every setting of the configuration is read somewhere in the product: one that nobody reads protects nobody."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from bot.settings import Settings, is_section

ROOT = Path(__file__).parents[2]


def names(section: Any = Settings) -> Iterator[str]:
    """Every setting's name, without the sections'."""
    for name, field in section.model_fields.items():
        inner = [
            kind for kind in (field.annotation, *get_args(field.annotation)) if is_section(kind)
        ]
        yield from names(inner[0]) if inner else [name]


def test_every_setting_has_a_reader() -> None:
    paths = (path for room in ("bot", "agent", "backend") for path in (ROOT / room).rglob("*.py"))
    code = "\n".join(path.read_text("utf-8") for path in paths if path.name != "settings.py")
    read = set(re.findall(r"\.(\w+)", code))
    assert [name for name in names() if name not in read] == []
