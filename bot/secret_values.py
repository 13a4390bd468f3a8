"""The secrets in a configuration and in the files that it names, for the check of what leaves (agent.leaks); and those
files, for backups, checks and their removal."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr

MOST_BYTES = 64 << 10  # of a file with secrets
SECRET_NAME = re.compile(r"TOKEN|KEY|SECRET|PASS|PWD|AUTH|CREDENTIAL|COOKIE", re.IGNORECASE)
ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?(\w+)\s*=\s*(.+?)\s*$", re.MULTILINE)
RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w+/=.~-]{20,}")  # no address, path, word or number


def secret_values(
    settings: BaseModel, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """All secrets, by the key of the configuration that holds or names them.

    They are the fields of type SecretStr, the files of `..._file` fields (of an `env_file`, each value that is
    named or looks like a secret), passwords in addresses, and systemd's credentials. A file that cannot be
    read is left out: this process cannot leak it.
    """
    found: dict[str, str] = {}
    for name, value in [*section_values(settings, ""), *credentials(environment)]:
        if value and value not in found.values():
            found[name] = value
    return found


def section_values(section: BaseModel, path: str) -> Iterator[tuple[str, str]]:
    for name in type(section).model_fields:
        yield from field_values(f"{path}{name}", getattr(section, name))


def field_values(key: str, value: object) -> Iterator[tuple[str, str]]:
    match value:
        case SecretStr():
            yield key, value.get_secret_value()
        case BaseModel():
            yield from section_values(value, f"{key}.")
        case dict():
            for name, each in value.items():
                yield from field_values(f"{key}.{name}", each)
        case list() | tuple():
            for number, each in enumerate(value, 1):
                yield from field_values(f"{key}.{number}", each)
        case Path() | str() if key.endswith("env_file"):
            yield from assignments(key, text_of(value))
        case Path() | str() if key.endswith(("_file", ".file")):
            yield key, text_of(value)
        case str() if "@" in value:
            with suppress(ValueError):
                parts = urlsplit(value)
                yield key, unquote(parts.password or (parts.scheme and parts.username) or "")


def assignments(key: str, text: str) -> Iterator[tuple[str, str]]:
    """The secrets of KEY=VALUE lines."""
    for name, quoted in ASSIGNMENT.findall(text):
        value = quoted[1:-1] if quoted[0] in "'\"" and quoted[-1:] == quoted[0] else quoted
        if SECRET_NAME.search(name) or RANDOM.fullmatch(value):
            yield f"{key}: {name}", value


def credentials(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The credentials that systemd gives this service."""
    folder = environment.get("CREDENTIALS_DIRECTORY")
    with suppress(OSError):
        for path in sorted(Path(folder).iterdir()) if folder else []:
            yield f"credential {path.name}", text_of(path)


def text_of(path: Path | str) -> str:
    """A file's text; "" where it cannot be read."""
    with suppress(OSError, ValueError), Path(path).expanduser().open("rb") as file:
        return file.read(MOST_BYTES).decode("utf-8").strip()
    return ""


def secret_files(values: Mapping[str, Any], key: str = "") -> Iterator[tuple[str, Path]]:
    """The files that keys like `token_file` and the secrets of MCP servers name, with the key's parts joined by
    slashes."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from secret_files(value, f"{key}{name}/")
        elif not isinstance(value, str) or not value:
            continue
        elif name.endswith("_file") or (name == "file" and "/secrets/" in key):
            yield key + name, Path(value).expanduser()
