"""The configuration file as the wizard writes it: replaced whole, valid at every step."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bot.settings import read_toml

Values = dict[str, Any]


def read(path: Path) -> Values:
    """What is configured so far; nothing when there is no file."""
    return read_toml(path) if path.exists() else {}


def put(values: Values, key: str, value: object) -> None:
    """Set a dotted key."""
    *sections, last = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
    values[last] = value


def get(values: Mapping[str, Any], key: str) -> Any:
    """The value of a dotted key, or None."""
    found: Any = values
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def write(path: Path, values: Values, *, group: int = -1) -> None:
    """Replace the file at once, readable to its owner (and `group`) alone."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    replace_file(path, "\n".join(lines(values)) + "\n", group=group)


def replace_file(path: Path, text: str, *, group: int = -1) -> None:
    """Replace a file at once, readable to its owner (and `group`) alone, and on the disk."""
    new = path.with_name(f".{path.name}.new")
    fd = os.open(new, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if group >= 0:
        os.chown(new, -1, group)
        new.chmod(0o640)
    new.replace(path)


def lines(values: Values, path: tuple[str, ...] = ()) -> Iterator[str]:
    """TOML: plain values first, then tables, then arrays of tables."""
    plain = {k: v for k, v in values.items() if not isinstance(v, dict) and not tables(v)}
    if path and (plain or not values):
        yield f"[{'.'.join(map(toml_key, path))}]"
    yield from (f"{toml_key(key)} = {toml_value(value)}" for key, value in plain.items())
    for key, value in values.items():
        if isinstance(value, dict):
            yield from lines(value, (*path, key))
        elif tables(value):
            for table in value:
                yield f"[[{'.'.join(map(toml_key, (*path, key)))}]]"
                yield from (
                    f"{toml_key(name)} = {toml_value(each)}" for name, each in table.items()
                )


def tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def toml_key(name: str) -> str:
    bare = name.replace("-", "").replace("_", "").isalnum() and name.isascii()
    return name if bare else json.dumps(name)


def toml_value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, bool | int | float | str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value), ensure_ascii=False)
